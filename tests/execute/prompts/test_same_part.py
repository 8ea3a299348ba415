from inline_snapshot import snapshot
from testing.prompt_inputs import INPUTS

from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.prompts.same_part import SAME_PART


def test_the_same_part_prompt_reads_so() -> None:
    assert plain_text(SAME_PART.render(INPUTS["same_part"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## All changes
- total in src/till.py: Add all prices.
- src/menu.py: Show the total below the dishes.

# Instructions: Judge whether two changes belong together

You get two of the changes that the task above needs. Say whether both belong into one part of the work, or whether each is a part of its own.

Rules:
- Say yes if the code is broken or useless with only one of the two changes.
- Say yes if one changes how a function is called, and the other changes its calls.
- Say no if each change makes sense on its own and can be tested on its own.
- Answer with one word and nothing else: yes or no.

## First change
total in src/till.py: Add all prices.
def total(prices):
    return sum(prices[1:])

## Second change
src/menu.py: Show the total below the dishes.

Do these two changes belong into one part? Answer yes or no.\
""")


def test_what_each_value_of_the_same_part_prompt_comes_from() -> None:
    spans = SAME_PART.render(INPUTS["same_part"]).spans
    assert [(span.first, span.last, span.source.value) for span in spans] == snapshot(
        [(4, 4, "task"), (7, 7, "draft"), (8, 8, "draft"), (21, 23, "draft"), (26, 26, "draft")]
    )

from inline_snapshot import snapshot
from testing.prompt_inputs import INPUTS

from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.prompts.part_dependency import PART_DEPENDENCY


def test_the_part_dependency_prompt_reads_so() -> None:
    assert plain_text(PART_DEPENDENCY.render(INPUTS["part_dependency"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## All parts
- p1: total in src/till.py: Add all prices.
- p2: src/menu.py: Show the total below the dishes.

# Instructions: Judge whether a part needs another part first

You get two parts of the work on the task above, A and B. Say whether B must be done before A.

Rules:
- Say yes if A calls or imports something that B adds, renames or changes.
- Say no if A can be done and tested while B is not done.
- Say no if only B uses what A changes.
- Answer with one word and nothing else: yes or no.

## Part A
src/menu.py: Show the total below the dishes.

## Part B
total in src/till.py: Add all prices.

Must B be done before A? Answer yes or no.\
""")


def test_what_each_value_of_the_part_dependency_prompt_comes_from() -> None:
    spans = PART_DEPENDENCY.render(INPUTS["part_dependency"]).spans
    assert [(span.first, span.last, span.source.value) for span in spans] == snapshot(
        [(4, 4, "task"), (7, 7, "draft"), (8, 8, "draft"), (21, 21, "draft"), (24, 24, "draft")]
    )

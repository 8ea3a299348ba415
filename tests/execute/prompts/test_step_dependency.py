from inline_snapshot import snapshot
from testing.prompt_inputs import INPUTS

from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.prompts.step_dependency import STEP_DEPENDENCY


def test_the_step_dependency_prompt_reads_so() -> None:
    assert plain_text(STEP_DEPENDENCY.render(INPUTS["step_dependency"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## All steps
- s1: total in src/till.py: Add all prices.
- s2: src/menu.py: Show the total below the dishes.

# Instructions: Judge whether a step needs another step first

You get two steps of the work on the task above, A and B. Tests run after each step. Say whether B must be done before A.

Rules:
- Say yes if A calls or imports something that B adds, renames or changes.
- Say no if the code works after A while B is not done.
- Say no if only B uses what A changes.
- Answer with one word and nothing else: yes or no.

## Step A
src/menu.py: Show the total below the dishes.

## Step B
total in src/till.py: Add all prices.

Must B be done before A? Answer yes or no.\
""")


def test_what_each_value_of_the_step_dependency_prompt_comes_from() -> None:
    spans = STEP_DEPENDENCY.render(INPUTS["step_dependency"]).spans
    assert [(span.first, span.last, span.source.value) for span in spans] == snapshot(
        [(4, 4, "task"), (7, 7, "draft"), (8, 8, "draft"), (21, 21, "draft"), (24, 24, "draft")]
    )

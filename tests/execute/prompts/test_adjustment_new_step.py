from inline_snapshot import snapshot
from testing.prompt_inputs import INPUTS

from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.prompts.adjustment_new_step import ADJUSTMENT_NEW_STEP


def test_the_adjustment_new_step_prompt_reads_so() -> None:
    assert plain_text(ADJUSTMENT_NEW_STEP.render(INPUTS["adjustment_new_step"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## The part of it under way
Let total() add all prices.

## Steps so far
- s1, failed: Sum all prices. (tests failed)

# Instructions: Judge whether a failure needs a new step

Something failed while a plan for the task above was followed, and no step of the plan is about it. Say whether the plan needs one more step for it.

Rules:
- A step that failed was undone: the code is as it was before it.
- Say yes if the part cannot be finished before somebody changes the code for this failure.
- Say no if a step that remains does it.
- Say no if the failure has nothing to do with the task, or goes away by itself.
- Answer with one word and nothing else: yes or no.

## Remaining steps
s2: Export total. (modify src/__init__.py)

## What failed
- test failure, test_total: assert 3 == 6

Does the plan need a new step for this failure? Answer yes or no.\
""")


def test_what_each_value_of_the_adjustment_new_step_prompt_comes_from() -> None:
    spans = ADJUSTMENT_NEW_STEP.render(INPUTS["adjustment_new_step"]).spans
    assert [(span.first, span.last, span.source.value) for span in spans] == snapshot(
        [(4, 4, "task"), (7, 7, "part"), (10, 10, "step"), (24, 24, "step"), (27, 27, "failure")]
    )

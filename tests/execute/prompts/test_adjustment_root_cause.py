from inline_snapshot import snapshot
from testing.prompt_inputs import INPUTS

from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.prompts.adjustment_root_cause import ADJUSTMENT_ROOT_CAUSE


def test_the_adjustment_root_cause_prompt_reads_so() -> None:
    assert plain_text(ADJUSTMENT_ROOT_CAUSE.render(INPUTS["adjustment_root_cause"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## The part of it under way
Let total() add all prices.

## What failed
- test failure, test_total: assert 3 == 6

# Instructions: Judge whether a failure is about a step

A step of a plan for the task above failed. You get the failure and one step of the plan. Say whether the failure is about this step.

Rules:
- The step that failed was undone: the code is as it was before it.
- Of the step that was tried: say yes if what it tried to change caused the failure, no if the cause lies elsewhere.
- Of a step that remains: say yes if it has to be done in another way because of the failure, no if it can stay as it is.
- Answer with one word and nothing else: yes or no.

## The remaining step
s2: Export total. (modify src/__init__.py)

Must this step change because of the failure? Answer yes or no.\
""")


def test_what_each_value_of_the_adjustment_root_cause_prompt_comes_from() -> None:
    spans = ADJUSTMENT_ROOT_CAUSE.render(INPUTS["adjustment_root_cause"]).spans
    assert [(span.first, span.last, span.source.value) for span in spans] == snapshot(
        [(4, 4, "task"), (7, 7, "part"), (10, 10, "failure"), (23, 23, "step")]
    )

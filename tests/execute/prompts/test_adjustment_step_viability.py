from inline_snapshot import snapshot
from testing.prompt_inputs import INPUTS

from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.prompts.adjustment_step_viability import ADJUSTMENT_STEP_VIABILITY


def test_the_adjustment_step_viability_prompt_reads_so() -> None:
    assert plain_text(ADJUSTMENT_STEP_VIABILITY.render(INPUTS["adjustment_step_viability"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## The part of it under way
Let total() add all prices.

## Steps so far
- s1, failed: Sum all prices. (tests failed)

## What failed
- test failure, test_total: assert 3 == 6

# Instructions: Judge whether a remaining step should still be done

A plan for the task above is under way, and something failed. You get one of the steps that remain. Say whether this step should still be done.

Rules:
- A step that failed was undone: the code is as it was before it.
- Say yes if the task still needs what the step does, also if the step has to change a little.
- Say no if what the step does is already done.
- Say no if the step makes no sense any more after what happened.
- Answer with one word and nothing else: yes or no.

## The remaining step
s2: Export total. (modify src/__init__.py)

Should this step still be done? Answer yes or no.\
""")


def test_what_each_value_of_the_adjustment_step_viability_prompt_comes_from() -> None:
    spans = ADJUSTMENT_STEP_VIABILITY.render(INPUTS["adjustment_step_viability"]).spans
    assert [(span.first, span.last, span.source.value) for span in spans] == snapshot(
        [(4, 4, "task"), (7, 7, "part"), (10, 10, "step"), (13, 13, "failure"), (27, 27, "step")]
    )

from inline_snapshot import snapshot
from testing.prompt_inputs import INPUTS, sources

from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.decomposed_adjustment_prompts import (
    ADJUSTMENT_FINALIZE,
    ADJUSTMENT_NEW_STEP,
    ADJUSTMENT_ROOT_CAUSE,
    ADJUSTMENT_STEP_VIABILITY,
)


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
    assert sources(ADJUSTMENT_STEP_VIABILITY) == snapshot(
        [(4, 4, "task"), (7, 7, "part"), (10, 10, "step"), (13, 13, "failure"), (27, 27, "step")]
    )


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
    assert sources(ADJUSTMENT_ROOT_CAUSE) == snapshot(
        [(4, 4, "task"), (7, 7, "part"), (10, 10, "failure"), (23, 23, "step")]
    )


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
    assert sources(ADJUSTMENT_NEW_STEP) == snapshot(
        [(4, 4, "task"), (7, 7, "part"), (10, 10, "step"), (24, 24, "step"), (27, 27, "failure")]
    )


def test_the_adjustment_finalize_prompt_reads_so() -> None:
    assert plain_text(ADJUSTMENT_FINALIZE.render(INPUTS["adjustment_finalize"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## The part of it under way
Let total() add all prices.

## Code
===== file: src/till.py (lines 1-2)
def total(prices):
    return sum(prices[1:])
===== end

## Steps so far
- s1, failed: Sum all prices. (tests failed)

## What failed
- test failure, test_total: assert 3 == 6

# Instructions: Write the remaining steps as it was decided

A plan for the task above is under way, and something failed. It was decided which steps that remain stay, change or go. Write the steps that remain now.

Rules:
- A step marked "stays": give it back unchanged.
- A step marked "must change": write it so that it fits what failed.
- A step marked "goes": leave it out.
- Where a new step is wanted, write it. Write no other new step.
- Do not give back steps that are done or that failed. Steps that are done cannot be changed, those that failed were undone.
- analysis: one or two sentences: what follows from what happened.
- changes: one short sentence for each step that goes, changed or is new.
- steps: the steps that remain, each with description, files, id, needs and symbols.
- files: each file that the step changes, with its role: modify (it exists), create (it does not exist), delete.
- needs: ids of steps that are done or remain. Never the id of a step that failed or goes.
- Write no code.
- Answer with one JSON object and nothing else.

Example answer:
{"analysis": "The quokka menu still reads the old pen, so s2 has to change and s3 is done.", "changes": ["s2: reads count_quokkas now", "s3: goes, the quokka pen is exported"], "steps": [{"description": "Let the quokka menu read count_quokkas.", "files": [{"path": "quokka_zoo/menu.py", "role": "modify"}], "id": "s2", "needs": ["s1"], "symbols": ["QuokkaMenu.order"]}]}

## Remaining steps
{"description": "Export total.", "files": [], "id": "s2", "needs": [], "symbols": []}

## What was decided
- s2: goes

Which steps remain now? Use at most 4. Answer with the JSON object.\
""")


def test_what_each_value_of_the_adjustment_finalize_prompt_comes_from() -> None:
    assert sources(ADJUSTMENT_FINALIZE) == snapshot(
        [
            (4, 4, "task"),
            (7, 7, "part"),
            (10, 10, "frame"),
            (11, 12, "file"),
            (13, 13, "frame"),
            (16, 16, "step"),
            (19, 19, "failure"),
            (40, 40, "example"),
            (43, 43, "step"),
            (46, 46, "draft"),
        ]
    )

from inline_snapshot import snapshot
from testing.prompt_inputs import INPUTS

from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.prompts.adjustment_finalize import ADJUSTMENT_FINALIZE


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
    spans = ADJUSTMENT_FINALIZE.render(INPUTS["adjustment_finalize"]).spans
    assert [(span.first, span.last, span.source.value) for span in spans] == snapshot(
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

from inline_snapshot import snapshot

from clean_room_agent.artifacts.context import section_texts
from clean_room_agent.execute.prompts.adjustment import ADJUSTMENT, AdjustmentInputs

NO_CONTEXT = section_texts(())


DIFF = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-x\n+y\n"


ADJUSTMENT_INPUTS = AdjustmentInputs(
    context=NO_CONTEXT,
    diff=DIFF,
    task="add() subtracts.",
    part="Let add() add.",
    done=("- s1, done: Change the sign.",),
    remaining='{"description": "Export add.", "files": [], "id": "s2", "needs": [], "symbols": []}',
    max_steps=15,
    rejected="",
    faults=(),
)


def test_the_adjustment_prompt_reads_so() -> None:
    assert ADJUSTMENT.render(ADJUSTMENT_INPUTS) == snapshot("""\
# Context

## Task
add() subtracts.

## The part of it under way
Let add() add.

## Changes made so far (the code above already has them)
diff --git a/x.py b/x.py
--- a/x.py
+++ b/x.py
@@ -1 +1 @@
-x
+y

## Steps so far
- s1, done: Change the sign.

# Instructions: Revise the remaining steps of a plan

A plan for the task above is under way. What was done stands above; you get the steps that remain. Say which steps remain now.

Rules:
- If the remaining steps still fit, give them back unchanged. This is the usual case.
- Leave a step out only if what it asks for is already done.
- Change a step only if what happened makes it wrong.
- Add a step only if the part cannot be finished without it.
- Do not give back steps that are done or that failed. Steps that are done cannot be changed.
- analysis: one or two sentences: what follows from what happened.
- changes: one short sentence for each step that you left out, changed or added. Empty if there are none.
- steps: the steps that remain, each with description, files, id, needs and symbols.
- files: each file that the step changes, with its role: modify (it exists), create (it does not exist), delete.
- needs: ids of steps that are done or remain. Never the id of a step that failed.
- Write no code.
- Answer with one JSON object and nothing else.

Example answer:
{"analysis": "s1 already changed the quokka menu, so s2 only has the export left.", "changes": ["s2: only the export of count_quokkas is left"], "steps": [{"description": "Export count_quokkas from the package.", "files": [{"path": "quokka_zoo/__init__.py", "role": "modify"}], "id": "s2", "needs": ["s1"], "symbols": ["count_quokkas"]}]}

## Remaining steps
{"description": "Export add.", "files": [], "id": "s2", "needs": [], "symbols": []}

Which steps remain now? Use at most 15. Answer with the JSON object.\
""")

from inline_snapshot import snapshot
from testing.prompt_inputs import INPUTS

from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.prompts.step_design import STEP_DESIGN


def test_the_step_design_prompt_reads_so() -> None:
    assert plain_text(STEP_DESIGN.render(INPUTS["step_design"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## Code
===== file: src/till.py (lines 1-2)
def total(prices):
    return sum(prices[1:])
===== end

# Instructions: Write the steps that change given places

You get one part of the task above and the numbered places that it changes. Divide the part into steps. A programmer will do one step at a time, and tests run after each.

Rules:
- Use as few steps as possible. A small part is one step with all places.
- After each step the code must work. Changes that only work together are one step.
- Each place is in a step. A place with a long change may be in several steps.
- Do not plan steps for reading, searching, running tests or reviewing.
- description: one or two sentences: what the step changes at its places, so exact that a programmer needs nothing else.
- summary: one sentence: the whole part.
- targets: the numbers of the places that the step changes.
- Write no code.
- Answer with one JSON object and nothing else.

Example answer:
{"steps": [{"description": "Add the young to the sum in count_quokkas.", "targets": [1]}, {"description": "Order two meals a day for each quokka, not one.", "targets": [2]}], "summary": "Feed the young quokkas too."}

## The part to divide now
Let total() add all prices.

## Places that it changes
1. modify total in src/till.py

Which steps does this part have? Use at most 4. The edits of one step can have at most 60 lines, old and new together: divide a longer change. Answer with the JSON object.\
""")


def test_what_each_value_of_the_step_design_prompt_comes_from() -> None:
    spans = STEP_DESIGN.render(INPUTS["step_design"]).spans
    assert [(span.first, span.last, span.source.value) for span in spans] == snapshot(
        [
            (4, 4, "task"),
            (7, 7, "frame"),
            (8, 9, "file"),
            (10, 10, "frame"),
            (28, 28, "example"),
            (31, 31, "part"),
            (34, 34, "draft"),
        ]
    )

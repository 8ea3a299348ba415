from inline_snapshot import snapshot
from testing.prompt_inputs import INPUTS

from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.prompts.change_points import CHANGE_POINTS


def test_the_change_points_prompt_reads_so() -> None:
    assert plain_text(CHANGE_POINTS.render(INPUTS["change_points"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## Code
===== file: src/till.py (lines 1-2)
def total(prices):
    return sum(prices[1:])
===== end

## Other files that may matter (not shown)
src/menu.py

# Instructions: List the places that a task changes

List the places that have to change for the task above. The code of the repository that it is about stands above, too.

Rules:
- A place is one function, method or class that changes, or one new file.
- List only places that must change. A small task has one.
- Do not list code that only has to be read.
- Do not list tests unless the task asks for them.
- analysis: one or two sentences: what is wrong or missing, and where.
- change: one sentence: what changes at this place.
- file: the path, exactly as it is written above. New files are allowed.
- symbol: the name of the function, method or class, like "parse" or "Parser.parse". Empty for a new file, or if the change is outside of all of them.
- summary: one sentence: the whole change.
- Write no code.
- Answer with one JSON object and nothing else.

Example answer:
{"analysis": "count_quokkas leaves out the young, and the quokka menu orders too few meals.", "points": [{"change": "Count the young quokkas too.", "file": "quokka_zoo/pen.py", "symbol": "count_quokkas"}, {"change": "Order two meals a day for each quokka.", "file": "quokka_zoo/menu.py", "symbol": "QuokkaMenu.order"}], "summary": "Feed the young quokkas too."}

The task again, in short: total() leaves out the first price. Make it add all prices.
Which places have to change for it? Name at most 8. Answer with the JSON object.\
""")


def test_what_each_value_of_the_change_points_prompt_comes_from() -> None:
    spans = CHANGE_POINTS.render(INPUTS["change_points"]).spans
    assert [(span.first, span.last, span.source.value) for span in spans] == snapshot(
        [
            (4, 4, "task"),
            (7, 7, "frame"),
            (8, 9, "file"),
            (10, 10, "frame"),
            (13, 13, "candidate"),
            (33, 33, "example"),
            (35, 35, "task"),
        ]
    )

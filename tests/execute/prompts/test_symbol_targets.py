from inline_snapshot import snapshot
from testing.prompt_inputs import INPUTS

from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.prompts.symbol_targets import SYMBOL_TARGETS


def test_the_symbol_targets_prompt_reads_so() -> None:
    assert plain_text(SYMBOL_TARGETS.render(INPUTS["symbol_targets"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## Code
===== file: src/till.py (lines 1-2)
def total(prices):
    return sum(prices[1:])
===== end

# Instructions: List the places that a part of a task changes

You get one part of the task above; the code that it is about stands above, too. List the places that this part changes.

Rules:
- A place is one function, method or class that changes, or one new file.
- List only places that this part must change. A small part has one.
- Do not list code that only has to be read.
- analysis: one or two sentences: what must change, and where.
- file: the path, exactly as it is written above. New files are allowed.
- role: modify (the file exists), create (it does not exist), delete.
- symbol: the name of the function, method or class, like "parse" or "Parser.parse". Empty for a whole file, or if the change is outside of all of them.
- Write no code.
- Answer with one JSON object and nothing else.

Example answer:
{"analysis": "count_quokkas leaves out the young; only quokka_zoo/menu.py calls it.", "targets": [{"file": "quokka_zoo/pen.py", "role": "modify", "symbol": "count_quokkas"}, {"file": "quokka_zoo/menu.py", "role": "modify", "symbol": "QuokkaMenu.order"}]}

## Plan for the whole task
Add all prices.

## The part to divide now
Let total() add all prices.
Files: src/till.py

## Definitions shown above
- total in src/till.py

Which places does this part change? Name at most 8. Answer with the JSON object.\
""")


def test_what_each_value_of_the_symbol_targets_prompt_comes_from() -> None:
    spans = SYMBOL_TARGETS.render(INPUTS["symbol_targets"]).spans
    assert [(span.first, span.last, span.source.value) for span in spans] == snapshot(
        [
            (4, 4, "task"),
            (7, 7, "frame"),
            (8, 9, "file"),
            (10, 10, "frame"),
            (28, 28, "example"),
            (31, 31, "part"),
            (34, 34, "part"),
            (35, 35, "part"),
            (38, 38, "candidate"),
        ]
    )

from inline_snapshot import snapshot
from testing.prompt_inputs import INPUTS

from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.prompts.symbol_targets import SYMBOL_TARGETS


def test_the_symbol_targets_prompt_reads_so() -> None:
    assert plain_text(SYMBOL_TARGETS.render(INPUTS["symbol_targets"])) == snapshot("""\
# List the places that a part of a task changes

You get one part of a task and the code that it is about. List the places that this part changes.

Rules:
- A place is one function, method or class that changes, or one new file.
- List only places that this part must change. A small part has one.
- Do not list code that only has to be read.
- analysis: one or two sentences: what must change, and where.
- file: the path, exactly as it is written below. New files are allowed.
- role: modify (the file exists), create (it does not exist), delete.
- symbol: the name of the function, method or class, like "parse" or "Parser.parse". Empty for a whole file, or if the change is outside of all of them.
- Write no code.
- Answer with one JSON object and nothing else.

Example answer:
{"analysis": "count_quokkas leaves out the young; only quokka_zoo/menu.py calls it.", "targets": [{"file": "quokka_zoo/pen.py", "role": "modify", "symbol": "count_quokkas"}, {"file": "quokka_zoo/menu.py", "role": "modify", "symbol": "QuokkaMenu.order"}]}

## Code
===== file: src/till.py (lines 1-2)
def total(prices):
    return sum(prices[1:])
===== end


## Task
total() leaves out the first price. Make it add all prices.

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
            (17, 17, "example"),
            (20, 20, "frame"),
            (21, 22, "file"),
            (23, 23, "frame"),
            (27, 27, "task"),
            (30, 30, "part"),
            (33, 33, "part"),
            (34, 34, "part"),
            (37, 37, "candidate"),
        ]
    )

from typing import Any

import pytest
from inline_snapshot import snapshot
from testing.prompt_inputs import INPUTS, sources

from clean_room_agent.artifacts.prompt_sources import plain_text
from clean_room_agent.execute.decomposed_plan_prompts import (
    CHANGE_POINTS,
    PART_DEPENDENCY,
    SAME_PART,
    STEP_DEPENDENCY,
    STEP_DESIGN,
    SYMBOL_TARGETS,
)
from clean_room_agent.llm.prompt import Prompt


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
    assert sources(CHANGE_POINTS) == snapshot(
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


def test_the_same_part_prompt_reads_so() -> None:
    assert plain_text(SAME_PART.render(INPUTS["same_part"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## All changes
- total in src/till.py: Add all prices.
- src/menu.py: Show the total below the dishes.

# Instructions: Judge whether two changes belong together

You get two of the changes that the task above needs. Say whether both belong into one part of the work, or whether each is a part of its own.

Rules:
- Say yes if the code is broken or useless with only one of the two changes.
- Say yes if one changes how a function is called, and the other changes its calls.
- Say no if each change makes sense on its own and can be tested on its own.
- Answer with one word and nothing else: yes or no.

## First change
total in src/till.py: Add all prices.
def total(prices):
    return sum(prices[1:])

## Second change
src/menu.py: Show the total below the dishes.

Do these two changes belong into one part? Answer yes or no.\
""")


def test_what_each_value_of_the_same_part_prompt_comes_from() -> None:
    assert sources(SAME_PART) == snapshot(
        [(4, 4, "task"), (7, 7, "draft"), (8, 8, "draft"), (21, 23, "draft"), (26, 26, "draft")]
    )


def test_the_part_dependency_prompt_reads_so() -> None:
    assert plain_text(PART_DEPENDENCY.render(INPUTS["part_dependency"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## All parts
- p1: total in src/till.py: Add all prices.
- p2: src/menu.py: Show the total below the dishes.

# Instructions: Judge whether a part needs another part first

You get two parts of the work on the task above, A and B. Say whether B must be done before A.

Rules:
- Say yes if A calls or imports something that B adds, renames or changes.
- Say no if A can be done and tested while B is not done.
- Say no if only B uses what A changes.
- Answer with one word and nothing else: yes or no.

## Part A
src/menu.py: Show the total below the dishes.

## Part B
total in src/till.py: Add all prices.

Must B be done before A? Answer yes or no.\
""")


@pytest.mark.parametrize("prompt", [PART_DEPENDENCY, STEP_DEPENDENCY], ids=lambda prompt: prompt.name)
def test_what_each_value_of_a_prompt_about_order_comes_from(prompt: Prompt[Any, Any]) -> None:
    assert sources(prompt) == snapshot(
        [(4, 4, "task"), (7, 7, "draft"), (8, 8, "draft"), (21, 21, "draft"), (24, 24, "draft")]
    )


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
    assert sources(SYMBOL_TARGETS) == snapshot(
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
    assert sources(STEP_DESIGN) == snapshot(
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


def test_the_step_dependency_prompt_reads_so() -> None:
    assert plain_text(STEP_DEPENDENCY.render(INPUTS["step_dependency"])) == snapshot("""\
# Context

## Task
total() leaves out the first price. Make it add all prices.

## All steps
- s1: total in src/till.py: Add all prices.
- s2: src/menu.py: Show the total below the dishes.

# Instructions: Judge whether a step needs another step first

You get two steps of the work on the task above, A and B. Tests run after each step. Say whether B must be done before A.

Rules:
- Say yes if A calls or imports something that B adds, renames or changes.
- Say no if the code works after A while B is not done.
- Say no if only B uses what A changes.
- Answer with one word and nothing else: yes or no.

## Step A
src/menu.py: Show the total below the dishes.

## Step B
total in src/till.py: Add all prices.

Must B be done before A? Answer yes or no.\
""")

"""Which line of a prompt comes from where, by its heading, its frame and its words."""

from dataclasses import replace

import pytest
from testing.prompt_inputs import INPUTS

from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.execute.prompts.implement import IMPLEMENT
from clean_room_agent.report.prompt_lines import PromptLine, prompt_lines
from clean_room_agent.retrieval.prompts.piece_judgment import PIECE_JUDGMENT
from clean_room_agent.retrieval.prompts.task_analysis import TASK_ANALYSIS

DECOMPOSED = (
    "change_points",
    "same_part",
    "part_dependency",
    "symbol_targets",
    "step_design",
    "step_dependency",
    "adjustment_step_viability",
    "adjustment_root_cause",
    "adjustment_new_step",
    "adjustment_finalize",
    "goal_check",
)

PATHS = ("src/a.py", "src/b.py", "tests/t.py")
IMPLEMENT_TEXT = """\
# {title}

## What the code to change uses
===== reference: src/b.py :: low, High (lines 3-20)
def low(x):
    \"\"\"Low.\"\"\"
class High:
===== end
src/b.py: not shown: Other

## Where it is used
src/b.py:12: return go(x)

## Tests that pass now and must still pass
tests/t.py:9: test_go

## Tests
===== test: tests/t.py :: test_low (lines 3-4)
def test_low():
    assert low(1)
===== end

## Code to change
===== code: src/a.py :: go (lines 7-8)
def go(x):
    return low(x)
===== end
"""
JUDGED_TEXT = """\
# {title}

## Task
Fix it

## Already chosen
- src/a.py

## Code to choose from
- src/b.py :: low (lines 3-4)

## Code
===== candidate: src/b.py :: low (lines 3-4)
def low(x):
    return x
===== end
"""
ANALYSIS_TEXT = """\
# {title}

## Files found
- src/a.py

## Definitions found
- High.go (src/b.py)
"""


def line_of(lines: tuple[PromptLine, ...], text: str) -> PromptLine:
    (found,) = [line for line in lines if line.text == text]
    return found


def test_lines_of_code_are_lines_of_their_files_and_others_are_outlines() -> None:
    lines = prompt_lines(IMPLEMENT_TEXT.format(title=IMPLEMENT.title), IMPLEMENT, "Fix it", PATHS)
    code = line_of(lines, "    return low(x)")
    assert (code.kind, code.section, code.path, code.symbol, code.file_line) == (
        "file", "Code to change", "src/a.py", "go", 8,
    )  # fmt: skip
    test = line_of(lines, "    assert low(1)")
    assert (test.kind, test.section, test.path, test.file_line) == ("file", "Tests", "tests/t.py", 4)
    used = line_of(lines, "class High:")
    assert (used.kind, used.path, used.symbol, used.file_line) == ("outline", "src/b.py", "low, High", None)
    assert used.section == "What the code to change uses"


def test_a_line_that_names_its_place_is_about_that_line_of_the_file() -> None:
    lines = prompt_lines(IMPLEMENT_TEXT.format(title=IMPLEMENT.title), IMPLEMENT, "Fix it", PATHS)
    for text, path, number in (
        ("src/b.py:12: return go(x)", "src/b.py", 12),
        ("tests/t.py:9: test_go", "tests/t.py", 9),
        ("src/b.py: not shown: Other", "src/b.py", None),
    ):
        line = line_of(lines, text)
        assert (line.kind, line.path, line.file_line) == ("outline", path, number)


def test_what_is_to_be_judged_is_a_candidate_though_its_code_is_shown() -> None:
    lines = prompt_lines(JUDGED_TEXT.format(title=PIECE_JUDGMENT.title), PIECE_JUDGMENT, "Fix it", PATHS)
    code = line_of(lines, "    return x")
    assert (code.kind, code.section, code.path, code.symbol) == ("candidate", "Code", "src/b.py", "low")
    assert line_of(lines, "- src/a.py").path == "src/a.py"
    assert line_of(lines, "- src/b.py :: low (lines 3-4)").path == "src/b.py"


def test_a_definition_that_search_found_is_of_the_file_behind_its_name() -> None:
    lines = prompt_lines(ANALYSIS_TEXT.format(title=TASK_ANALYSIS.title), TASK_ANALYSIS, "Fix it", PATHS)
    found = line_of(lines, "- High.go (src/b.py)")
    assert (found.kind, found.section, found.path) == ("candidate", "Definitions found", "src/b.py")


@pytest.mark.parametrize("name", DECOMPOSED)
def test_every_line_of_a_question_about_a_plan_has_an_origin(name: str) -> None:
    (prompt,) = (one for one in PROMPTS if one.name == name)
    for inputs in (INPUTS[name], replace(INPUTS[name], task="First.\n\nSecond.")):
        found = prompt_lines(prompt.render(inputs), prompt, inputs.task)
        assert [line.text for line in found if line.kind == "unknown"] == []

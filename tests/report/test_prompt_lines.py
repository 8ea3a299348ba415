import io
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console
from testing.packages import shown_symbol
from testing.prompt_inputs import INPUTS
from testing.runs.model_calls import model_call
from tests.report.conftest import Solved

from clean_room_agent.artifacts.context import section_texts
from clean_room_agent.artifacts.prompt_sources import PromptSource, SourcedText, plain_text
from clean_room_agent.errors import UsageError
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.report.prompt_lines import (
    BEFORE_SPANS,
    WORDS,
    LineRange,
    framed,
    lines_of_call,
    prompt_lines,
    prompt_why,
    render_line_why,
    render_prompt_why,
)

CODE = "import x\n\n\ndef low(x):\n    return x\n\n\ndef go(x):\n    return low(x)\n"
TESTS = "\n\ndef test_low():\n    assert low(1)\n"
CONTEXT = section_texts(
    (
        shown_symbol("src/a.py", CODE, "low", 4, 5),
        replace(shown_symbol("src/a.py", CODE, "go", 8, 9), adjoins=True),
        replace(shown_symbol("tests/t.py", TESTS, "test_low", 3, 4, detail="supporting"), section="tests"),
        replace(shown_symbol("src/b.py", "class High:\n", "High", 1, 1, detail="supporting"), section="uses"),
        replace(
            shown_symbol("src/b.py", "src/b.py:12: return go(x)\n", "use", 1, 1, detail="type_context"),
            section="callers",
            start_line=12,
            end_line=12,
        ),
    )
)


def lines_of(text: SourcedText) -> tuple[LineRange, ...]:
    lines = prompt_lines(model_call(prompt=plain_text(text), spans=text.spans))
    assert lines is not None
    return lines


def implement(**said: Any) -> SourcedText:
    return IMPLEMENT.render(replace(INPUTS["implement"], context=CONTEXT, **said))


def line_of(text: SourcedText, words: str) -> LineRange:
    (found,) = [line for line in lines_of(text) if line.text == words]
    return found


def test_a_line_of_code_is_that_line_of_its_file() -> None:
    code = line_of(implement(), "    return low(x)")
    assert (code.kind, code.section, code.path, code.symbol, code.file_first) == (
        "file", "Code to change", "src/a.py", "go", 9,
    )  # fmt: skip
    test = line_of(implement(), "    assert low(1)")
    assert (test.kind, test.section, test.path, test.file_first) == ("file", "Tests", "tests/t.py", 4)


def test_what_stands_for_code_is_an_outline() -> None:
    used = line_of(implement(), "class High:")
    assert (used.kind, used.path, used.symbol, used.file_first) == ("outline", "src/b.py", "High", None)
    assert used.section == "What the code to change uses"
    caller = line_of(implement(), "src/b.py:12: return go(x)")
    assert (caller.kind, caller.path, caller.file_first) == ("outline", "src/b.py", 12)


def test_each_piece_in_a_frame_is_an_item() -> None:
    items = framed(implement().spans)
    assert [(span.source, span.path, span.symbol) for span in items] == [
        ("file", "tests/t.py", "test_low"),
        ("outline", "src/b.py", "High"),
        ("file", "src/a.py", "low"),
        ("file", "src/a.py", "go"),
    ]
    low, go = items[-2:]
    assert (low.number, low.from_line(low.last).number, go.number) == (4, 7, 8)


def test_a_call_of_an_old_record_has_no_lines() -> None:
    assert prompt_lines(model_call(prompt="## Code\nx")) is None


def test_a_prompt_is_the_ranges_of_its_lines_and_each_line_has_its_place(solved: Solved) -> None:
    call_id = solved.call_id("implement")
    found = prompt_why(solved.conn, solved.trace, call_id)
    assert [part.first for part in found.ranges[1:]] == [part.last + 1 for part in found.ranges[:-1]]
    code = next(part for part in found.ranges if part.kind is PromptSource.FILE)
    line = prompt_why(solved.conn, solved.trace, call_id, code.first)
    assert (line.ranges[0].kind, line.ranges[0].file_first) == (PromptSource.FILE, code.file_first)
    assert line.decisions
    console = Console(file=io.StringIO(), width=120)
    console.print(render_prompt_why(found), render_line_why(line))
    assert isinstance(console.file, io.StringIO)
    assert f", as of commit {line.commit[:10]}" in console.file.getvalue()


def test_a_line_that_is_not_there_is_an_error(solved: Solved) -> None:
    with pytest.raises(UsageError, match="and no line 99999"):
        prompt_why(solved.conn, solved.trace, solved.call_id("implement"), 99999)


def test_of_a_call_of_an_old_record_nothing_is_guessed() -> None:
    with pytest.raises(UsageError, match=BEFORE_SPANS):
        lines_of_call(model_call(7, prompt="## Task\nx"))


def test_every_source_has_its_words() -> None:
    assert WORDS.keys() == set(PromptSource)

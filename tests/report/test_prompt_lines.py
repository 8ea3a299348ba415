"""Which line of a recorded prompt comes from where, by the spans that were recorded with it."""

from typing import Any

from msgspec.structs import replace
from testing.packages import shown_file, shown_symbol
from testing.prompt_inputs import INPUTS
from testing.runs.model_calls import model_call

from clean_room_agent.artifacts.context import section_texts
from clean_room_agent.artifacts.prompt_sources import PromptSource, SourcedText, plain_text
from clean_room_agent.execute.implement import IMPLEMENT, FailedAttempt
from clean_room_agent.report.prompt_lines import PromptLine, framed, grouped, prompt_lines
from clean_room_agent.retrieval.judges import frame_option
from clean_room_agent.retrieval.prompts import PIECE_JUDGMENT, TASK_ANALYSIS
from clean_room_agent.retrieval.stage import Option, SingleInputs

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
OPTION = Option(key="k", name="src/b.py :: low (lines 3-4)", text="def low(x):\n    return x\n", score=1.0)


def lines_of(text: SourcedText) -> tuple[PromptLine, ...]:
    lines = prompt_lines(model_call(prompt=plain_text(text), spans=text.spans))
    assert lines is not None
    return lines


def implement(**said: Any) -> SourcedText:
    return IMPLEMENT.render(replace(INPUTS["implement"], context=CONTEXT, **said))


def line_of(text: SourcedText, words: str) -> PromptLine:
    (found,) = [line for line in lines_of(text) if line.text == words]
    return found


def test_a_line_of_code_is_that_line_of_its_file() -> None:
    code = line_of(implement(), "    return low(x)")
    assert (code.kind, code.section, code.path, code.symbol, code.file_line) == (
        "file", "Code to change", "src/a.py", "go", 9,
    )  # fmt: skip
    test = line_of(implement(), "    assert low(1)")
    assert (test.kind, test.section, test.path, test.file_line) == ("file", "Tests", "tests/t.py", 4)


def test_what_stands_for_code_is_an_outline() -> None:
    used = line_of(implement(), "class High:")
    assert (used.kind, used.path, used.symbol, used.file_line) == ("outline", "src/b.py", "High", None)
    assert used.section == "What the code to change uses"
    caller = line_of(implement(), "src/b.py:12: return go(x)")
    assert (caller.kind, caller.path, caller.file_line) == ("outline", "src/b.py", 12)


def test_code_that_looks_like_a_heading_or_a_frame_is_code() -> None:
    text = "## Task\n===== end\n"
    shown = IMPLEMENT.render(replace(INPUTS["implement"], context=section_texts((shown_file("n.md", text),))))
    assert [line.file_line for line in lines_of(shown) if line.path == "n.md" and line.kind == "file"] == [
        1,
        2,
    ]
    assert line_of(shown, "===== end").section == "Code to change"


def test_what_is_judged_is_a_candidate_though_its_code_is_shown() -> None:
    text = PIECE_JUDGMENT.render(
        SingleInputs(
            question=SourcedText("## Task\nx"),
            option=frame_option(OPTION),
            chosen=("src/a.py",),
            others=(OPTION.name,),
        )
    )
    code = line_of(text, "    return x")
    assert (code.kind, code.section, code.path, code.symbol) == ("candidate", "Code", "src/b.py", "low")
    assert line_of(text, "- src/a.py").path == "src/a.py"
    assert line_of(text, "- src/b.py :: low (lines 3-4)").symbol == "low"


def test_a_definition_that_search_found_is_of_the_file_behind_its_name() -> None:
    text = TASK_ANALYSIS.render(replace(INPUTS["task_analysis"], symbols=("High.go (src/b.py)",)))
    found = line_of(text, "- High.go (src/b.py)")
    assert (found.kind, found.path, found.symbol) == ("candidate", "src/b.py", "High.go")


def test_a_line_of_an_earlier_attempt_says_which_it_was() -> None:
    tries = tuple(FailedAttempt(number=n, edits="", feedback=f"try {n}") for n in (1, 2))
    text = implement(failures=tries)
    assert [(line.text, line.attempt) for line in lines_of(text) if line.kind is PromptSource.ATTEMPT] == [
        ("- attempt 1: try 1", 1),
        ("try 2", 2),
    ]


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


def test_lines_that_follow_one_another_are_one_group() -> None:
    groups = grouped(lines_of(implement()))
    assert [first.line for first, _ in groups[1:]] == [last.line + 1 for _, last in groups[:-1]]


def test_a_call_of_an_old_record_has_no_lines() -> None:
    assert prompt_lines(model_call(prompt="## Code\nx")) is None

from testing.packages import package, shown_file, shown_symbol

from clean_room_agent.artifacts.prompt_sources import SourcedText
from clean_room_agent.report.prompt_lines import framed
from clean_room_agent.report.why import edit_that_wrote

TEXT = "def f():\n    return 1\n"


def test_what_a_context_frames_is_found_again() -> None:
    text = package(
        shown_file("pkg/a.py", TEXT),
        shown_symbol("pkg/a.py", TEXT, "f", 1, 2, detail="supporting"),
        shown_file("pkg/b.py", "===== file: pkg/a.py (lines 1-9)\n"),
    ).to_prompt_text()
    assert isinstance(text, SourcedText)
    found = [
        (span.source, span.symbol, span.number) for span in framed(text.spans) if span.path == "pkg/a.py"
    ]
    assert found == [("file", "", 1), ("outline", "f", None)]


def test_the_edit_is_found_by_its_file_and_its_line() -> None:
    answer = (
        '<edit file="a.py">\n<search>\nx\n</search>\n<replacement>\ny = 1\n</replacement>\n</edit>\n'
        '<edit file="b.py">\n<search>\nx\n</search>\n<replacement>\n    y = 2\n</replacement>\n</edit>\n'
    )
    assert edit_that_wrote(answer, "b.py", "y = 2") == 1
    assert edit_that_wrote(answer, "a.py", "y = 2") is None
    assert edit_that_wrote("no edit at all", "a.py", "y = 2") is None

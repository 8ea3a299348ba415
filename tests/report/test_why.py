from testing.packages import package, shown_file, shown_symbol

from clean_room_agent.artifacts.prompt_sources import SourcedText
from clean_room_agent.report.prompt_lines import framed

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

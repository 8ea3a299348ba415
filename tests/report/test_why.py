import pytest
from testing.packages import package, shown_file, shown_symbol

from clean_room_agent.report.why import frames, names_file

TEXT = "def f():\n    return 1\n"


def test_what_a_context_frames_is_found_again() -> None:
    text = package(
        shown_file("pkg/a.py", TEXT),
        shown_symbol("pkg/a.py", TEXT, "f", 1, 2, detail="supporting"),
        shown_file("pkg/b.py", "===== file: pkg/a.py (lines 1-9)\n"),
    ).to_prompt_text()
    assert frames(text, "pkg/a.py") == ("file, lines 1-2", "reference f, lines 1-2")
    assert frames(text, "a.py") == ()


@pytest.mark.parametrize(
    ("prompt", "named"),
    [
        ("look at money.py.", True),
        ("1. money.py | found", True),
        ("tally/money.py", False),
        ("money.pyi", False),
        ("money.py.orig", False),
        ("xmoney.py", False),
    ],
)
def test_a_file_is_named_by_its_whole_path_alone(prompt: str, *, named: bool) -> None:
    assert names_file(prompt, "money.py") is named

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from testing.packages import package, shown_file, shown_symbol
from testing.repositories import commit, make_repository

from clean_room_agent.artifacts.prompt_sources import PromptSource, PromptSpan, SourcedText
from clean_room_agent.git.history import diff
from clean_room_agent.git.repository import open_repository
from clean_room_agent.report.prompt_lines import framed
from clean_room_agent.report.why import (
    FileChanged,
    FileShown,
    LineOrigin,
    Why,
    _shown_pieces,
    edit_that_wrote,
    find_origin,
    render_why,
)

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


FIRST = """\
diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,4 +1,5 @@
 one
+one and a half
 two
 three
 four
@@ -10,3 +11,2 @@ def f():
 ten
-eleven
 twelve
diff --git a/b.py b/b.py
new file mode 100644
index 0..3
--- /dev/null
+++ b/b.py
@@ -0,0 +1,1 @@
+only
"""
SECOND = """\
diff --git a/a.py b/a.py
index 2..4 100644
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
-one
+uno
 one and a half
 two
"""


def test_a_file_in_a_prompt_without_frames_is_shown_and_what_came_to_the_same_is_said_once() -> None:
    spans = [
        PromptSpan(first, last, PromptSource.FILE, "a.py", "f", number)
        for first, last, number in [(1, 9, 4), (11, 11, 30), (12, 14, 13)]
    ]
    spans.append(PromptSpan(15, 15, PromptSource.EVIDENCE, "a.py"))
    shown = [
        FileShown(place="direct/change/1", call_id=number, call_type="fill", pieces=_shown_pieces(spans))
        for number in (8, 9)
    ]
    changed = [
        FileChanged(
            place="direct/change/1",
            attempt=number,
            outcome="tests_failed",
            detail="newly failing: t",
            commit="",
            call_id=number,
            edits=(),
        )
        for number in (8, 9)
    ]
    found = Why(
        path="a.py", written=None, decisions=(), shown=tuple(shown), unknown=0, changed=tuple(changed)
    )
    file = io.StringIO()
    Console(width=80, file=file).print(render_why(found, str))
    said = file.getvalue()
    assert "  calls 8-9  direct/change/1 fill: file f, lines 4-15, 30\n" in said
    assert "  direct/change/1: tests failed: newly failing: t\n    calls 8-9\n" in said


@pytest.mark.parametrize(
    ("line", "origin"),
    [
        (1, LineOrigin(change=1, line=1, text="uno")),
        (2, LineOrigin(change=0, line=2, text="one and a half")),
        (3, LineOrigin(change=None, line=2, text="two")),
        (8, LineOrigin(change=None, line=7, text=None)),
        (12, LineOrigin(change=None, line=12, text="twelve")),
        (13, LineOrigin(change=None, line=13, text=None)),
    ],
)
def test_a_line_is_followed_back_through_every_change(line: int, origin: LineOrigin) -> None:
    assert find_origin([FIRST, SECOND], "a.py", line) == origin


def test_a_line_of_a_new_file_was_written_by_the_change_that_made_it() -> None:
    assert find_origin([FIRST, SECOND], "b.py", 1) == LineOrigin(change=0, line=1, text="only")


def test_a_name_that_git_quotes_is_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    top = tmp_path_factory.mktemp("quoted")
    name = 'a "b"\\c.txt'
    make_repository(top, {name: "x\n"})
    base = open_repository(top).head
    commit(top, {name: "x\ny\n"}, "More")
    repo = open_repository(top)
    assert find_origin([diff(repo, base, repo.head)], name, 2) == LineOrigin(change=0, line=2, text="y")


@given(
    st.lists(st.sampled_from("abc"), max_size=12),
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 3), st.lists(st.sampled_from("xyz"), max_size=3)),
        min_size=1,
        max_size=3,
    ),
)
def test_every_line_is_told_right_whatever_was_spliced(
    before: list[str], splices: list[tuple[int, int, list[str]]]
) -> None:
    state: list[tuple[str, int | None]] = [(text, None) for text in before]
    diffs = []
    for number, (start, length, new) in enumerate(splices):
        at = min(start, len(state))
        old = [text for text, _ in state]
        gone = state[at : at + length]
        state[at : at + length] = [(text, number) for text in new]
        diffs.append(_diff(old, at, len(gone), new))
    for line, (text, change) in enumerate(state, start=1):
        origin = find_origin(diffs, "f", line)
        assert origin.change == change
        assert origin.text in {text, None}


def _diff(old: list[str], at: int, gone: int, new: list[str]) -> str:
    """The diff of one splice, with one line of context, as git writes it."""
    before, after = old[max(at - 1, 0) : at], old[at + gone : at + gone + 1]
    first = max(at - 1, 0) + 1
    old_count, new_count = len(before) + gone + len(after), len(before) + len(new) + len(after)
    body = [*(f" {x}" for x in before), *(f"-{x}" for x in old[at : at + gone]), *(f"+{x}" for x in new)]
    body += [f" {x}" for x in after]
    old_start, new_start = first if old_count else first - 1, first if new_count else first - 1
    head = f"@@ -{old_start},{old_count} +{new_start},{new_count} @@"
    return "\n".join(("diff --git a/f b/f", "--- a/f", "+++ b/f", head, *body, ""))

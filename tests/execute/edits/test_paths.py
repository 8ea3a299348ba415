import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.execute.edits.paths import is_control_path, path_fault


@pytest.mark.parametrize(
    "path", ["a.py", "src/pkg/a b.py", ".github/workflows/ci.yml", "ü/ñ.py", ".gitignore", "a/..b"]
)
def test_a_path_inside_the_repository_is_accepted(path: str) -> None:
    assert path_fault(path) == ""
    assert not is_control_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "", "..", "../a", "a/../../b", "/etc/passwd", "~/x", "C:/x", "a\\b", "a//b", "./a", "a/.", "a\nb", "a\u202eb",
        "a\u200b.py", "nul", "con.py", "a/aux.txt", "a:b", "a.py.", " a", "a /b", "x" * 5000, "/".join("a" * 60), "a*",
        "x" * 256, "\u00e9" * 128, "a/\ud800", "\udcff", "a\u2066b", "a\u200db", "a\u2028b", "a\x7f", "a\x85", "\U000e0041", "a\u034fb", "\u3164",
        "a\ufe0f.py", "CON", "nul.txt", "COM1", "lpt9.log", "com\u00b9", "conin$", "a.py::$DATA", "C:", "//server/x", "a|b", "a?",
    ],
)  # fmt: skip
def test_a_path_that_could_leave_or_deceive_is_refused(path: str) -> None:
    assert path_fault(path)


@pytest.mark.parametrize(
    "path",
    [
        ".git/config", "sub/.git/hooks/x", ".GIT/config", ".git", ".clean_room/raw.sqlite", ".gitmodules",
        "a/.gitattributes", ".worktreeinclude", "GIT~1/config", ".g\u200bit/config", ".git./x", ".git::$DATA", "\uff0egit/config", "GI7EB~1/x",
        ".g\u200cit/x", ".gi\u206et/x", "\ufeff.git/x", ".git\u034f/x", ".git\ufe0f/x", ".g\u0131t/x", "\uff27\uff29\uff34~1/x", ".git . /x",
        ".git:x/y", ".git::$INDEX_ALLOCATION/x", "GIT~12/x", "CLEAN_~1/x", "CL12AB~1/x", ".CLEAN_ROOM/x", ".clean\u200d_room/x",
        ".gitmodules ", "GITMOD~1", "gitatt~1", ".GITATTRIBUTES", "sub/.hg/x", ".svn/x", ".jj/x",
    ],
)  # fmt: skip
def test_control_files_are_known_under_every_disguise(path: str) -> None:
    assert is_control_path(path)


@given(st.text())
def test_any_text_is_judged_without_an_exception(path: str) -> None:
    path_fault(path)
    is_control_path(path)

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from testing.packages import package, shown_file, shown_symbol

from clean_room_agent.artifacts.edits import EditCode, PatchEdit
from clean_room_agent.artifacts.plans import TargetFile
from clean_room_agent.execute.edits.rules import (
    EditRules,
    Places,
    elided_line,
    elided_search,
    is_control_path,
    only_symbols_shown,
    path_fault,
    refuse_content,
    refuse_path,
)

TEXT = "def f():\n    return 1\n"
SHOWN = package(shown_file("shown.py", TEXT), shown_symbol("part.py", TEXT, "f", 1, 2))
RULES = EditRules(
    targets=(TargetFile(path="a.py"), TargetFile(path="old.py", role="delete")),
    planned=("tests/test_b.py",),
    protected=("vendor/**",),
    scripts=("run.sh",),
    uneditable={"logo.py": "it is a link"},
)
FILE = "class A:\n    def run(self):\n        x = 1\n        return x\n\n    def stub(self): ...\n"


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
        "a\u200b.py", "nul", "con.py", "a/aux.txt", "a:b", "a.py.", " a", "a /b", "x" * 5000, "/".join(["\u00e9" * 100] * 6), "/".join("a" * 60), "a*",
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


@given(st.text() | st.text(alphabet="./~ab"))
def test_any_text_is_judged_and_what_is_accepted_stays_inside(path: str) -> None:
    inside = f"/top/{path}"
    assert path_fault(path) or os.path.normpath(inside) == inside
    assert is_control_path(f"{path}/.git/config")


def edit(path: str, kind: str = "edit") -> PatchEdit:
    return PatchEdit(kind=kind, file_path=path)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (edit("a.py"), None, ""),
        (edit("shown.py"), None, ""),
        (edit("old.py", "delete"), None, ""),
        (edit("other.py"), EditCode.WRONG_FILE, "neither a target of this step nor shown; edit only: a.py"),
        (edit("../up.py"), EditCode.WRONG_FILE, ""),
        (edit(".git/config"), EditCode.PROTECTED, "steers git or cra"),
        (edit("vendor/x.py"), EditCode.PROTECTED, "[edit].protected"),
        (edit("x.egg-info/entry_points.txt"), EditCode.PROTECTED, "tells Python what is installed"),
        (edit("src/x.pth", "create"), EditCode.PROTECTED, "tells Python what is installed"),
        (edit("logo.py"), EditCode.PROTECTED, "it is a link"),
        (edit("tests/test_a.py"), EditCode.PROTECTED, "decides whether tests pass"),
        (edit("run.sh"), EditCode.PROTECTED, "decides whether tests pass"),
        (edit("tests/test_b.py"), EditCode.WRONG_FILE, "neither a target"),
        (edit("a.py", "delete"), EditCode.PROTECTED, "is to be deleted"),
        (edit("shown.py", "create"), EditCode.WRONG_FILE, "not a target"),
    ],
)
def test_an_edit_stays_within_its_step(change: PatchEdit, code: EditCode | None, said: str) -> None:
    refusal = refuse_path(change, RULES, SHOWN, exists=True)
    assert (None if refusal is None else refusal.code) == code
    assert refusal is None or said in refusal.detail


@pytest.mark.parametrize(
    ("path", "before", "after", "refused"),
    [
        ("pyproject.toml", "[tool.x]\na = 1\n", "[tool.x]\na = 2\n", True),
        ("pyproject.toml", "[project]\nname = 'a'\n", "[project]\nname = 'b'\n", False),
        ("pyproject.toml", "[project]\n", "[project\n", True),
        ("pyproject.toml", "", "[project.entry-points.pytest11]\na = 'b'\n", True),
        ("web/package.json", "{}", '{"imports": {"#a": "./b.js"}}', True),
        ("go.mod", "module a\n", "module a\nreplace b => ../c\n", True),
        ("go.mod", "module a\n", "module a\nrequire b v1\n", False),
        ("web/package.json", '{"scripts": {}}', '{"scripts": {"test": "true"}}', True),
        ("web/package.json", '{"version": "1"}', '{"version": "2"}', False),
        ("a.toml", "x", "y", False),
    ],
)
def test_how_tools_and_tests_run_is_changed_by_plan_alone(
    path: str, before: str, after: str, *, refused: bool
) -> None:
    assert (refuse_content(path, before, after, RULES) is not None) is refused
    planned = EditRules(targets=(TargetFile(path=path),))
    assert refuse_content(path, before, after, planned) is None


def test_of_a_file_shown_in_part_only_what_is_shown_may_change() -> None:
    assert only_symbols_shown("part.py", RULES, SHOWN)
    assert not only_symbols_shown("shown.py", RULES, SHOWN)
    assert not only_symbols_shown("a.py", RULES, SHOWN)


@pytest.mark.parametrize(
    "line",
    [
        "# ...", "// ...", "/* ... */", "<!-- ... -->", "# …", "# ... existing code ...", "// ... rest of the file",
        "... rest unchanged ...", "[... rest of code ...]", "# rest of the function", "# Rest of the code remains the same",
        "# rest of the implementation unchanged", "// existing code", "# existing imports here", "# unchanged",
        "# same as before", "# remaining methods unchanged", "// other methods remain unchanged", "# ... (other methods)",
        "# no changes needed", "# code omitted for brevity", "{/* ... */}", "# everything else stays the same",
        "rest of code unchanged...",
    ],
)  # fmt: skip
def test_a_line_that_leaves_something_out_is_found(line: str) -> None:
    assert elided_line("a.py", f"x = 1\n    {line}\ny = 2", old="", file_text=FILE) == line
    assert elided_search(f"x = 1\n{line}", FILE) == line


@pytest.mark.parametrize(
    "line",
    [
        "# the rest is up to the caller", "# process the remaining items...", "# other imports", "x = a[..., 0]",
        'print("...")', "# Rest of the arguments are passed on", "// keep the order unchanged for callers", "return ...",
        "# existing users keep their settings", "# previous value", "raise ValueError('code omitted')", "# more below",
        "# This is the rest of the story, as told before...",
        "#     ...", "# Same as above.",
    ],
)  # fmt: skip
def test_ordinary_lines_are_no_elisions(line: str) -> None:
    assert elided_line("a.py", f"x = 1\n{line}\ny = 2", old="", file_text=FILE) == ""


@pytest.mark.parametrize(
    ("path", "new", "found"),
    [
        ("a.py", "def run(self):\n    ...", True),
        ("a.py", "def other(self):\n    ...", False),
        ("a.py", "def other(self):\n    '''Doc.'''\n    ...", False),
        ("a.py", "def other(self):\n    x = 1\n    ...", True),
        ("a.py", "def stub(self):\n    ...", False),
        ("a.py", "class B(Exception):\n    ...", False),
        ("a.py", "class B:\n    ...\n    def new(self):\n        pass", True),
        ("a.py", "with raises(E):\n    ...", False),
        ("a.py", "@overload\ndef run(self):\n    ...", False),
        ("a.py", "class P(Protocol):\n    def run(self):\n        ...", False),
        ("a.py", "def run(\n    self,\n):\n    ...", True),
        ("a.py", ">>> for x in y:\n...     x\n...\n1", False),
        ("a.py", "...", True),
        ("a.py", "def run(self):  # ok\n    # soon\n    ...", True),
        ("a.py", "if x:  # ok\n    # soon\n    ...", False),
        ("a.py", 'x = """\n<ul>\n...\n</ul>\n"""', False),
        ("a.py", "Traceback (most recent call last):\n...\nValueError", False),
        ("a.pyi", "def run(self):\n    ...", False),
        ("a.md", "one\n...\ntwo", False),
        ("a.js", "f() {\n  ...\n}", True),
        ("a.js", "f(\n  ...args,\n)", False),
    ],
)
def test_bare_dots_are_code_only_where_they_are_a_whole_body(path: str, new: str, found: bool) -> None:
    assert bool(elided_line(path, new, old="", file_text=FILE)) is found


def test_what_the_file_has_may_stay() -> None:
    assert elided_line("a.py", "# ...\ny", old="# ...", file_text="x\n# ...\n") == ""
    assert elided_line("a.js", "...\ny", old="...\nx", file_text="...\nx\n") == ""


def test_an_edit_stays_within_the_files_that_the_user_names() -> None:
    rules = replace(RULES, places=Places(("a.py", "shown.py"), only=frozenset({"shown.py"})))
    refusal = refuse_path(edit("a.py"), rules, SHOWN, exists=True)
    assert refusal is not None
    assert (refusal.code, refusal.detail) == (
        EditCode.PROTECTED,
        "a.py is none of the files that --file names: shown.py",
    )
    assert refuse_path(edit("shown.py"), rules, SHOWN, exists=True) is None
    assert refuse_path(edit("a.py", "create"), rules, SHOWN, exists=False) is not None
    assert refuse_path(edit("old.py", "delete"), rules, SHOWN, exists=True) is not None


PLACES = Places(
    ("a.py", "pkg/mod.py", "pkg/deep/x.py", "README.md", "caf\u00e9/a.py"),
    {"link.py": "a link", "lib": "a submodule"},
)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("a.py", True),
        ("pkg/mod.py", False),
        ("new.py", False),
        ("a.py/x.py", False),
        ("tests/test_new.py", True),
        ("conftest.py", False),
    ],
)
def test_where_the_user_names_files_only_these_and_tests_are_changed(path: str, *, allowed: bool) -> None:
    places = Places(("a.py", "pkg/mod.py"), only=frozenset({"a.py"}))
    assert (places.outside(path) == "") is allowed
    assert (places.obstacle(path) == "") is allowed
    if not allowed:
        assert places.outside(path) == f"{path} is none of the files that --file names: a.py"
    assert "pkg/mod.py" in places, "it is there, nevertheless"


@pytest.mark.parametrize(
    ("path", "obstacle"),
    [
        ("a.py", ""),
        ("new.py", ""),
        ("pkg/new.py", ""),
        ("pkg/deep/more/new.py", ""),
        ("a.pyx", ""),
        ("a.py/b.py", "a.py is a file, so nothing can be inside it"),
        ("a.py/b/c.py", "a.py is a file, so nothing can be inside it"),
        ("link.py", "link.py is a link"),
        ("link.py/x.py", "link.py is a link, so nothing can be inside it"),
        ("lib", "lib is a submodule"),
        ("lib/x.py", "lib is a submodule, so nothing can be inside it"),
        ("pkg", "pkg is a folder"),
        ("pkg/deep", "pkg/deep is a folder"),
        ("readme.md", "only letter case or Unicode form tells it from README.md"),
        ("Pkg/new.py", "only letter case or Unicode form tells it from pkg"),
        ("pkg/MOD.py", "only letter case or Unicode form tells it from pkg/mod.py"),
        ("cafe\u0301/b.py", "only letter case or Unicode form tells it from caf\u00e9"),
        ("LIB", "only letter case or Unicode form tells it from lib"),
    ],
)
def test_what_is_in_the_way_is_said(path: str, obstacle: str) -> None:
    assert PLACES.obstacle(path) == obstacle


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("a.py/b.py", {"a.py"}),
        ("readme.md", {"README.md"}),
        ("pkg/deep", {"pkg/deep/x.py"}),
        ("pkg", {"pkg/deep/x.py", "pkg/mod.py"}),
        ("Pkg/new.py", {"pkg/deep/x.py", "pkg/mod.py"}),
    ],
)
def test_what_was_deleted_is_in_nobodys_way(path: str, gone: set[str]) -> None:
    assert PLACES.obstacle(path)
    assert PLACES.obstacle(path, gone=gone) == ""


@pytest.mark.parametrize(
    ("path", "made"),
    [("new/x.py", "new"), ("new", "new/x.py"), ("New.py", "new.py"), ("New/y.py", "new/x.py")],
)
def test_what_was_created_before_is_in_the_way(path: str, made: str) -> None:
    assert PLACES.obstacle(path) == ""
    assert PLACES.obstacle(path, made={made})


PATH = st.lists(st.sampled_from("abA."), min_size=1, max_size=4).map("/".join)


def prefixes(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def is_free(path: str, files: set[str]) -> bool:
    if path in files:
        return True
    every = {prefix for file in files for prefix in prefixes(file)}
    for prefix in prefixes(path):
        if prefix in files:
            return False
        if prefix not in every:
            parent = prefix.rpartition("/")[0]
            return not any(
                other.lower() == prefix.lower() for other in every if other.rpartition("/")[0] == parent
            )
    return False


@given(st.lists(PATH, max_size=8), PATH)
def test_the_search_agrees_with_a_look_at_every_path(paths: list[str], path: str) -> None:
    files = {one for one in paths if not any(other.startswith(f"{one}/") for other in paths)}
    assert (Places(files).obstacle(path) == "") is is_free(path, files)

import pytest

from clean_room_agent.execute.edits.elision import elided_line, elided_search

FILE = "class A:\n    def run(self):\n        x = 1\n        return x\n\n    def stub(self): ...\n"


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

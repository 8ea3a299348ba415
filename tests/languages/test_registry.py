from pathlib import Path

import pytest
from tests.languages.outline import read, table_of

from clean_room_agent.languages import registry
from clean_room_agent.languages.registry import language_at

LANGUAGES = Path(__file__).parents[1] / "assets" / "languages"
TABLES = sorted(LANGUAGES.rglob("*.expected"))


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.name)
def test_a_file_says_what_its_table_says(table: Path) -> None:
    assert table_of(table.with_suffix("")) == table.read_text(encoding="utf-8")


def test_each_language_has_a_table() -> None:
    """Made by `python -m tests.languages.outline FILE > FILE.expected`, and read by a person."""
    have = {language_at(table.with_suffix("").name.removesuffix(".txt")) for table in TABLES}
    assert [type(one).__name__ for one in registry.LANGUAGES if one not in have] == []


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.name)
def test_crlf_changes_nothing_but_signatures(table: Path) -> None:
    path = table.with_suffix("")
    text, name = path.read_text(encoding="utf-8"), path.name.removesuffix(".txt")
    _, unix = read(text, name)
    _, dos = read(text.replace("\n", "\r\n"), name)
    assert [(one.name, one.start_line, one.end_line) for one in unix.definitions] == [
        (one.name, one.start_line, one.end_line) for one in dos.definitions
    ]


def test_no_definition_is_read_twice() -> None:
    for table in TABLES:
        path = table.with_suffix("")
        parsed, _ = read(path.read_text(encoding="utf-8"), path.name.removesuffix(".txt"))
        places = [(one.start, one.name, one.kind) for one in parsed.definitions]
        assert len(places) == len(set(places))


def test_offsets_are_bytes_whatever_stands_before() -> None:
    parsed, _ = read("größe = 'ÄÖÜ'  # Maß\nimport os\ndef f(ä): 'Größe'\n", "a.py")
    source = "größe = 'ÄÖÜ'  # Maß\nimport os\ndef f(ä): 'Größe'\n".encode()
    assert [(one.name, one.signature, one.doc) for one in parsed.definitions] == [
        ("f", "def f(ä):", "Größe"),
        ("größe", "größe = 'ÄÖÜ'", ""),
    ]
    assert [comment.text for comment in parsed.comments] == ["Maß"]
    assert source[parsed.imports[0].start :].startswith(b"import os")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from a import (b)\n", [("a", ("b",), ("b",))]),
        ("from a import (b as c,  # why\n  d,)\n", [("a", ("b", "d"), ("c", "d"))]),
        ("from . a . b import \\\n  c\n", [(".a.b", ("c",), ("c",))]),
        (
            "from ... import c;import d.e as f, g\n",
            [("...", ("c",), ("c",)), ("d.e", (), ("f",)), ("g", (), ())],
        ),
        ("def f():\n\tfrom .a import*\n", [(".a", ("*",), ("*",))]),
    ],
)
def test_python_imports_say_what_they_bind(text: str, found: list[object]) -> None:
    parsed, _ = read(text, "a.py")
    assert [(one.target, one.names, one.aliases) for one in parsed.imports] == found


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("if TYPE_CHECKING:\n  import a\n", "type_ref"),
        ("if (t.TYPE_CHECKING):\n  if x:\n    import a\n", "type_ref"),
        ("if x: pass\nelif TYPE_CHECKING:\n  import a\n", "type_ref"),
        ("if TYPE_CHECKING:\n  pass\nelse:\n  import a\n", "import"),
        ("if not TYPE_CHECKING:\n  pass\nelse:\n  import a\n", "type_ref"),
        ("if not TYPE_CHECKING:\n  import a\n", "import"),
        ("if TYPE_CHECKING or x:\n  import a\n", "import"),
        ("if x: # TYPE_CHECKING\n  import a\n", "import"),
        ("'''\nif TYPE_CHECKING:\n'''\nimport a\n", "import"),
    ],
)
def test_what_only_type_checkers_import_is_a_type_reference(text: str, kind: str) -> None:
    parsed, _ = read(text, "a.py")
    assert [one.kind for one in parsed.imports] == [kind]


@pytest.mark.parametrize(
    ("literal", "doc"),
    [
        ('"""One."""', "One."),
        ("'One.'", "One."),
        ('r"""a\\n"""', "a\\n"),
        ('"""a\\x41\\u00e4\\N{DEGREE SIGN}\\101\\d"""', "aAä°A\\d"),
        ('"""\n    One.\n\n      Two.\n    \n    Three.\n    """', "One.\n\n  Two.\n\nThree."),
        ("\"a\" 'b'", "ab"),
        ('b"bytes"', ""),
        ('f"{x}"', ""),
        ('"a" + "b"', ""),
        ('"a", "b"', ""),
        ("u'u'", "u"),
        ('""', ""),
    ],
)
def test_a_docstring_is_what_python_says(literal: str, doc: str) -> None:
    for text in (f"def f():\n    {literal}\n", f"def f():\n    # first\n    {literal}\n"):
        parsed, _ = read(text, "a.py")
        assert parsed.definitions[0].doc == doc


def test_broken_source_is_read_as_far_as_it_goes() -> None:
    for name in ("a.py", "a.js", "a.ts", "a.tsx"):
        for text in (
            "class",
            "def f(",
            "@",
            "import",
            "from",
            "x = (",
            "function",
            "class A { m(",
            "const",
            "/**",
        ):
            read(text, name)
    parsed, _ = read("function good() {}\nfunction (\nclass Late {}\n", "a.js")
    assert parsed.definitions[0].name == "good"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("# noqa: E501, F401\n", []),
        ("# type: ignore[arg-type]\n", []),
        ("# type: ignore  # because the stubs are wrong\n", ["because the stubs are wrong"]),
        ("# pylint: disable=too-many, invalid-name\n", []),
        ("# pragma: no cover - only on Windows\n", ["only on Windows"]),
        ("# typed: no directive\n", ["typed: no directive"]),
    ],
)
def test_of_what_is_for_tools_only_the_reason_is_a_comment(text: str, kept: list[str]) -> None:
    parsed, _ = read(text, "a.py")
    assert [comment.text for comment in parsed.comments] == kept


def test_a_documentation_of_several_variables_is_no_comment() -> None:
    parsed, _ = read("/** Both. */\nconst a = 1, b = 2\n", "a.js")
    assert [(one.name, one.doc) for one in parsed.definitions] == [("a", "Both."), ("b", "")]
    assert parsed.comments == []


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.name)
def test_a_file_cut_off_anywhere_is_read(table: Path) -> None:
    path = table.with_suffix("")
    text, name = path.read_text(encoding="utf-8"), path.name.removesuffix(".txt")
    for end in range(0, len(text), 41):
        parsed, _ = read(text[:end], name)
        for one in parsed.definitions:
            assert 0 <= one.start <= one.end <= len(text.encode())
            assert 1 <= one.start_line <= one.end_line
    parsed, _ = read("class Meta:\n    ", "a.py")
    assert [one.name for one in parsed.definitions] in ([], ["Meta"])

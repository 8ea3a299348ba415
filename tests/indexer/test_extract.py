from pathlib import Path

import pytest

from clean_room_agent.indexer.extract import ExtractedFile, extract


def facts_of(folder: Path, text: str | bytes, name: str = "shapes.py") -> ExtractedFile:
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    facts = extract(folder, name, max_bytes=2_000_000)
    assert isinstance(facts, ExtractedFile)
    return facts


def test_what_parses_is_read_and_the_first_error_is_named(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, "def good(): pass\n\ndef bad(:\n    x = (\n\nclass Late: pass\n")
    assert facts.file.parse_error == "line 3, column 1"
    assert facts.symbols[0][1] == "good"


@pytest.mark.parametrize(
    ("data", "signature", "doc"),
    [
        ('# coding: latin-1\ndef f(é):\n    "Größe"\n'.encode("latin-1"), "def f(é):", "Größe"),
        ('def f(é):\r\n    """Größe\r\n    zwei"""\r\n'.encode(), "def f(é):", "Größe\nzwei"),
        (b"\xef\xbb\xbf" + 'def f(é):\n    "Größe"\n'.encode(), "def f(é):", "Größe"),
        ('def f(é):\n    "Größe"\n'.encode("utf-16"), "def f(é):", "Größe"),
    ],
    ids=["latin-1", "crlf", "bom", "utf-16"],
)
def test_encodings_and_line_ends_do_not_show(tmp_path: Path, data: bytes, signature: str, doc: str) -> None:
    facts = facts_of(tmp_path, data)
    assert [symbol[5] for symbol in facts.symbols] == [signature]
    assert [found[1] for found in facts.docstrings] == [doc]


def test_deep_nesting_is_no_problem(tmp_path: Path) -> None:
    functions = "".join(f"{' ' * depth}def f{depth}():\n" for depth in range(90)) + " " * 90 + "pass\n"
    facts = facts_of(tmp_path, "x = " + "(" * 5000 + ")" * 5000 + "\n" + functions)
    assert len(facts.symbols) == 91
    assert facts.symbols[-1][1].count(".") == 89


def test_a_file_above_a_megabyte_is_text_alone(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, "def needle(): pass\n" + "x = 1  # filler\n" * 70_000)
    assert facts.symbols == []
    assert facts.file.language == "python"


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, b"", "empty_module.py")
    assert (facts.symbols, facts.docstrings, facts.comments, facts.file.parse_error) == ([], [], [], None)

from pathlib import Path

import pytest

from clean_room_agent.orchestrator.test_runs.failure_reports import SourceTree, decisive_lines

PYTHON = """import a

def test_it():
    with raises(ValueError):
        check(
            1,
            2,
        )
    if x: fail(); stop()
    for n in (
        1, 2,
    ):
        pass
"""
SCRIPT = """describe('a', () => {
  it('b', () => {
    expect(
      f(1),
    ).toBe(2);
  });
});
"""


@pytest.fixture
def tree(tmp_path: Path) -> SourceTree:
    (tmp_path / "t.py").write_text(PYTHON)
    (tmp_path / "t.test.ts").write_text(SCRIPT)
    (tmp_path / "broken.py").write_text("def f(:\n    assert  1\n")
    (tmp_path / "notes.vue").write_text("<script>\n  expect(1).toBe(2)\n")
    (tmp_path / "link.py").symlink_to(tmp_path / "t.py")
    return SourceTree(tmp_path)


@pytest.mark.parametrize(
    ("path", "line", "statement"),
    [
        ("t.py", 1, "import a"),
        ("t.py", 4, "with raises(ValueError):"),
        ("t.py", 5, "check(\n    1,\n    2,\n)"),
        ("t.py", 6, "check(\n    1,\n    2,\n)"),
        ("t.py", 9, "if x: fail(); stop()"),
        ("t.py", 11, "for n in (\n    1, 2,\n):"),
        ("t.test.ts", 4, "expect(\n  f(1),\n).toBe(2);"),
        ("broken.py", 2, "assert  1"),
        ("notes.vue", 2, "expect(1).toBe(2)"),
        ("t.py", 99, ""),
        ("t.py", 0, ""),
        ("gone.py", 1, ""),
        ("link.py", 1, ""),
        ("../t.py", 1, ""),
    ],
)
def test_the_statement_at_a_line_is_given_whole(
    tree: SourceTree, path: str, line: int, statement: str
) -> None:
    assert tree.statement(path, line) == statement


PYTEST = ["AssertionError: words", "assert 'a...b' == 'a...c'", "  ", "  Skipping 90 identical leading characters in diff, use -v to show",
          "  - ab", "  + ac", "  ?  ^"]  # fmt: skip
UNITTEST = ["AssertionError: {'a': 1} != {'a': 2}", "- {'a': 1}", "?       ^", "", "+ {'a': 2} : own words"]
WHERE = ["AssertionError: assert 3 == 4", " +  where 3 = len([1, 2, 3])"]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (PYTEST, ["AssertionError: words"]),
        (UNITTEST, ["AssertionError: {'a': 1} != {'a': 2}", "own words"]),
        (WHERE, WHERE),
        (["Error: expect(received).toBe(expected) // Object.is equality", "", "Expected: 3", "Received: 2"],
         ["Error: expect(received).toBe(expected)"]),
        (["AssertionError: expected { a: 1, …(2) } to deeply equal { a: 1, …(2) }"], ["AssertionError"]),
        (["AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:", "+ actual - expected", "", "+ 1", "- 2"],
         ["AssertionError: Expected values to be strictly equal:"]),
        (["Expected values to be strictly equal:", "", "+ actual - expected"], ["Expected values to be strictly equal"]),
        (["expected [ Array(60) ] to equal [ Array(60) ]"], ["AssertionError"]),
    ],
)  # fmt: skip
def test_words_do_not_show_the_values_once_more(lines: list[str], told: list[str]) -> None:
    assert decisive_lines(lines, values_known=True) == told


def test_without_values_only_hints_stay_out() -> None:
    assert decisive_lines(PYTEST, values_known=False) == [PYTEST[0], PYTEST[1], "  - ab", "  + ac"]

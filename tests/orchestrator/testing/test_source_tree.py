from pathlib import Path

import pytest

from clean_room_agent.orchestrator.testing.source_tree import SourceTree

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

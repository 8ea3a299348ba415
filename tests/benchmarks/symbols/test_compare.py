from pathlib import Path

from benchmarks.symbols.__main__ import section
from benchmarks.symbols.compare import KIND, LINES, MISSING, compare
from benchmarks.symbols.peers import Thing, by_ast
from benchmarks.symbols.reasons import CTAGS, SYNTAX

OURS = {
    "a.py": [
        Thing("f", "function", 1, 5),
        Thing("g", "function", 7, 9),
        Thing("A", "class", 11, 30),
        Thing("extra", "method", 12, 13),
    ]
}


def lines(_path: str) -> list[str]:
    return ["code"] * 8 + ["    # a comment"] + ["code"] * 30


def test_what_is_the_same_agrees_and_the_rest_has_its_kind() -> None:
    theirs = {
        "a.py": [
            Thing("f", "function", 1, 5),
            Thing("g", "function", 7, 8),
            Thing("A", "interface", 11, 30),
            Thing("none", "method", 20, 21),
        ],
        "not_ours.py": [Thing("f", "function", 1, 5)],
    }
    found = compare(OURS, theirs, lines=lines)
    assert (found.named, found.agreed) == (4, 1)
    assert [one.what for one in found.differences] == [LINES, KIND, MISSING]
    assert {title: len(some) for title, some in found.explained(SYNTAX).items()} == {
        "comments at the end": 1,
        "": 2,
    }
    assert found.share(SYNTAX) == 25.0
    assert [thing.name for _, thing in found.only_ours] == ["g", "extra"]


def test_a_name_given_twice_agrees_twice_at_most() -> None:
    theirs = {"a.py": [Thing("f", "function", 1, 5), Thing("f", "function", 1, 5)]}
    assert compare(OURS, theirs, lines=lines).agreed == 1


def test_a_peer_without_decorators_and_ends_agrees_within_our_lines() -> None:
    judge = {"a.py": [Thing("f", "function", 1, 5)]}
    theirs = {
        "a.py": [Thing("f", "function", 2, 0), Thing("A", "class", 12, 29), Thing("odd", "class", 3, 0)]
    }
    found = compare(OURS, theirs, lines=lines, judge=judge)
    assert found.agreed == 1
    assert [one.is_confirmed for one in found.differences] == [False, False]
    assert found.share(CTAGS) == 100.0


def test_ast_knows_scopes_decorators_and_conditions(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "@d\ndef f():\n    class A:\n        if x:\n            def m(self):\n                def g(): pass\n"
    )
    (tmp_path / "broken.py").write_text("def (:\n")
    assert by_ast(tmp_path, ["a.py", "broken.py"]) == {
        "a.py": [
            Thing("f", "function", 1, 6),
            Thing("A", "class", 3, 6),
            Thing("m", "method", 5, 6),
            Thing("g", "function", 6, 6),
        ]
    }


def test_the_section_says_what_was_left_out_and_why() -> None:
    theirs = {"a.py": [Thing("f", "function", 1, 5), Thing("m", "method", 2, 3, "type literal")]}
    text = section([("repo", "peer", compare(OURS, theirs, lines=lines), SYNTAX)])
    assert "| repo | peer | 2 | 1 | 1 | 100.00 % |" in text
    assert "`a.py` method `m` 2-3" in text
    assert "- **member of an anonymous type**: " in text

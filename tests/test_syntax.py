import pytest

from clean_room_agent import syntax


@pytest.mark.parametrize(
    ("path", "grammar"),
    [
        ("a/b.py", "python"),
        ("B.PYI", "python"),
        ("x.cjs", "javascript"),
        ("x.mts", "typescript"),
        ("x.d.ts", "typescript"),
        ("x.tsx", "tsx"),
        ("x.md", None),
        ("py", None),
    ],
)
def test_a_suffix_chooses_the_grammar(path: str, grammar: str | None) -> None:
    assert syntax.grammar_of(path) == grammar


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        ("a.py", b"def f(): pass\n", b"def f(:\n"),
        ("a.js", b"const f = () => <p>x</p>;\n", b"function (\n"),
        ("a.ts", b"const f = <T>(x: T): T => x;\n", b"type = ;\n"),
        ("a.tsx", b"const f = <p>{1 as number}</p>;\n", b"const f = <p>;\n"),
    ],
)
def test_errors_are_told_from_good_source(path: str, good: bytes, bad: bytes) -> None:
    assert syntax.parses_cleanly(good, path) is True
    assert syntax.parses_cleanly(bad, path) is False


def test_nothing_is_said_of_what_is_not_parsed() -> None:
    assert syntax.parses_cleanly(b"# x", "a.md") is None
    assert syntax.parses_cleanly(b"x" * (syntax.MAX_PARSED_BYTES + 1), "a.py") is None

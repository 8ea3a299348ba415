import random

import pytest

from clean_room_agent import syntax

WORTH_BREAKING_OFF = 40_000
"""Bytes of nonsense that are not parsed to their end."""


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


def minified(size: int) -> bytes:
    piece = b"var a0=function(e,t){return e?t.map((n)=>n+1):[1,2,3]};a0.b={c:'d',e:/f/g};if(a0)for(;;){break}"
    return (piece * (size // len(piece) + 1))[: size // len(piece) * len(piece)]


@pytest.mark.parametrize(
    ("source", "grammar"),
    [
        (b"x = [" + b"1, " * 100_000 + b"]\n", "python"),
        (b"x = " + b"(" * 10_000 + b")" * 10_000 + b"\n", "python"),
        (b"x = " + b"[" * 10_000 + b"]" * 10_000 + b"\n", "javascript"),
        (minified(300_000), "javascript"),
        (b"x = (\n" + b"def g():\n    return 1\n\n" * 20_000, "python"),
        (b"{{#if x}}\n" + b"function f(a) { return a.b() }\n" * 10_000, "javascript"),
    ],
    ids=["list", "parentheses", "brackets", "minified", "broken", "template"],
)
def test_large_code_is_parsed(source: bytes, grammar: str) -> None:
    assert syntax.parse(source, grammar).root_node.end_byte > 0


@pytest.mark.parametrize("grammar", ["python", "javascript", "typescript", "tsx"])
@pytest.mark.parametrize("kind", ["bytes", "punctuation", "open", "nested"])
def test_what_is_no_code_is_given_up_at_once(kind: str, grammar: str) -> None:
    chance = random.Random(1)
    source = {
        "bytes": lambda: chance.randbytes(WORTH_BREAKING_OFF),
        "punctuation": lambda: bytes(
            chance.choices(b"(){}[]<>;:,.=+-*/'\"`!&|?\n ax1", k=2 * WORTH_BREAKING_OFF)
        ),
        "open": lambda: b"(" * WORTH_BREAKING_OFF,
        "nested": lambda: b"x = " + b"[" * WORTH_BREAKING_OFF + b"]" * WORTH_BREAKING_OFF,
    }[kind]()
    messages = set()
    for _ in range(1 if kind == "bytes" else 2):  # those take longest
        with pytest.raises(syntax.ParseGivenUp) as found:
            syntax.parse(source, grammar)
        messages.add(str(found.value))
    assert len(messages) == 1


def test_nothing_is_said_of_what_is_given_up() -> None:
    assert syntax.parses_cleanly(b"(" * 100_000, "a.py") is None


@pytest.mark.parametrize(
    ("path", "source", "lines"),
    [
        ("a.py", '"""Doc."""\n\nimport os\nfrom a import (\n    b,\n)\n\nX = 1\n', ((3, 3), (4, 6))),
        ("a.py", "try:\n    import x\nexcept ImportError:\n    x = None\n", ((1, 4),)),
        ("a.py", "if TYPE_CHECKING:\n    from a import b\n", ((1, 2),)),
        ("a.py", "if debug:\n    run()\n", ()),
        ("a.py", "def f():\n    import os\n", ()),
        ("a.py", "try:\n    import x\n" + "    y()\n" * 40 + "except E:\n    pass\n", ()),
        ("a.js", "'use strict';\nconst a = require('a');\nvar b = 1;\n", ((2, 2),)),
        ("a.ts", "import type { A } from './a';\nexport const x = 1;\nimport './b';\n", ((1, 1), (3, 3))),
        ("a.md", "import os\n", ()),
    ],
)
def test_imports_at_the_top_level_are_found_by_their_lines(
    path: str, source: str, lines: tuple[tuple[int, int], ...]
) -> None:
    assert syntax.import_lines(source.encode(), path) == lines


@pytest.mark.parametrize("name", ["x", "xx", "xxx", "xxxx"])
def test_a_character_may_stand_where_the_bytes_are_cut(name: str) -> None:
    source = f"{name} = '{'é€😀' * syntax.CHUNK}'\ny = 2\n".encode()
    root = syntax.parse(source, "python").root_node
    assert not root.has_error
    assert [source[node.start_byte : node.end_byte] for node in syntax.walk(root)] == [
        node.text for node in syntax.walk(root)
    ]
    assert root.children[-1].text == b"y = 2"

"""Counting references against another tool's answers."""

import ast
from pathlib import Path

from benchmarks.references.compare import Symbols, compare
from benchmarks.references.jedi_answers import bound, occurrences
from benchmarks.references.scip import fields, key, named, read_answers, varints
from testing.references.python_world import PythonWorld

SOURCES = {
    "lib.py": "class A:\n    x = 1\n    def f(self):\n        self.x = self.y = 2\ndef g(p): ...\nv = 1\nv = 2\n",
    "app.py": "from lib import A, g, v\ndef use(a: A):\n    a.f()\n    g(v)\n    a.x\n    later()\n",
}


def test_definitions_are_symbols_or_not() -> None:
    symbols = Symbols(PythonWorld(SOURCES).nested)
    for target, is_attribute, found in (
        (("lib.py", 1, "A", "class"), False, "A"),
        (("lib.py", 3, "f", "function"), True, "A.f"),
        (("lib.py", 4, "x", "statement"), True, "A.x"),
        (("lib.py", 4, "x", "statement"), False, None),
        (("lib.py", 4, "y", "statement"), True, None),
        (("lib.py", 5, "p", "param"), False, None),
        (("lib.py", 7, "v", "statement"), False, "v"),
        (("lib.py", 1, "lib", "module"), False, None),
        (("", 0, "A", "class"), False, None),
    ):
        name = symbols.defined(target, is_attribute=is_attribute)
        assert name == (None if found is None else ("lib.py", found))


def test_pairs_are_counted() -> None:
    world = PythonWorld(SOURCES)
    ours = {path: world.resolve(path) for path in world.names}
    found = compare(
        world.nested,
        ours,
        [
            (
                "app.py",
                [
                    (2, "A", False, [("lib.py", 1, "A", "class")]),
                    (3, "f", True, [("lib.py", 5, "g", "function"), ("lib.py", 3, "f", "function")]),
                    (4, "g", False, [("other.py", 5, "g", "function")]),
                    (4, "v", False, []),
                    (6, "later", False, [("lib.py", 5, "g", "function")]),
                    (1, "A", False, [("lib.py", 1, "A", "class")]),
                ],
            )
        ],
    )
    assert (found.groups, found.found, found.found_sure) == (3, 3, 3)
    assert found.right_sure == 3
    assert found.wrong_sure == 0
    assert {callee for _, callee, _, _ in found.unknown_pairs} == {("lib.py", "v"), ("lib.py", "A.x")}


def test_what_jedi_is_asked() -> None:
    source = "import m\ndef f(a):\n    b = a.x\n    print(m.n.o, b, m.n.o)\n    def g(): return g, h\nv = m\n"
    assert occurrences(source) == [
        (3, 10, "x", True),
        (4, 10, "m", False),
        (4, 12, "n", True),
        (4, 14, "o", True),
        (5, 20, "g", False),
        (5, 23, "h", False),
        (6, 4, "m", False),
    ]


def test_names_that_a_function_binds() -> None:
    tree = ast.parse(
        "def f(a, *b, c=1, **d):\n    global e\n    e = g = 1\n    import h\n    def i(): j = 1\n"
    )
    assert isinstance(tree.body[0], ast.FunctionDef)
    assert bound(tree.body[0]) == {"a", "b", "c", "d", "g"}


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return bytes([number << 3, value])
    size = len(value)
    sized = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    return bytes([number << 3 | 2]) + sized + value


def test_an_index_of_scip_python_is_read(tmp_path: Path) -> None:
    symbol = b"scip-python python p 1 `src.lib`/A#f()."
    use = b"scip-python python p 1 lib/A#f()."
    lost = b"scip-python python p 1 lib/gone#"
    outside = b"scip-python python os 1 os/getcwd()."
    defined = field(1, bytes([2, 8, 9])) + field(2, symbol) + field(3, 1)
    lib = field(1, b"lib.py") + field(2, defined)
    uses = [(2, 6, use), (3, 4, outside), (4, 4, lost), (5, 4, b"local 1")]
    app = field(1, b"app.py") + b"".join(
        field(2, field(1, bytes([line, column, 9])) + field(2, name)) for line, column, name in uses
    )
    (tmp_path / "index.scip").write_bytes(field(2, lib) + field(2, app))
    for path, text in SOURCES.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    answers = dict(read_answers(tmp_path / "index.scip", tmp_path))
    assert answers["lib.py"] == []
    assert answers["app.py"] == [
        (3, "f", True, [("lib.py", 3, "f", "function")]),
        (4, "getcwd", False, [("", 0, "getcwd", "function")]),
        (5, "gone", False, []),
    ]


def test_parts_of_scip() -> None:
    assert list(varints(bytes([1, 172, 2, 0]))) == [1, 300, 0]
    assert list(fields(bytes([8, 150, 1, 18, 1, 65]))) == [(1, 150), (2, b"A")]
    assert key("scip-python python p 1 `src.a.b`/C#") == "a.b/C#"
    assert [named(one) for one in ("a/C#", "`a.b`/C#f().", "a/f().(x)", "a/v.", "`a.b`/__init__:")] == [
        ("C", "class"),
        ("f", "function"),
        ("x", "param"),
        ("v", "statement"),
        ("__init__", "module"),
    ]


def test_a_symbol_of_scip_typescript_keeps_its_package() -> None:
    method = "scip-typescript npm @vue/shared 3.5.0 src/`index.ts`/Foo#bar()."
    assert (key(method), named(method)) == ("@vue/shared:src/index.ts/Foo#bar().", ("bar", "function"))
    assert named("scip-typescript npm hono 4.0.0 src/`hono.ts`/App.") == ("App", "function")
    assert named("scip-typescript npm hono 4.0.0 src/`hono.ts`/Env#") == ("Env", "class")

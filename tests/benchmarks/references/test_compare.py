"""Counting references against another tool's answers."""

import ast

from benchmarks.references.compare import Symbols, compare
from benchmarks.references.jedi_answers import bound, occurrences
from testing.references.reference_world import ReferenceWorld

SOURCES = {
    "lib.py": "class A:\n    x = 1\n    def f(self):\n        self.x = self.y = 2\ndef g(p): ...\nv = 1\nv = 2\n",
    "app.py": "from lib import A, g, v\ndef use(a: A):\n    a.f()\n    g(v)\n    a.x\n    later()\n",
}


def test_definitions_are_symbols_or_not() -> None:
    symbols = Symbols(ReferenceWorld(SOURCES).nested)
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
    world = ReferenceWorld(SOURCES)
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

import pytest

from clean_room_agent.execute.edits.static_checks import undefined_names
from clean_room_agent.execute.forms.checks import is_same_code, static_fault
from clean_room_agent.execute.forms.place import Place

KNOWN = {
    "a.py": (
        "import os\nfrom typing import Any as A\nclass B:\n    x = 1\n    def f(self, y, *z, **w):\n        global made\n"
        "        made = [i for i in z if (n := i)]\n        try:\n            del y\n        except ValueError as e:\n"
        "            return __class__, e, n, A, os, len(w)\n        return made\nprint(__name__, B, made)\n"
    ),
    "a.js": (
        "import fs, { a as b } from 'x';\nimport * as all from 'y';\nconst { c, d: [e], ...f } = b;\n"
        "function g(h, i = 1, ...j) { label: for (const k of j) { if (h) continue label; } return { c, k: i }; }\n"
        "class L extends all.M { #p = 1; n() { try { return this.#p; } catch (o) { throw new Error(o); } } }\n"
        "export default (q) => fs.read(q, e, f, g, L, undefined);\n"
    ),
    "a.tsx": (
        "type P = { x: number };\nenum Q { R }\nexport function S({ x }: P, y?: Q): JSX.Element {\n"
        "  const z = (w: number) => w;\n  return <div className='a'>{z(x)}{y === Q.R}</div>;\n}\n"
    ),
}


@pytest.mark.parametrize("path", KNOWN)
def test_what_a_file_defines_in_any_way_is_not_undefined(path: str) -> None:
    assert frozenset(undefined_names(path, "", KNOWN[path])) == frozenset()


@pytest.mark.parametrize("path", KNOWN)
def test_what_nothing_defines_is_found(path: str) -> None:
    line = "print(gone)\n" if path == "a.py" else "console.log(gone);\n"
    assert frozenset(undefined_names(path, "", KNOWN[path] + line)) == {"gone"}


def test_where_names_are_imported_all_at_once_nothing_is_said() -> None:
    assert undefined_names("a.py", "", "from x import *\ngone()\n") == {}
    assert undefined_names("a.py", "", "def f(:\n") == {}


FAULTS = [
    ("def f(a):\n    return a\n", "def f(a):\n    return (a\n", "no longer parses"),
    (
        "def f(a):\n    return a\n",
        "def f(a):\n    b\nreturn a\n",
        "outside function",
    ),
    ("def f(a):\n    return a\n", "def g(a):\n    return a\n", "no longer defines f"),
    ("def f(a):\n    return a\n", "def f(a):\n    return b\n", "nothing defines b"),
    ("def f(a):\n    c = a\n    return c\n", "def f(a):\n    return c\n", "nothing defines c"),
    ("def f(a):\n    return a\n\n\nX = 1\n", "def f(a):\n    return a + 1\n\n\nX = 1\n", ""),
    ("def f(a):\n    return b\n", "def f(a):\n    return b + 1\n", ""),
    ("def f(:\n", "def f(: 1\n", ""),
]


@pytest.mark.parametrize(("before", "after", "fault"), FAULTS)
def test_a_file_is_refused_for_what_was_not_wrong_before(before: str, after: str, fault: str) -> None:
    place = Place(path="a.py", name="f", first_line=1, last_line=2, lines=(2,))
    found = static_fault(place, before, after)
    assert fault in found
    assert bool(found) == bool(fault)


def test_comments_blanks_and_docstrings_make_no_other_code_but_blocks_do() -> None:
    text = 'def f(a):\n    """One."""\n    if a:\n        b()\n    c()\n'
    assert is_same_code("a.py", text, 'def f( a ):\n    """Two."""\n\n    if a:  # x\n        b()\n    c()\n')
    assert not is_same_code("a.py", text, text.replace("    c()", "        c()"))
    assert not is_same_code("a.py", text, text.replace("b()", "b('x')"))
    assert is_same_code("a.js", "f(1); // x\n", "f( 1 );\n")
    assert not is_same_code("a.js", "f(1);\n", "f(2);\n")

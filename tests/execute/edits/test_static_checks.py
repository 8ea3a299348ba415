import pytest

from clean_room_agent.execute.edits.static_checks import (
    fault_of,
    is_same_code,
    name_fault,
    static_fault,
    syntax_fault,
    undefined_names,
)
from clean_room_agent.languages.python.own_compiler import syntax_error

BAG = "class Bag {\n  size = 0\n  items\n}\n"
ITERABLE = "  items\n\n  [Symbol.iterator] () {\n    return this.items[Symbol.iterator]()\n  }\n}\n"
VALID = """\
import type { A } from './a';
export enum E { a, b = 2 }
export function isA(x: unknown): x is A { return (x as A).b === E.a; }
namespace N { export const q = 1 }
type F = (fooBar: string, ...rest: any[]) => void;
interface I { [key: string]: number; m(arg: string): void }
outer: for (const [k, v] of Object.entries({})) { for (let i = 0; i < 3; i++) { if (i) continue outer; f(k, v); } }
const g = function* named() { yield named; };
try { g() } catch ({ message }) { console.log(message, import.meta.url) }
export { g as default, g as other };
export { zork } from './z';
export * as ns from './q';
abstract class B<T> { constructor(private readonly svc: T, public opt?: string) {} get v() { return this.svc } @dec() m() {} }
function dec() { return () => {} }
let t: typeof g; declare const dd: number;
const { a: { b: [bb] }, ...others } = f(1, 2);
function f(one, two = one) { return typeof absent === 'undefined' ? [two, bb, others, t] : absent; }
"""


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("x = (\ny = 2\n", "line 1: x = ( ('(' was never closed)"),
        ("def f():\n    if x:\n    return 1\n", "line 3: return 1 (expected an indented block"),
        ("def f(a=1, b):\n    pass\n", "line 1: def f(a=1, b):"),
        ("return 1\n", "'return' outside function"),
        ("Here is the code:\n", "line 1: Here is the code:"),
    ],
)
def test_python_itself_says_where_a_module_no_longer_parses(after: str, said: str) -> None:
    fault = syntax_fault("a.py", "x = 1\n", after)
    assert fault.startswith("the file no longer parses; the first syntax error is at line ")
    assert said in fault
    assert syntax_fault("a.py", "", after)  # of a new file, too


@pytest.mark.parametrize(
    "after",
    [
        "class Box[T = str]:\n    pass\n",
        "type Pair[T] = tuple[T, T]\n",
        "x = {}\ny = f'{x['a']}'\n",
        "try:\n    pass\nexcept ValueError, KeyError:\n    pass\n",
        "x = 1\ny = t'{x}'\n",
        "x = 1\ny = f'''{\n    x  # of three lines\n}'''\n",
        "class Box[\n    T = str,\n]:\n    pass\n",
    ],
)
def test_python_that_is_newer_than_the_program_is_for_the_tests_to_judge(after: str) -> None:
    assert fault_of("a.py", "x = 1\n", after) == ""


def test_code_that_python_could_not_read_before_is_refused_only_for_what_does_not_pair() -> None:
    before = "print 'old'\n"
    assert syntax_error(before) is not None
    assert fault_of("a.py", before, "print 'new', unknown\n") == ""
    assert fault_of("a.py", "x = (\n", "x = ((\n") == ""
    assert fault_of("a.txt", "x", "(") == ""


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.js", BAG, BAG.replace("  items\n}\n", ITERABLE)),
        ("a.ts", "export interface R<T> { read(): T }\n", "export interface R<out T> { read(): T }\n"),
        ("a.ts", "let one: string;\n", "let one: import('./bar').Bar<string>;\n"),
        ("a.ts", "export const a = 1;\n", 'export const a = 1;\nexport type * from "./types";\n'),
        ("a.ts", "class A { x = 1 }\n", "class A { static accessor y: number = 2 }\n"),
    ],
)
def test_a_script_that_only_the_grammar_does_not_know_is_for_the_tests_to_judge(
    path: str, before: str, after: str
) -> None:
    assert fault_of(path, before, after) == ""


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("function f() {\n  return 1;\n", "line 1: function f() { (this { is never closed)"),
        (
            "function f() {\n  return (1;\n}\n",
            "line 2: return (1; (this ( is not closed before the } of line 3)",
        ),
        ("function f() {\n  return 'a;\n}\n", "line 2: return 'a; (this ' is not closed before"),
        ("function f() {\n  return 1;\n}\n}\n", "line 4: } (nothing opens this })"),
    ],
)
def test_a_script_with_brackets_or_quotes_that_do_not_pair_is_refused(after: str, said: str) -> None:
    assert said in syntax_fault("a.js", "function f() {\n  return 1;\n}\n", after)


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("", "x = os.sep\n", "os (line 1)"),
        ("import os\nx = os.sep\n", "x = os.sep\n", "os (line 1)"),
        ("def f():\n    return g()\ndef g(): pass\n", "def f():\n    return g()\n", "g (line 2)"),
        ("", "class A:\n    import math\n    def f(self):\n        return math.pi\n", "math (line 4)"),
        ("", "def f(a: Optional[int]): pass\n", "Optional (line 1)"),
        ("", "a = [one for one in b]\nc = one\n", "b (line 1), one (line 1)"),
        ("", "x = y = a\nprint(b, c, d)\n", "a (line 1), b (line 2), c (line 2) and 1 more"),
    ],
)
def test_a_name_that_nothing_defines_any_more_is_named_with_its_line(
    before: str, after: str, names: str
) -> None:
    fault = name_fault("a.py", before, after)
    assert fault.startswith(f"nothing defines {names} in this file")


@pytest.mark.parametrize(
    "after",
    [
        "from x import *\ny = z\n",
        "globals().update(z=1)\ny = z\n",
        "from __future__ import annotations\ndef f(a: Foo) -> Foo: pass\nx: Foo = 1\n",
        "try:\n    unicode\nexcept NameError:\n    unicode = str\n",
        "try:\n    a = fast\nexcept Exception:\n    a = slow = 1\n",
        "def f():\n    global q\n    q = 1\ndef g(): return q\n",
        "def f():\n    def inner(): return late\n    late = 1\n    return inner\n",
        "class A:\n    x = 1\n    y = [_ for _ in __file__]\n    def f(self): return __class__, super().f()\n",
        "print(_('text'), __name__)\n",
        "for i in range(3): pass\nprint(i)\nwith open('a') as f: pass\nprint(f)\ndel f\n",
        "match [1]:\n    case [first, *rest]: print(first, rest)\nif (n := 1): print(n)\n",
        "import a.b as c, d.e\nprint(c, d)\nlambda x, *y, **z: (x, y, z)\n",
    ],
)
def test_a_name_that_may_be_defined_is_no_fault(after: str) -> None:
    assert name_fault("a.py", "", after) == ""


def test_what_was_undefined_before_may_stay_so() -> None:
    assert name_fault("a.py", "x = lost\n", "x = lost\ny = lost + 1\n") == ""


@pytest.mark.parametrize(
    ("path", "before", "after", "name"),
    [
        ("a.js", "const fs = require('fs');\nfs.x();\n", "fs.x();\n", "fs (line 1)"),
        ("a.js", "function f() {}\nf(Big);\nclass Big {}\n", "function f() {}\nf(Big);\n", "Big (line 2)"),
        (
            "a.mjs",
            "import x from 'x';\nx();\n",
            "import x from 'x';\n\nx(isPlain({ y }));\n",
            "isPlain (line 3), y (line 3)",
        ),
        (
            "a.tsx",
            "export const a = 1;\n",
            "export const a = () => <div>{helper(1)}</div>;\n",
            "helper (line 1)",
        ),
    ],
)
def test_a_name_that_a_script_lost_or_never_had_is_named(
    path: str, before: str, after: str, name: str
) -> None:
    assert name_fault(path, before, after).startswith(f"nothing defines {name} in this file")


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.ts", "", VALID),
        ("a.js", "f();\n", "f(global_of_a_page, $, other);\n"),  # no module: any script may define it
        ("a.mjs", "export const a = 1;\n", "export const a = new IntersectionObserver(fetch, window.b, __DEV__);\n"),
        ("a.ts", "import * as b from 'b';\n", "import * as b from 'b';\nexport import part = b.c;\nimport q = b.d;\nq(part);\n"),
        ("a.jsx", "import React from 'react';\n", "import React, { Fragment } from 'react';\nexport default (p) => <section {...p}><Fragment /></section>;\n"),
        ("a.test.js", "import { f } from './f';\n", "import { f } from './f';\ndescribe('f', () => it('x', () => expect(f()).toBe(1)));\n"),
    ],
)  # fmt: skip
def test_a_name_that_a_script_may_get_from_elsewhere_is_no_fault(path: str, before: str, after: str) -> None:
    assert name_fault(path, before, after) == ""


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
    found = static_fault("a.py", "f", before, after)
    assert fault in found
    assert bool(found) == bool(fault)


def test_comments_blanks_and_docstrings_make_no_other_code_but_blocks_do() -> None:
    text = 'def f(a):\n    """One."""\n    if a:\n        b()\n    c()\n'
    assert is_same_code("a.py", text, 'def f( a ):\n    """Two."""\n\n    if a:  # x\n        b()\n    c()\n')
    assert not is_same_code("a.py", text, text.replace("    c()", "        c()"))
    assert not is_same_code("a.py", text, text.replace("b()", "b('x')"))
    assert is_same_code("a.js", "f(1); // x\n", "f( 1 );\n")
    assert not is_same_code("a.js", "f(1);\n", "f(2);\n")


def test_one_of_two_definitions_of_a_name_must_not_be_lost() -> None:
    text = (
        "class A:\n    @property\n    def x(self):\n        return self._x\n\n"
        "    @x.setter\n    def x(self, value):\n        self._x = value\n"
    )
    assert (
        static_fault("a.py", "A.x", text, text[: text.index("    @x.setter")]) == "it no longer defines A.x"
    )
    assert static_fault("a.py", "A.x", text, text) == ""

import pytest

from clean_room_agent.execute.edits.stubs import scaffold_faults, stub_names

BILLS = '''\
"""Bills."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from till.money import Coin

RATE = 3


class Payer(Protocol):
    def pay(self, cents: int) -> None: ...


class Bill(abc.ABC):
    """A bill."""

    cents: int = 0

    def __init__(self, cents: int) -> None:
        """With a sum."""
        raise NotImplementedError

    @property
    def due(self) -> int:
        raise NotImplementedError("not written")

    @abc.abstractmethod
    def settle(self) -> None:
        raise NotImplementedError


def add(bills: list[Bill]) -> int:
    # all of them
    raise NotImplementedError
'''
BILLS_TS = """\
import { Coin } from "./coin";

export interface Payer { pay(cents: number): void; }
export type Cents = number;
export const RATE = 3;

export class Bill {
  cents = 0;
  constructor(cents: number) { throw new Error("not implemented"); }
  get due(): number {
    throw new Error("Not implemented yet");
  }
  settle = (): void => { throw new Error("not implemented"); };
}

export function add(bills: Bill[]): number {
  throw new Error("not implemented");
}
export const sub = (a: Bill): number => { throw new Error("not implemented"); };
export { add as plus };
"""


def test_the_stubs_of_a_file_are_those_that_somebody_has_to_write() -> None:
    assert stub_names("till/bills.py", BILLS) == ("Bill.__init__", "Bill.due", "add")
    assert stub_names("src/bills.ts", BILLS_TS) == (
        "Bill.constructor",
        "Bill.due",
        "Bill.settle",
        "add",
        "sub",
    )
    common = "module.exports.add = function (a) { throw new Error('not implemented'); };\n"
    assert stub_names("a.js", common) == ("module.exports.add",)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "def f():\n    return 1\n"),
        ("a.py", "def f():\n    x = 1\n    raise NotImplementedError\n"),
        ("a.py", "def f():\n    raise ValueError\n"),
        ("a.py", "def f():\n    pass\n"),
        ("a.js", "function f() { throw new TypeError('no number'); }\n"),
        ("a.js", "const f = () => 1;\n"),
        ("a.txt", "def f():\n    raise NotImplementedError\n"),
    ],
)
def test_a_body_that_does_something_else_is_no_stub(path: str, text: str) -> None:
    assert stub_names(path, text) == ()


def test_what_stands_in_an_if_or_try_counts_as_what_stands_beside_it() -> None:
    text = (
        "if NEW:\n    from builtins import G\nelse:\n    class G(Exception):\n        words: str\n\n"
        "        def say(self):\n            raise NotImplementedError\n"
        "try:\n    import fast\nexcept ImportError:\n    def fast():\n        raise NotImplementedError\n"
    )
    assert scaffold_faults("a.py", text) == ()
    assert stub_names("a.py", text) == ("G.say", "fast")


@pytest.mark.parametrize(("path", "text"), [("till/bills.py", BILLS), ("src/bills.ts", BILLS_TS)])
def test_declarations_with_stub_bodies_are_a_scaffold(path: str, text: str) -> None:
    assert scaffold_faults(path, text) == ()


@pytest.mark.parametrize(
    ("path", "text", "fault"),
    [
        ("a.py", "def f(:\n    raise NotImplementedError\n", "a.py does not parse"),
        ("a.txt", "words", "a.txt does not parse"),
        ("a.py", "def f():\n    return 1\n", "a.py, line 1: the body of f is no stub"),
        ("a.py", "def f():\n    pass\n", "a.py, line 1: the body of f is no stub"),
        ("a.py", "class A:\n    def f(self):\n        ...\n", "a.py, line 2: the body of A.f is no stub"),
        ("a.ts", "export const f = () => 1;\n", "a.ts, line 1: the body of f is no stub"),
        (
            "a.ts",
            "class A {\n  f(): number {\n    return 1;\n  }\n}\n",
            "a.ts, line 2: the body of A.f is no stub",
        ),
    ],
)
def test_a_function_that_is_written_is_a_fault(path: str, text: str, fault: str) -> None:
    assert scaffold_faults(path, text) == (fault,)

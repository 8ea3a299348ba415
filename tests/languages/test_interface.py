"""What of a file's interface changes when the file does."""

import pytest
from testing.references.reference_world import read_file

from clean_room_agent.languages.interface import changed_names

BEFORE = "from m import a\nclass C(Base):\n    x: A = 1\n    def f(self) -> A: ...\ndef g(): ...\nv = C()\n"


def names(source: str) -> str:
    return read_file("m.py", source)[1].interface


def changed(after: str, before: str = BEFORE) -> set[str]:
    return set(changed_names(names(before), names(after)))


def test_another_place_is_no_change() -> None:
    assert changed(f"def first(): ...\n\n\n{BEFORE}") == {"first"}


def test_a_body_is_no_part_of_it() -> None:
    assert changed(BEFORE.replace("...", "print(1)")) == set()


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        ("import a", "import b as a", {"a"}),
        ("from m", "from .m", {"a"}),
        ("C(Base)", "C(Other)", {"C"}),
        ("f(self) -> A", "f(self) -> B", {"C.f"}),
        ("x: A", "x: B", {"C.x"}),
        ("def g(): ...", "", {"g"}),
        ("def g(): ...", "def g(): ...\ndef g(): ...", {"g"}),
        ("def g(): ...", "def h(): ...", {"g", "h"}),
        ("def g(): ...", "g = 1", {"g"}),
        ("v = C()", "v = D()", {"v"}),
        ("import a", "import *", {"a", "*"}),
        ("v = C()", "v = C()\n__all__ = ['v']", {"*", "__all__"}),
        ("...", "self.y = 1", {"C.y"}),
    ],
)
def test_what_changes(old: str, new: str, keys: set[str]) -> None:
    assert changed(BEFORE.replace(old, new, 1)) == keys


def test_a_file_that_comes_or_goes_changes_all_its_names() -> None:
    every = {"a", "C", "C.x", "C.f", "g", "v", "*"}
    assert changed_names(None, names(BEFORE)) == every
    assert changed_names(names(BEFORE), None) == every
    assert changed_names(None, None) == frozenset()


def test_of_several_definitions_the_last_one_that_is_no_overload_counts() -> None:
    source = "@overload\ndef f(a: int): ...\n@overload\ndef f(a: str): ...\ndef f(a): ...\n"
    swapped = "def f(a): ...\n@overload\ndef f(a: int): ...\n@overload\ndef f(a: str): ...\n"
    assert '"f":[2,"f","","3/3"]' in names(source)
    assert '"f":[0,"f","","1/3"]' in names(swapped)
    assert changed(swapped, source) == {"f"}

"""What hangs together with code that is to be changed."""

from collections.abc import Callable

from tests.retrieval.world import World

from clean_room_agent.db.curated.names import Resolution, insert_resolutions
from clean_room_agent.retrieval.related_code import (
    MAX_CALLERS,
    MAX_GREEN,
    MAX_USES,
    OVERRIDDEN_LINES,
    ShownSpan,
    related_selections,
)
from clean_room_agent.retrieval.stage import Selection
from clean_room_agent.retrieval.stage_source import NotEditable

Make = Callable[..., World]


CODE = '''\
from base import check, limit


class Till:
    def __init__(self):
        self.open = True

    def put(self, amount):
        check(amount)
        return self.close()

    def close(self):
        """Shut it.

        For good.
        """
        self.open = False
'''


BASE = '''\
def check(amount):
    """Refuse what is too much."""


def limit():
    return 3


def unrelated():
    return 4
'''


def refer(world: World, caller: str, callee: str, confidence: float = 0.9, kind: str = "call") -> None:
    source = world.source()
    ends = [source.find_symbols(name)[0].id for name in (caller, callee)]
    insert_resolutions(world.index, [Resolution(symbol_references=[(ends[0], ends[1], kind, confidence)])])


def span(world: World, path: str, start: int, end: int) -> ShownSpan:
    view = world.source().view(path, max_lines=100, available_tokens=4000)
    assert not isinstance(view, NotEditable)
    return ShownSpan(view=view, start_line=start, end_line=end)


def related(
    world: World,
    *changed: ShownSpan,
    shown: tuple[ShownSpan, ...] = (),
    failing: tuple[str, ...] = (),
    goal: tuple[tuple[str, int], ...] = (),
) -> dict[str, list[Selection]]:
    """What is found, by section."""
    found: dict[str, list[Selection]] = {}
    for one in related_selections(
        changed, world.source(), shown=(*changed, *shown), failing=failing, goal_tests=goal
    ):
        found.setdefault(one.section, []).append(one)
    return found


def texts(selections: list[Selection]) -> list[str]:
    return [one.outline for one in selections]


def test_what_is_used_is_shown_by_its_signature_and_the_first_line_of_its_doc(make: Make) -> None:
    world = make({"till.py": CODE, "base.py": BASE}, imports={"till.py": ("base.py",)})
    refer(world, "Till.put", "check")
    refer(world, "Till.put", "Till.close")
    found = related(world, span(world, "till.py", 8, 10))
    assert texts(found["uses"]) == [
        'def check(amount):\n    """Refuse what is too much."""\n',
        'def close(self):  # member of Till\n    """Shut it."""\n',
    ]
    assert {(one.detail, one.reason) for one in found["uses"]} == {("supporting", "used by Till.put")}


def test_a_method_that_is_overridden_is_shown_whole_and_first_where_it_is_short(make: Make) -> None:
    base = (
        "class Drawer:\n    def put(self, amount):\n        self.sum += amount\n\n    def close(self):\n"
        + ("        self.open = False\n" * OVERRIDDEN_LINES)
    )
    between = "from drawer import Drawer\n\n\nclass Locked(Drawer):\n    pass\n"
    code = CODE.replace("class Till:", "class Till(Locked):")
    world = make({"till.py": code, "base.py": BASE, "locked.py": between, "drawer.py": base})
    refer(world, "Till.put", "check")
    refer(world, "Till", "Locked", kind="inheritance")
    refer(world, "Locked", "Drawer", kind="inheritance")
    found = related(world, span(world, "till.py", 8, 10), span(world, "till.py", 12, 17))["uses"]
    assert texts(found)[:2] == [
        "def put(self, amount):  # member of Drawer\n    self.sum += amount\n",
        "def close(self):  # member of Drawer\n",
    ]
    assert [one.reason for one in found[:2]] == ["overridden by Till.put", "overridden by Till.close"]
    assert "def check(amount)" in texts(found)[2]


def test_classes_that_inherit_from_each_other_have_an_end(make: Make) -> None:
    world = make({"a.py": "class A(B):\n    def go(self):\n        pass\n\n\nclass B(A):\n    pass\n"})
    refer(world, "A", "B", kind="inheritance")
    refer(world, "B", "A", kind="inheritance")
    assert "uses" not in related(world, span(world, "a.py", 2, 3))


def test_a_name_that_no_reference_resolves_is_looked_up_in_what_the_file_imports(make: Make) -> None:
    text = CODE.replace("self.open = True", "self.open = limit")
    world = make({"till.py": text, "base.py": BASE}, imports={"till.py": ("base.py",)})
    found = related(world, span(world, "till.py", 5, 6))
    assert texts(found["uses"]) == ["def limit():\n"]


def test_what_is_shown_already_is_not_mentioned(make: Make) -> None:
    world = make({"till.py": CODE, "base.py": BASE}, imports={"till.py": ("base.py",)})
    refer(world, "Till.put", "Till.close")
    refer(world, "Till.close", "Till.put")
    whole = span(world, "till.py", 1, 16)
    assert texts(related(world, span(world, "till.py", 8, 10), shown=(whole,))["uses"]) == [
        'def check(amount):\n    """Refuse what is too much."""\n'
    ]


def test_a_caller_is_shown_by_the_line_that_names_what_it_uses(make: Make) -> None:
    far = 'def put_all(till):\n    """Calls nothing yet."""\n    for one in (1, 2):\n        till.put(one)\n'
    world = make({"till.py": CODE, "far.py": far})
    refer(world, "put_all", "Till.put")
    (caller,) = related(world, span(world, "till.py", 8, 10))["callers"]
    assert caller.outline == "far.py:4: till.put(one)\n"
    assert (caller.symbol, caller.start_line, caller.reason) == ("put_all", 4, "uses Till.put")


def test_who_makes_an_object_uses_its_constructor(make: Make) -> None:
    world = make({"till.py": CODE, "far.py": "def begin():\n    return Till()\n"})
    refer(world, "begin", "Till.__init__")
    (caller,) = related(world, span(world, "till.py", 5, 6))["callers"]
    assert caller.outline == "far.py:2: return Till()\n"


def test_callers_are_bounded_and_those_in_tests_stand_last(make: Make) -> None:
    callers = "\n".join(f"def call_{number}():\n    put({number})\n" for number in range(12))
    tests = "\n".join(f"def test_{number}():\n    put({number})\n" for number in range(7))
    world = make({"till.py": CODE, "far.py": callers, "tests/test_till.py": tests})
    for number in range(7):
        refer(world, f"test_{number}", "Till.put", confidence=1.0)
    for number in range(8):
        refer(world, f"call_{number}", "Till.put")
    found = related(world, span(world, "till.py", 8, 10))
    paths = [one.path for one in found["callers"]]
    assert paths == ["far.py"] * 8 + ["tests/test_till.py"] * (MAX_CALLERS - 8)
    assert texts(found["green"]) == [
        f"tests/test_till.py:{1 + 3 * number}: test_{number}\n" for number in range(MAX_GREEN)
    ]


def test_what_is_used_much_leaves_lines_to_what_is_used_little(make: Make) -> None:
    examples = "\n".join(f"def show_{number}():\n    put({number})\n" for number in range(12))
    files = {
        "till.py": CODE,
        "examples/shown.py": examples,
        "shop.py": "def sell():\n    put(1)\n",
        "z.py": "def end_of_day(till):\n    till.close()\n",
    }
    world = make(files)
    for number in range(12):
        refer(world, f"show_{number}", "Till.put")
    refer(world, "sell", "Till.put")
    refer(world, "end_of_day", "Till.close")
    found = texts(related(world, span(world, "till.py", 8, 17))["callers"])
    assert found[:3] == [
        "shop.py:2: put(1)\n",
        "z.py:2: till.close()\n",
        "examples/shown.py:2: put(0)\n",
    ]
    assert len(found) == MAX_CALLERS


def test_only_a_test_is_called_one(make: Make) -> None:
    tests = "class Shop:\n    put(1)\n\n\ndef helper():\n    put(2)\n\n\ndef test_put():\n    put(3)\n"
    world = make({"till.py": CODE, "tests/test_till.py": tests})
    for caller in ("Shop", "helper", "test_put"):
        refer(world, caller, "Till.put")
    found = related(world, span(world, "till.py", 8, 10))
    assert texts(found["green"]) == ["tests/test_till.py:9: test_put\n"]
    assert len(found["callers"]) == 3


def test_a_test_that_fails_and_is_the_goal_is_none_that_must_stay_green(make: Make) -> None:
    tests = "def test_put():\n    put(1)\n\n\ndef test_more():\n    put(2)\n"
    world = make({"till.py": CODE, "tests/test_till.py": tests})
    refer(world, "test_put", "Till.put")
    refer(world, "test_more", "Till.put")
    found = related(world, span(world, "till.py", 8, 10), failing=("tests/test_till.py::test_put[1]",))
    assert texts(found["green"]) == ["tests/test_till.py:5: test_more\n"]
    assert texts(found["callers"]) == ["tests/test_till.py:6: put(2)\n"]
    assert related(world, span(world, "till.py", 8, 10), failing=("tests/test_till.py",)) == {}
    inherited = related(world, span(world, "till.py", 8, 10), goal=(("tests/test_till.py", 5),))
    assert texts(inherited["green"]) == ["tests/test_till.py:1: test_put\n"]


def test_what_is_used_beyond_the_bound_is_named_with_its_path(make: Make) -> None:
    count = MAX_USES + 3
    many = "\n".join(f"def use_{number:02}():\n    pass\n" for number in range(count))
    world = make({"till.py": CODE, "many.py": many})
    for number in range(count):
        refer(world, "Till.put", f"use_{number:02}")
    uses = related(world, span(world, "till.py", 8, 10))["uses"]
    assert len(uses) == MAX_USES + 1
    assert uses[-1].detail == "type_context"
    assert uses[-1].outline == "many.py: not shown: use_24, use_25, use_26\n"

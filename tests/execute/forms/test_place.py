import pytest

from clean_room_agent.execute.forms.place import Parsed, Place, class_to_write, is_stub

CLOCK = """\
class Clock:
    def __init__(self, hour):
        pass

    def __repr__(self):
        pass

    def later(self, hours):
        pass
"""
SCRIPT = """\
export class Clock {
  constructor(hour) {
    throw new Error('Remove this statement');
  }

  toString() {
    throw new Error('Remove this statement');
  }
}
"""


def method(name: str, line: int, path: str = "a.py") -> Place:
    return Place(path=path, name=f"Clock.{name}", first_line=line, last_line=line + 1, lines=(line + 1,))


def test_methods_that_have_all_still_to_be_written_are_written_as_their_class() -> None:
    whole = class_to_write(method("__repr__", 5), CLOCK)
    assert whole is not None
    assert (whole.name, whole.first_line, whole.last_line) == ("Clock", 1, 9)
    assert class_to_write(method("later", 8), CLOCK) == whole
    assert is_stub(Parsed("a.py", CLOCK), whole)


def test_the_same_in_javascript() -> None:
    place = Place(path="a.js", name="Clock.toString", first_line=6, last_line=8, lines=(7,))
    whole = class_to_write(place, SCRIPT)
    assert whole is not None
    assert whole.name == "Clock"


@pytest.mark.parametrize(
    "text",
    [
        CLOCK.replace("pass", "return 1"),
        CLOCK.replace("pass", "self.hour = 1", 1).replace("pass", "return 'x'", 1),
    ],
)
def test_a_class_with_written_methods_is_not_written_whole(text: str) -> None:
    assert class_to_write(method("__init__", 2), text) is None


def test_a_function_outside_of_a_class_has_none() -> None:
    place = Place(path="a.py", name="f", first_line=1, last_line=2, lines=(2,))
    assert class_to_write(place, "def f():\n    pass\n") is None

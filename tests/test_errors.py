"""The tree of errors in the module's docstring is the one that there is."""

import inspect
import re

import pytest

from clean_room_agent import errors
from clean_room_agent.errors import CommandError, CraError, ReplayMismatch

DRAWN = re.compile(r"^ {4}((?:\|  |   )*)(?:[|`]- )?(\w+) +(\d+)", re.MULTILINE)


def drawn() -> dict[str, tuple[int, int]]:
    """Name -> (depth, exit code)."""
    lines = DRAWN.findall(errors.__doc__ or "")
    return {name: (0 if name == "CraError" else 1 + len(bars) // 3, int(code)) for bars, name, code in lines}


def classes() -> dict[str, type[CraError]]:
    found = inspect.getmembers(errors, lambda value: inspect.isclass(value) and issubclass(value, CraError))
    return dict(found)


def test_each_error_is_drawn_where_it_stands_with_its_exit_code() -> None:
    there = {name: (kind.__mro__.index(CraError), kind.exit_code) for name, kind in classes().items()}
    assert drawn() == there


@pytest.mark.parametrize("name", sorted(classes()))
def test_an_error_keeps_its_message_and_its_hint(name: str) -> None:
    error = classes()[name]("what is wrong", hint="what to do")
    assert (str(error), error.message, error.hint) == ("what is wrong", "what is wrong", "what to do")


def test_a_replay_s_error_says_where_it_differs() -> None:
    error = ReplayMismatch("differs", call="pass p1", part="prompt", line=3, recorded="a", now=None)
    assert (error.call, error.part, error.line, error.recorded, error.now) == (
        "pass p1",
        "prompt",
        3,
        "a",
        None,
    )


def test_a_command_s_error_carries_what_it_said() -> None:
    error = CommandError("git: failed", command=("git",), returncode=-9, stdout=b"o", stderr=b"e")
    assert (error.command, error.returncode, error.stdout, error.stderr) == (("git",), -9, b"o", b"e")

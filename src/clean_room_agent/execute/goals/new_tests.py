"""Calls that are looked at, and tests to be written, in any language."""

from msgspec import Struct

from clean_room_agent.execute.goals.confirming import Wanted


class Looked(Struct, frozen=True, kw_only=True):
    """A call that is looked at."""

    call: str
    setup: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    stated: tuple[tuple[str, str], ...] = ()
    """(kind, text) of each value that is compared with what it gives."""
    missing: bool = False
    """Whether what it calls is still to be added."""


class NewTest(Struct, frozen=True, kw_only=True):
    """A test to be written."""

    name: str
    """Of its function."""
    call: str
    wanted: Wanted
    setup: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    """Import statements for the names that it uses."""
    inside: bool = False
    """Whether its imports must stand in it, as they fail at the base."""
    iterated: bool = False
    """Whether the call gives an iterator."""
    awaited: bool = False
    """Whether the call gives a promise."""
    statement: str = ""
    """What the test does, where that is not one call with a wanted value."""


class Placed(Struct, frozen=True, kw_only=True):
    """A file with tests added."""

    text: str
    names: tuple[str, ...]
    """Of the tests, each `Class::function` or `function`."""
    codes: tuple[str, ...]
    """The text of each, not indented."""

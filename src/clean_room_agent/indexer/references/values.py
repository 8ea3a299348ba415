"""Values that an expression can have: a module, class, instance, function or variable."""

from typing import NamedTuple, Protocol

from clean_room_agent.languages.base import ModuleRef
from clean_room_agent.languages.interface import Interface


class Value(NamedTuple):
    """The value of an expression."""

    kind: str
    """m: module; c: class; e: enum; o: object of a class; s: its bases, as `super()`; f: function; p: property;
    v: variable or attribute; x: not of this repository."""
    path: str = ""
    name: str = ""
    """Of a definition, or of the class of an object: the qualified name in the file."""
    confidence: float = 1.0
    place: int = -1
    """Of the symbol that the expression names; -1 where it names none."""
    receiver: "Value | None" = None
    """Of a member: the object on which it was found."""
    module: ModuleRef | None = None


OUTSIDE = Value("x")


class World(Protocol):
    """All files, as the resolver asks about them."""

    def find(self, source: str, target: str) -> ModuleRef | None:
        """The module that `target`, as written in `source`, refers to; None if it is not in this repository."""
        ...

    def child(self, ref: ModuleRef, name: str) -> ModuleRef | None:
        """The submodule `name`."""
        ...

    def interface(self, path: str) -> Interface | None:
        """The file's interface, if it has one."""
        ...

    def unique(self, source: str, name: str) -> tuple[str, int] | None:
        """Path and place of the only symbol of this name that `source` could mean; None unless there is exactly one."""
        ...

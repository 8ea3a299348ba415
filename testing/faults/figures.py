"""How often a fault was made, and how often what must not happen came of it."""

from typing import Literal

from msgspec import Struct

Effort = Literal["short", "full"]
"""`full` tries as often as the targets ask, `short` a few times."""


class Figure(Struct, frozen=True, kw_only=True):
    """One line: how often something was tried, how often what must not happen was found."""

    name: str
    """What was counted, such as "escapes not blocked, as root"; no `|`."""
    tried: int
    found: int
    target: str
    """In words, such as "0 of 45 and more"."""
    met: bool

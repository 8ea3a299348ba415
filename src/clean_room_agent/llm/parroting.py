"""Answers that copy their prompt's example in place of saying something.

The examples speak of a zoo with `quokka` in each of its names and sentences, so that what stems from one is known by
that word. A repository that has the word itself is not suspected: it stands in what was asked beside the example.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import BaseModel

MARK = "quokka"
SHOWN = 3
SHOWN_CHARS = 60


class Checked(NamedTuple):
    """An answer without what it took from the example."""

    value: Any
    """None where a part that it cannot do without was taken."""
    taken: tuple[str, ...]
    """In the order of the answer."""


def mentions(text: str) -> bool:
    """Whether the text speaks of the examples' zoo."""
    return MARK in text.casefold()


def without_parroted(value: Any) -> Checked:
    """The answer without the texts of its own lists that stem from an example.

    Where anything else does (a sentence, a path of an edit, a part of a plan), or no list keeps a text, the answer says
    nothing.
    """
    taken = tuple(text for text in _texts(value) if mentions(text))
    if not taken:
        return Checked(value, ())
    if not isinstance(value, BaseModel):
        return Checked(None, taken)
    lists = {
        name: tuple(entry for entry in entries if not (isinstance(entry, str) and mentions(entry)))
        for name in type(value).model_fields
        if isinstance(entries := getattr(value, name), list | tuple)
    }
    kept = value.model_copy(update=lists)
    if not any(lists.values()) or any(map(mentions, _texts(kept))):
        return Checked(None, taken)
    return Checked(kept, taken)


def describe(taken: tuple[str, ...]) -> str:
    """What was taken, in words for the model."""
    listed = list(dict.fromkeys(taken))
    names = ", ".join(repr(text[:SHOWN_CHARS]) for text in listed[:SHOWN])
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return f"{names}{more}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, BaseModel):
        yield from _texts([getattr(value, name) for name in type(value).model_fields])
    elif dataclasses.is_dataclass(value):
        yield from _texts([getattr(value, field.name) for field in dataclasses.fields(value)])
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)

"""Tracebacks of bugs: the places in the program, apart from the messages, which may hold any text."""

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

HEADING = "Where it happened:\n\n"
MESSAGES = "\nWith messages (never in a bug report):\n\n"
OURS = tuple(
    f"{Path(place).resolve()}/" for place in (Path(__file__).parents[1], sys.prefix, sys.base_prefix)
)


def log_text(error: BaseException) -> str:
    """What is stored about an error: first its places, then all that Python says about it."""
    said = "".join(traceback.format_exception(error))
    return HEADING + "".join(_error_places(error, set())) + MESSAGES + said


def places_in(log: str) -> str:
    """The places in a text by `log_text`; "" in any other text."""
    places, found, _ = log.partition(MESSAGES)
    return places if found and log.startswith(HEADING) else ""


def _error_places(error: BaseException, seen: set[int]) -> Iterator[str]:
    """For each error, from the first to the last: its class, and the frames in files of this program and of Python."""
    seen.add(id(error))
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for each in (error.__cause__ or error.__context__, *inner):
        if each is not None and id(each) not in seen:
            yield from _error_places(each, seen)
    yield f"{type(error).__module__}.{type(error).__qualname__}\n"
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(OURS):
            yield f"  {frame.filename}:{frame.lineno} in {frame.name}\n    {frame.line}\n"
        else:
            yield "  (elsewhere)\n"

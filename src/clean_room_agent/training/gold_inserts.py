"""Makes edits that insert whole new definitions, placed next to a neighbour that the prompt shows."""

import re
from collections.abc import Sequence

from clean_room_agent.artifacts.edits import InsertPlace, PatchEdit
from clean_room_agent.execute.edits.definitions import Definition, definitions
from clean_room_agent.execute.edits.insert import insertion
from clean_room_agent.execute.edits.search_replace import Splice

Piece = tuple[str, bool]
"""A text of the file as the context shows it, and whether it may be edited."""


def insert_for(path: str, now: str, goal: str, shown: Sequence[Piece]) -> PatchEdit | None:
    """The insert that turns `now` into exactly `goal`; None if more than definitions is new, or no neighbour is shown."""
    if not _only_adds(now, goal):  # parsing a large file takes longer than all else
        return None
    names = {one.symbol for one in definitions(path, now)}
    then = definitions(path, goal)
    new = [one for one in then if one.symbol not in names]
    outer = [one for one in new if one.scope not in {other.symbol for other in new}]
    if not outer or len({one.scope for one in outer}) != 1:
        return None
    content = goal[outer[0].top : outer[-1].end]
    for place, symbol in _places(then, outer):
        if not _is_shown(symbol, path, now, shown):
            continue
        edit = PatchEdit(kind="insert", file_path=path, symbol=symbol, place=place, replacement=content)
        splice = insertion(edit, now, shown=(), written=())
        if isinstance(splice, Splice) and splice.applied(now) == goal:
            return edit
    return None


def _only_adds(now: str, goal: str) -> bool:
    """Whether inserting one stretch of text turns `now` into the goal."""
    pairs = enumerate(zip(now, goal, strict=False))
    same = next((at for at, (before, after) in pairs if before != after), len(now))
    return len(goal) > len(now) and goal.endswith(now[same:])


def _places(then: Sequence[Definition], outer: Sequence[Definition]) -> list[tuple[InsertPlace, str]]:
    """The positions of the definitions `outer` in a file with the definitions `then`."""
    scope = outer[0].scope
    siblings = [one for one in then if one.scope == scope]
    first, last = siblings.index(outer[0]), siblings.index(outer[-1])
    places: list[tuple[InsertPlace, str]] = []
    if first > 0:
        places.append(("after", siblings[first - 1].symbol))
    if last + 1 < len(siblings):
        places.append(("before", siblings[last + 1].symbol))
    if scope:
        places.append(("in", scope))
    return places


def _is_shown(symbol: str, path: str, now: str, shown: Sequence[Piece]) -> bool:
    """Whether the context shows the symbol: by its own line in code that may be edited, by its name elsewhere."""
    found = [one for one in definitions(path, now) if one.symbol == symbol]
    if len(found) != 1:
        return False
    name = re.compile(rf"\b{re.escape(symbol.rpartition('.')[2])}\b")
    body = now[found[0].start : found[0].end]
    head = next((line.strip() for line in body.split("\n") if name.search(line)), "")
    return any(
        head in {line.strip() for line in text.split("\n")} if editable else name.search(text) is not None
        for text, editable in shown
    )

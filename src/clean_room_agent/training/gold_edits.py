"""Turns a commit into edits whose search texts the prompt shows, and inserts of whole definitions beside a shown one."""

import difflib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from msgspec import Struct

from clean_room_agent.artifacts.edits import InsertPlace, PatchEdit
from clean_room_agent.artifacts.names import parse_item_name
from clean_room_agent.execute.edits.definitions import EditableDefinition, definitions
from clean_room_agent.execute.edits.insert import insertion
from clean_room_agent.execute.edits.search_replace import Splice
from clean_room_agent.indexer.extract import ExtractedFile, extract

CONTEXT_SIZES = (3, 2, 4, 1, 6, 9, 14, 20, 0)
"""Unchanged lines around a change in the search text, in order of preference."""
TELLING = re.compile(r"\w")
MIN_TELLING = 8
"""Letters and digits that a search text needs: less is likely to occur elsewhere in code that is not shown."""
Group = tuple[int, int, int, int]
"""A change: the 0-based lines `i1:i2` before became the lines `j1:j2` after."""
Piece = tuple[str, bool]
"""A text of the file as the context shows it, and whether it may be edited."""
FRAME = re.compile(r"^(={5,}) (file|code|test|outline|reference|signature): (.+?) \(lines (\d+)-(\d+)\)$")


class GoldFile(Struct, frozen=True, kw_only=True, dict=True):
    """A file of the commit; None where it does not exist before or after."""

    path: str
    before: str | None
    after: str | None

    @property
    def role(self) -> str:
        """The role of the file in the commit."""
        if self.before is None:
            return "create"
        return "delete" if self.after is None else "modify"

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Its changes, in order; none where it is created or deleted."""
        if self.before is None or self.after is None:
            return ()
        return tuple(_changed_ranges(lines_of(self.before), lines_of(self.after)))

    @cached_property
    def spans(self) -> Mapping[str, tuple[int, int]]:
        """Line ranges of the definitions of `before`, by qualified name."""
        with tempfile.TemporaryDirectory() as folder:
            # Under a name of our own: the path is one of somebody's history, and may lead anywhere.
            name = f"file{PurePosixPath(self.path).suffix}"
            (Path(folder) / name).write_text(self.before or "", encoding="utf-8")
            facts = extract(Path(folder), name, max_bytes=10_000_000)
        if not isinstance(facts, ExtractedFile):
            return {}
        return {qualified: (start, end) for _, qualified, _, start, end, *_ in facts.symbols}


class ShownPiece(Struct, frozen=True, kw_only=True):
    """A piece of a file that a prompt shows."""

    path: str
    editable: bool
    text: str


def shown_in(prompt: str) -> tuple[ShownPiece, ...]:
    """The pieces of files that a prompt frames."""
    found: list[ShownPiece] = []
    fence, head, body = "", "", list[str]()
    path, editable = "", False
    for line in prompt.split("\n"):
        if not fence:
            match = FRAME.match(line)
            if match:
                fence, head = match[1], match[3]
                path, editable = parse_item_name(head).path, match[2] in {"file", "code"}
                body = []
        elif line == f"{fence} end":
            found.append(ShownPiece(path=path, editable=editable, text="\n".join(body)))
            fence = ""
        else:
            body.append(line)
    return tuple(found)


def edits_for(
    file: GoldFile, shown_pieces: Sequence[ShownPiece], places: Sequence[int] | None = None
) -> list[PatchEdit]:
    """The edits that turn the file into what the commit made of it, as far as the prompt shows their search texts.
    `places` selects some of its changes by number; None means all.
    """
    if file.after is None:
        return [PatchEdit(kind="delete", file_path=file.path)]
    if file.before is None:
        return [PatchEdit(kind="create", file_path=file.path, replacement=file.after)]
    own = [shown for shown in shown_pieces if shown.path == file.path]
    texts = [shown.text for shown in own if shown.editable]
    signatures = [(shown.text, False) for shown in own if not shown.editable]
    edits: list[PatchEdit] = []
    made: list[Group] = []
    for whole in file.groups if places is None else [file.groups[place] for place in places]:
        pieces = [*((text, True) for text in texts), *signatures]
        inserted = [edit.replacement for edit in edits if edit.kind == "insert"]
        group, edit = whole, None
        for group in dict.fromkeys((whole, *_other_forms(file, whole))):
            now, goal = _with_changes(file, made), _with_changes(file, [*made, group])
            edit = _insert_for(file.path, now, goal, pieces) or _edit_for(
                file, _shifted_group(group, made), lines_of(now), texts, inserted
            )
            if edit is not None:
                break
        if edit is None:
            continue
        edits.append(edit)
        made.append(group)
        if edit.kind == "edit":
            texts = [text.replace(edit.search, edit.replacement, 1) for text in texts]
    return edits


def _other_forms(file: GoldFile, group: Group) -> Iterator[Group]:
    """Equivalent changes, for when the lines next to one are not shown, as empty lines often are: a deletion that
    leaves the empty lines after and before what it deletes; an insertion a line or two higher or lower that gives the
    same text, or one above the empty lines that it follows, which gives the same code and more empty lines.
    """
    i1, i2, j1, j2 = group
    before, after = lines_of(file.before or ""), lines_of(file.after or "")
    if j1 == j2:
        while i2 - 1 > i1 and not before[i2 - 1].strip():
            i2 -= 1
        yield i1, i2, j1, j2
        while i1 + 1 < i2 and not before[i1].strip():
            i1 += 1
        yield i1, i2, j1, j2
    elif i1 == i2:
        # Changes stand three lines apart, so that none of these meets the next one.
        for up in (1, 2):
            if i1 < up or before[i1 - up] != after[j2 - up]:
                break
            yield i1 - up, i2 - up, j1 - up, j2 - up
        for down in (1, 2):
            if i2 + down > len(before) or before[i2 + down - 1] != after[j1 + down - 1]:
                break
            yield i1 + down, i2 + down, j1 + down, j2 + down
        for up in (1, 2):
            if min(i1, j1) < up or before[i1 - up].strip() or after[j1 - up].strip():
                break
            yield i1 - up, i2 - up, j1 - up, j2


def _shifted_group(group: Group, made: Sequence[Group]) -> Group:
    """The change with its old line numbers adjusted for the changes `made` above it."""
    i1, i2, j1, j2 = group
    delta = sum((b2 - b1) - (a2 - a1) for a1, a2, b1, b2 in made)
    return i1 + delta, i2 + delta, j1, j2


def _with_changes(file: GoldFile, groups: Sequence[Group]) -> str:
    """The file with some of its changes made, in order."""
    assert file.before is not None
    assert file.after is not None
    before, after = lines_of(file.before), lines_of(file.after)
    lines: list[str] = []
    place = 0
    for i1, i2, j1, j2 in groups:
        lines += before[place:i1] + after[j1:j2]
        place = i2
    end = "\n" if file.before.endswith("\n") else ""
    return "\n".join(lines + before[place:]) + end


def touches(groups: Sequence[Group], start: int, end: int) -> bool:
    """Whether a change touches one of the 1-based lines `start..end`; an insertion touches the lines on both its sides."""
    ranges = ((i1 + 1, i2) if i2 > i1 else (i1, i1 + 1) for i1, i2, _, _ in groups)
    return any(first <= end and start <= last for first, last in ranges)


def lines_of(text: str) -> list[str]:
    """The lines without their line ends; the empty one after the last line end does not count, since it is never shown."""
    return text.removesuffix("\n").split("\n")


def _changed_ranges(before: list[str], after: list[str]) -> list[Group]:
    """The changes between the lines of two texts; their common beginning and end, most of a large file, is not compared."""
    top = 0
    while top < min(len(before), len(after)) and before[top] == after[top]:
        top += 1
    end = 0
    while end < min(len(before), len(after)) - top and before[-1 - end] == after[-1 - end]:
        end += 1
    matcher = difflib.SequenceMatcher(
        None, before[top : len(before) - end], after[top : len(after) - end], autojunk=False
    )
    found = _merged_groups(matcher.get_opcodes())
    return [(i1 + top, i2 + top, j1 + top, j2 + top) for i1, i2, j1, j2 in found]


def _merged_groups(opcodes: Sequence[tuple[str, int, int, int, int]]) -> list[Group]:
    """Changes as (i1, i2, j1, j2); those less than three lines apart are one."""
    joined: list[Group] = []
    for tag, i1, i2, j1, j2 in opcodes:
        if tag == "equal":
            continue
        if joined and i1 - joined[-1][1] < 3:
            first = joined.pop()
            joined.append((first[0], i2, first[2], j2))
        else:
            joined.append((i1, i2, j1, j2))
    return joined


def _edit_for(
    file: GoldFile, group: Group, now: list[str], texts: list[str], inserted: list[str]
) -> PatchEdit | None:
    """The edit for one change: the search text is the change's lines and as many around as make it unique."""
    i1, i2, j1, j2 = group
    new = lines_of(file.after or "")[j1:j2]
    for size in CONTEXT_SIZES:
        for above, below in ((size, size), (size, 0), (0, size)):
            start, end = max(0, i1 - above), min(len(now), i2 + below)
            search = "\n".join(now[start:end])
            if len(TELLING.findall(search)) < MIN_TELLING:
                continue
            # Ahead of each place, so that two that share a line's end both count.
            place = re.compile(rf"(?=\n{re.escape(search)}\n)")
            places = sum(len(place.findall(f"\n{text}\n")) for text in texts)
            if places != 1 or any(search in text for text in inserted):
                continue
            replacement = "\n".join(now[start:i1] + new + now[i2:end])
            return PatchEdit(kind="edit", file_path=file.path, search=search, replacement=replacement)
    return None


def _insert_for(path: str, now: str, goal: str, shown: Sequence[Piece]) -> PatchEdit | None:
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
    for place, symbol in _insert_places(then, outer):
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


def _insert_places(
    then: Sequence[EditableDefinition], outer: Sequence[EditableDefinition]
) -> list[tuple[InsertPlace, str]]:
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

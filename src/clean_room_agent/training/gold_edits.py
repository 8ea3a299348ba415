"""Turns a commit into edits whose search texts the prompt shows."""

import difflib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from msgspec import Struct

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.artifacts.names import parse_item_name
from clean_room_agent.indexer.extract import ExtractedFile, extract
from clean_room_agent.training.gold_inserts import insert_for

CONTEXT_SIZES = (3, 2, 4, 1, 6, 9, 14, 20, 0)
"""Unchanged lines around a change in the search text, in order of preference."""
TELLING = re.compile(r"\w")
MIN_TELLING = 8
"""Letters and digits that a search text needs: less is likely to occur elsewhere in code that is not shown."""
Group = tuple[int, int, int, int]
"""A change: the 0-based lines `i1:i2` before became the lines `j1:j2` after."""
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
        """Its changes; see `edit_groups`."""
        if self.before is None or self.after is None:
            return ()
        return tuple(_groups(lines_of(self.before), lines_of(self.after)))

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


class Shown(Struct, frozen=True, kw_only=True):
    """A piece of a file that a prompt shows."""

    path: str
    editable: bool
    text: str


def shown_in(prompt: str) -> tuple[Shown, ...]:
    """The pieces of files that a prompt frames."""
    found: list[Shown] = []
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
            found.append(Shown(path=path, editable=editable, text="\n".join(body)))
            fence = ""
        else:
            body.append(line)
    return tuple(found)


def edits_for(
    file: GoldFile, shown_pieces: Sequence[Shown], places: Sequence[int] | None = None
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
    groups = edit_groups(file)
    for whole in groups if places is None else [groups[place] for place in places]:
        pieces = [*((text, True) for text in texts), *signatures]
        inserted = [edit.replacement for edit in edits if edit.kind == "insert"]
        group, edit = whole, None
        for group in dict.fromkeys((whole, *_other_forms(file, whole))):
            now, goal = _with_changes(file, made), _with_changes(file, [*made, group])
            edit = insert_for(file.path, now, goal, pieces) or _edit_for(
                file, _moved(group, made), lines_of(now), texts, inserted
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


def _moved(group: Group, made: Sequence[Group]) -> Group:
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


def edit_groups(file: GoldFile) -> list[Group]:
    """The file's changes as 0-based ranges of lines (i1, i2) before and (j1, j2) after; none where it is created."""
    return list(file.groups)


def _groups(before: list[str], after: list[str]) -> list[Group]:
    """The changes between the lines of two texts. Their common beginning and end, most of a large file, is not
    compared.
    """
    top = 0
    while top < min(len(before), len(after)) and before[top] == after[top]:
        top += 1
    end = 0
    while end < min(len(before), len(after)) - top and before[-1 - end] == after[-1 - end]:
        end += 1
    matcher = difflib.SequenceMatcher(
        None, before[top : len(before) - end], after[top : len(after) - end], autojunk=False
    )
    found = _joined(matcher.get_opcodes())
    return [(i1 + top, i2 + top, j1 + top, j2 + top) for i1, i2, j1, j2 in found]


def _joined(opcodes: Sequence[tuple[str, int, int, int, int]]) -> list[Group]:
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

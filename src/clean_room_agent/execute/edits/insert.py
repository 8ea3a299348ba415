"""Finds where inserted code goes: before, after or inside a named definition, with suitable blank lines and
indentation.

The program decides on the place: `before` is above the neighbour's decorators and the comments directly above it,
`after` is below its last line, `in` is the end of a class's body. Blank lines follow those around the neighbour, else
the language's convention, and are added only where the file has too few.
"""

import difflib
from collections.abc import Sequence

from msgspec import Struct

from clean_room_agent.artifacts.edits import EditCode, PatchEdit
from clean_room_agent.execute.edits.definitions import EditableDefinition, SymbolSpan, definitions, named
from clean_room_agent.execute.edits.indent_units import indent_unit
from clean_room_agent.execute.edits.rules import EditOutcome
from clean_room_agent.execute.edits.search_replace import (
    Splice,
    filled_lines,
    indentation,
    line_of,
    reindented,
)
from clean_room_agent.syntax import nodes_of

MOST_BLANK_LINES = 2
NAMES_OFFERED = 3
MIN_LIKENESS = 0.5
DEFAULT_UNIT = "  "
"""Of indentation, where the file shows none."""


class _Spot(Struct, frozen=True, kw_only=True):
    """A place between lines, or between braces that hold nothing."""

    offset: int
    below: bool
    """Whether the new code goes below the line that ends at `offset`; otherwise it goes above the one that begins
    there.
    """
    model: str
    """Code whose indentation the new code takes."""
    gap: int
    """Blank lines between the new code and its neighbours."""


def insertion(
    edit: PatchEdit, text: str, *, shown: tuple[SymbolSpan, ...], written: Sequence[tuple[int, int]]
) -> Splice | EditOutcome:
    """Where in `text` the new code of an insert goes.

    `shown` are the symbols of the context, which know of more kinds than the syntax does. `written` are the character
    ranges that earlier edits of the answer wrote: of two inserts after one symbol, the second goes below the first.
    """
    known = definitions(edit.file_path, text)
    others = tuple(
        EditableDefinition(symbol=one.symbol, top=one.start, start=one.start, end=one.end) for one in shown
    )
    targets = named(known, edit.symbol) or named(others, edit.symbol)
    content = "\n".join(filled_lines(edit.replacement))
    if not targets:
        return EditOutcome(EditCode.NO_MATCH, _unknown_symbol_detail(edit, known or others))
    if len(targets) > 1:
        detail = f"{edit.symbol} is defined more than once; name another neighbour, or use <search>"
        lines = tuple(line_of(text, one.start) for one in targets)
        return EditOutcome(EditCode.AMBIGUOUS, detail, lines=lines)
    if not content:
        return EditOutcome(EditCode.NO_MATCH, "there is no text to insert")
    target = _last_written(targets[0], known, written) if edit.place == "after" else targets[0]
    if edit.place == "in" and target.braces and target.body and not text[slice(*target.body)].strip():
        return _between_braces(text, content, target)
    spot = _insertion_spot(edit, text, content, target, known)
    if spot is None:
        detail = f"{edit.symbol} is no class with a body on lines of its own; use after=, before= or <search>"
        return EditOutcome(EditCode.NO_MATCH, detail)
    return _splice_at_spot(text, reindented(content, spot.model), spot)


def _unknown_symbol_detail(edit: PatchEdit, known: tuple[EditableDefinition, ...]) -> str:
    """That the symbol is not in the file, and which names are near."""
    names = dict.fromkeys(one.symbol for one in known)
    last = edit.symbol.rpartition(".")[2]
    alike = [name for name in names if name.rpartition(".")[2] == last]
    alike += difflib.get_close_matches(edit.symbol, names, n=NAMES_OFFERED, cutoff=MIN_LIKENESS)
    near = ", ".join(list(dict.fromkeys(alike))[:NAMES_OFFERED])
    return f"{edit.symbol} is not defined in {edit.file_path}" + (f"; like it: {near}" if near else "")


def _last_written(
    target: EditableDefinition, known: tuple[EditableDefinition, ...], written: Sequence[tuple[int, int]]
) -> EditableDefinition:
    """The last definition that this answer already put after `target`; else `target`."""
    end = next((end for start, end in written if start == target.end), target.end)
    below = [one for one in known if one.scope == target.scope and target.end < one.start and one.end <= end]
    return below[-1] if below else target


def _insertion_spot(
    edit: PatchEdit,
    text: str,
    content: str,
    target: EditableDefinition,
    known: tuple[EditableDefinition, ...],
) -> _Spot | None:
    """The place, and what it requires of the new code; None if a class has no body on lines of its own."""
    if edit.place != "in":
        after = edit.place == "after"
        return _Spot(
            offset=target.end if after else target.top,
            below=after,
            model=text[target.start : target.end],
            gap=_gap_size(edit, text, content, target, known),
        )
    if target.body is None:
        return None
    start, end = target.body
    if target.braces:
        line = text.rfind("\n", 0, end) + 1
        if line <= start or text[line:end].strip():
            return None
    members = [one for one in known if one.scope == target.symbol and start <= one.start <= end]
    body = text[start:end].rstrip()
    if members:
        model = text[members[-1].start : members[-1].end]
        gap = _gap_size(edit, text, content, members[-1], known)
    else:
        own = body.partition("\n")[2] if target.braces else body
        model = (
            own or indentation(text[target.start : target.end]) + (indent_unit(text) or DEFAULT_UNIT) + "x"
        )
        gap = 1 if "\n" in content else 0
    return _Spot(offset=start + len(body), below=True, model=model, gap=gap)


def _splice_at_spot(text: str, new: str, spot: _Spot) -> Splice | EditOutcome:
    """`new` at its place, with as many blank lines on both sides as there should be."""
    above, below = text[: spot.offset], text[spot.offset :]
    if _is_already_there(above, below, new):
        return EditOutcome(EditCode.ALREADY_APPLIED)
    ending = _line_end(text, spot.offset)
    if spot.below:
        new = "\n" * (spot.gap + 1) + new + "\n" * _lacking_below(below, new, spot.gap)
    else:
        new = "\n" * _lacking_above(above, new, spot.gap) + new + "\n" * (spot.gap + 1)
    return Splice(start=spot.offset, end=spot.offset, text=new.replace("\n", ending))


def _is_already_there(above: str, below: str, new: str) -> bool:
    """Whether the lines next to the place, ignoring blank ones, are already `new`."""
    over = above.replace("\r\n", "\n").rstrip("\n")
    under = below.replace("\r\n", "\n").lstrip("\n")
    return f"\n{over}".endswith(f"\n{new}") or f"{under}\n".startswith(f"{new}\n")


def _between_braces(text: str, content: str, target: EditableDefinition) -> Splice:
    """`content` as the whole body of a class: one step deeper than the class."""
    assert target.body is not None
    outer = indentation(text[target.start : target.end])
    new = reindented(content, outer + (indent_unit(text) or DEFAULT_UNIT) + "x")
    ending = _line_end(text, target.body[0])
    start, end = target.body
    return Splice(start=start, end=end, text=f"\n{new}\n{outer}".replace("\n", ending))


def _gap_size(
    edit: PatchEdit,
    text: str,
    content: str,
    target: EditableDefinition,
    known: tuple[EditableDefinition, ...],
) -> int:
    """How many blank lines separate the new code from its neighbours: as many as separate these from each other. Single
    lines follow pairs of single lines (fields, constants); longer code follows pairs with something longer.
    """
    short = "\n" not in content and "\n" not in text[target.start : target.end]
    if target not in known:  # a constant that only the context knows
        return 0 if short else 1
    siblings = [one for one in known if one.scope == target.scope]
    at = siblings.index(target)
    behind, ahead = siblings[at : at + 2], siblings[max(at - 1, 0) : at + 1]
    for pair in (behind, ahead) if edit.place != "before" else (ahead, behind):
        if len(pair) != 2 or pair[1].top < pair[0].end or text[pair[0].end : pair[1].top].strip():
            continue
        long = any("\n" in text[one.start : one.end] for one in pair)
        if long != short:
            return min(text.count("\n", pair[0].end, pair[1].top) - 1, MOST_BLANK_LINES)
    if not nodes_of(edit.file_path).indented:
        return 0 if short else 1
    return 1 if indentation(text[target.start : target.end]) else 2


def _lacking_below(below: str, new: str, gap: int) -> int:
    """Number of blank lines to add below `new`, if code of its own depth follows."""
    following = below.lstrip("\r\n \t")
    if not following:
        return 0
    line = below[: len(below) - len(following)].rpartition("\n")[2]
    if len(line) < len(indentation(new)) or following[0] in "})]":
        return 0
    blank = below[: len(below) - len(following)].count("\n") - 1
    return max(gap - blank, 0)


def _lacking_above(above: str, new: str, gap: int) -> int:
    """Number of blank lines to add above `new`, if code of its own depth precedes it."""
    code = above.rstrip("\r\n \t")
    line = code.rpartition("\n")[2]
    if not code or len(indentation(line)) < len(indentation(new)):
        return 0
    blank = above[len(code) :].count("\n") - 1
    return max(gap - blank, 0)


def _line_end(text: str, offset: int) -> str:
    r"""`\r\n` if the line of `offset` ends with it (or, at the end of the text, the line before it), else `\n`."""
    end = text.find("\n", offset)
    if end < 0:
        end = text.rfind("\n", 0, offset)
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"

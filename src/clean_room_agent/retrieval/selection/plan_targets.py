"""What is shown of the files that a plan names: what it names in them, their imports, and the heads of the classes."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from clean_room_agent.retrieval.code.pieces import CONTAINERS, VALUES, Definition, Piece, enclosing_head
from clean_room_agent.retrieval.selection.relevance import (
    Hints,
    holds_frame,
    is_meant,
    is_named,
    is_said,
)
from clean_room_agent.retrieval.selection.selectable_pieces import Unit
from clean_room_agent.retrieval.stage import (
    Selection,
)
from clean_room_agent.retrieval.stage_source import FileView, RepositorySource

SMALL_FILE_LINES = 150
"""A file up to this long is shown whole, where that takes no more than `SMALL_FILE_SHARE` of what is available."""
SMALL_FILE_SHARE = 4
HEADER_LINES = 25
"""The beginning of a file is shown up to this length where the file has no imports: some may have to be added."""
VALUES_LINES = 15
"""What follows the imports right away is shown up to this length: a new value belongs there."""
HEAD_LINES = 25
"""The head of a class is shown with a member that is to be changed, unless it is longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A file that a plan names."""

    units: tuple[Unit, ...]
    """Its pieces, in the order of their lines; at least one."""
    chosen: tuple[tuple[Unit, str], ...]
    """The pieces that are in without asking, with the reason."""
    uncertain: tuple[Unit, ...]
    """Where the plan does not say what of the file it means: what there is to choose from, beside what the task names."""

    @property
    def view(self) -> FileView:
        """The file."""
        return self.units[0].view


def target_of(units: Sequence[Unit], hints: Hints, changed: Collection[tuple[str, str]]) -> Target:
    """What of the file is in without asking, and what has to be asked about.

    Args:
        units: the file's.
        hints: what the plan names.
        changed: path and name of the pieces that were judged to be changed when the task was planned.
    """
    chosen: dict[int, tuple[Unit, str]] = {}
    view = units[0].view
    for unit in units:
        if reason := _named(unit.piece, view, hints.planned):
            chosen[unit.piece.start_line] = (unit, reason)
    for unit in units:
        if (unit.entry.path, unit.piece.name) in changed:
            chosen.setdefault(unit.piece.start_line, (unit, "judged to be changed when the task was planned"))
        elif not hints.planned and holds_frame(unit.entry.path, unit.piece, hints.frames):
            chosen.setdefault(unit.piece.start_line, (unit, "in a stack trace"))
    uncertain: tuple[Unit, ...] = ()
    if not chosen:
        chosen = {
            unit.piece.start_line: (unit, "named by the task") for unit in units if is_said(unit.piece, hints)
        }
        uncertain = tuple(unit for unit in units if unit.piece.kind not in {"imports", "comment"})
    return Target(units=tuple(units), chosen=tuple(chosen.values()), uncertain=uncertain)


def is_small(view: FileView, source: RepositorySource, available_tokens: int) -> bool:
    """Whether the file is shown whole."""
    lines = len(view.text.lines)
    return (
        lines <= SMALL_FILE_LINES
        and source.count(view.text.span(1, lines)) <= available_tokens // SMALL_FILE_SHARE
    )


def around(target: Target, shown: Collection[Unit]) -> list[Selection]:
    """What belongs to the shown pieces of a target: the file's imports (the short beginning of a file without) and a few
    lines that follow them, the heads of the classes that they are in, and the comments right above them.
    """
    pieces = [unit.piece for unit in target.units]
    heads = {
        head.start_line
        for unit in shown
        if (head := enclosing_head(pieces, unit.piece)) is not None
        and head.end_line - head.start_line < HEAD_LINES
    }
    below = {unit.piece.start_line for unit in shown}
    last_imports = max((place for place, piece in enumerate(pieces) if piece.kind == "imports"), default=None)
    known = {unit.key for unit in shown}
    selections = []
    for place, unit in enumerate(target.units):
        piece = unit.piece
        if unit.key in known:
            continue
        if piece.kind == "imports":
            selections.append(unit.select("primary", "the file's imports"))
        elif last_imports is None and not place and piece.kind == "code" and piece.end_line <= HEADER_LINES:
            selections.append(unit.select("primary", "the beginning of a file without imports"))
        elif (
            place - 1 == last_imports
            and piece.kind == "code"
            and piece.end_line - piece.start_line < VALUES_LINES
        ):
            selections.append(unit.select("primary", "what follows the imports: the place of new values"))
        elif piece.start_line in heads:
            selections.append(unit.select("primary", "head of a class with a member to be changed"))
        elif piece.kind == "comment" and piece.end_line + 1 in below:
            selections.append(unit.select("primary", "the comment above what is to be changed"))
    return selections


def _named(piece: Piece, view: FileView, planned: frozenset[str]) -> str:
    """Why the plan means the piece; "" where it does not."""
    if is_named(piece, planned):
        return "named by the plan"
    inside = [
        entry
        for entry in view.definitions
        if piece.start_line <= entry.start_line <= entry.end_line <= piece.end_line
    ]
    if piece.kind == "code":
        values = [entry.name for entry in inside if entry.kind in VALUES and is_meant(entry.name, planned)]
        owner = piece.name.rpartition(" (lines ")[0]
        if owner and is_meant(owner, planned):
            return f"stands in {owner}, named by the plan"
    else:
        values = [entry.name for entry in inside if piece.kind == "symbol" and is_meant(entry.name, planned)]
    return f"holds {values[0]}, named by the plan" if values else ""


def names_a_large_class(target: Target) -> bool:
    """Whether all that the plan names of the file are heads of classes, whose members may be meant."""
    kinds = {entry.name: entry.kind for entry in target.view.definitions}
    return bool(target.chosen) and all(
        unit.piece.kind == "head" and kinds.get(unit.piece.name.removesuffix(" (head)")) in CONTAINERS
        for unit, _ in target.chosen
    )


def closeness_to(target: Target, shown: Sequence[Selection]) -> Callable[[Definition], float]:
    """How close a definition stands to what is shown of the file."""
    lines = [one.start_line for one in shown if one.path == target.view.row.path and one.detail == "primary"]

    def closeness(entry: Definition) -> float:
        return -min((abs(entry.start_line - line) for line in lines), default=entry.start_line)

    return closeness

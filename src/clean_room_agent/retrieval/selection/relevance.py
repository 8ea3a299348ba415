"""Scores pieces of code by how near they are to a task: their words, and hints from the plan, the task and its tests."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.indexer.terms import count_terms
from clean_room_agent.query.file_kinds import is_test_file
from clean_room_agent.query.ranking import KIND_WEIGHTS
from clean_room_agent.retrieval.code.pieces import OTHER_KINDS, Piece, definition_name
from clean_room_agent.retrieval.stage_source import FileView

SATURATION = 2.0
NAME_WEIGHT = 3.0
"""A term in a piece's name counts as often."""
PLAN_GAIN = 1.0
FRAME_GAIN = 0.5
NAMED_GAIN = 0.5
TESTED_GAIN = 0.4

PieceKey = tuple[str, int]
"""Path and first line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What makes a piece likely beside its words."""

    planned: frozenset[str]
    """Symbols that a plan names."""
    named: frozenset[str]
    """Symbols and identifiers that the task names."""
    frames: tuple[StackFrame, ...]
    wants_tests: bool
    named_outright: frozenset[str] = frozenset()
    """Symbols that the task's own words name: their pieces are in without asking."""
    test_words: frozenset[str] = frozenset()
    """Words of the code of the tests that fail."""


def score_pieces(
    views: Sequence[FileView], terms: Mapping[str, float], hints: Hints
) -> dict[PieceKey, float]:
    """A score from 0 to 1 for every piece; the best has 1 (where any has more than 0)."""
    bags = {
        (view.row.path, piece.start_line): _bag(view, piece, terms) for view in views for piece in view.pieces
    }
    document_counts = Counter(term for bag in bags.values() for term in bag)
    total = len(bags)
    idf = {term: math.log(1 + (total - held + 0.5) / (held + 0.5)) for term, held in document_counts.items()}
    words = {
        key: sum(terms[term] * idf[term] * tf / (tf + SATURATION) for term, tf in sorted(bag.items()))
        for key, bag in bags.items()
    }
    words = _relative(words)
    scores = {}
    for view in views:
        weight = 1.0 if hints.wants_tests or not is_test_file(view.row.path) else KIND_WEIGHTS["test"]
        for piece in view.pieces:
            key = (view.row.path, piece.start_line)
            scores[key] = weight * (words[key] + _gain(view, piece, hints))
    return {key: round(score, 4) for key, score in _relative(scores).items()}


def is_named(piece: Piece, names: frozenset[str]) -> bool:
    """Whether any of the plain or dotted names means the piece (or, for a head, its class)."""
    own = definition_name(piece)
    return bool(own) and matches_name(own, names)


def is_named_outright(piece: Piece, hints: Hints) -> bool:
    """Whether the task's own words name the piece; the head of a large class does not count as named."""
    return piece.kind != "head" and is_named(piece, hints.named_outright)


def matches_name(own: str, names: frozenset[str]) -> bool:
    """Whether any of the plain or dotted names means the definition with the qualified name `own`."""
    return any(own == name or own.endswith("." + name) for name in names)


def holds_frame(path: str, piece: Piece, frames: Sequence[StackFrame]) -> bool:
    """Whether a stack frame lies in the piece."""
    return any(frame.path == path and piece.start_line <= frame.line <= piece.end_line for frame in frames)


def _gain(view: FileView, piece: Piece, hints: Hints) -> float:
    path = view.row.path
    gain = 0.0
    if _defines(view, piece, hints.test_words):
        gain += TESTED_GAIN
    if is_named(piece, hints.planned):
        gain += PLAN_GAIN
    if holds_frame(path, piece, hints.frames):
        gain += FRAME_GAIN
    if is_named(piece, hints.named):
        gain += NAMED_GAIN
    return gain


def _defines(view: FileView, piece: Piece, words: frozenset[str]) -> bool:
    """Whether the piece is, or holds, a definition of one of these plain names."""
    return any(
        entry.name.rpartition(".")[2] in words
        for entry in view.definitions
        if piece.start_line <= entry.start_line <= entry.end_line <= piece.end_line
    )


def _bag(view: FileView, piece: Piece, wanted: Mapping[str, float]) -> dict[str, float]:
    """How often each wanted term stands in the piece; its name counts more."""
    found = count_terms(view.text.span(piece.start_line, piece.end_line))
    bag = {term: float(count) for term, count in found.items() if term in wanted}
    if piece.kind not in OTHER_KINDS:
        for term in count_terms(piece.name):
            if term in wanted:
                bag[term] = bag.get(term, 0.0) + NAME_WEIGHT
    return bag


def _relative(scores: Mapping[PieceKey, float]) -> dict[PieceKey, float]:
    top = max(scores.values(), default=0.0)
    return {key: score / top if top > 0 else 0.0 for key, score in scores.items()}

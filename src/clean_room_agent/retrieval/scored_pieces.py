"""The pieces of the files in scope, scored by how close they are to a task: what the precision stage chooses from.

Also, code in short: signatures, outlines, and the lines closest to a task.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from textwrap import indent

from msgspec import Struct

from clean_room_agent.artifacts.context import ContextRequest, Detail, TaskQuery
from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.artifacts.names import item_name
from clean_room_agent.indexer.terms import bags_of, count_terms
from clean_room_agent.paths import is_test_file
from clean_room_agent.query.ranking import KIND_WEIGHTS
from clean_room_agent.retrieval.candidates import asks_for_tests, search_query
from clean_room_agent.retrieval.failing_tests import TestCode, find_tests
from clean_room_agent.retrieval.mentions import WORD
from clean_room_agent.retrieval.pieces import (
    OTHER_KINDS,
    VALUES,
    CodePiece,
    IndexedDefinition,
    definition_name,
)
from clean_room_agent.retrieval.stage import Candidate, Option, Selection, StageContext
from clean_room_agent.retrieval.stage_source import FileView, NotEditable, RepositorySource

NOTES_SHOWN = 3
MOST_CHARS = 300
"""Of a signature or a line of documentation in a list: a minified file has lines larger than a window."""
QUOTED_CHARS = 160
"""Of a line, as it is quoted."""
SATURATION = 2.0
NAME_WEIGHT = 3.0
"""A term in a piece's name counts as often."""
PLAN_GAIN = 1.0
FRAME_GAIN = 0.5
NAMED_GAIN = 0.5
TESTED_GAIN = 0.4
TOKENS_PER_LINE = 16
"""On the high side, so that a definition that might not fit is divided."""
MIN_DIVIDED_LINES = 60
TEST_TERM_WEIGHT = 0.3
"""Of a word in a failing test; those of the task weigh 1 or more."""
TIER_GAIN = {0: 0.5, 1: 0.25}
"""Added for files that a plan or the task names, when pieces are ordered to be judged."""
BODY_LINES = 30
"""A piece up to this long is shown to the judge whole; a longer one by its outline and its nearest lines."""
BODY_CHARS = 3000
"""The same in characters, as a minified file has lines larger than a window."""
LINES_SHOWN = 6
DOC_MARKS = " \t\r\n\"'/*#"
PieceKey = tuple[str, int]
"""Path and first line."""


def summary(piece: CodePiece) -> str:
    """The signature, the documentation, and the first comments that give a reason."""
    parts = [piece.signature]
    if piece.doc:
        parts.append(indent(piece.doc, "    "))
    parts.extend(f"    {note}" for note in piece.notes[:NOTES_SHOWN])
    return "\n".join((*parts, ""))


def short_summary(piece: CodePiece) -> str:
    """The signature in one line, and the first line of the documentation."""
    doc = piece.doc.strip().split("\n", 1)[0]
    described = f"    {_shorten_text(doc, MOST_CHARS)}\n" if doc else ""
    return f"{_shorten_text(piece.signature, MOST_CHARS)}\n{described}"


def names_outline(view: FileView, nearness: Callable[[IndexedDefinition], float], *, most: int) -> str:
    """Names and lines of the file's classes, functions and methods, in order.

    Of more than `most`, the nearest are listed, and how many more there are.
    """
    functions = {entry.name for entry in view.definitions if entry.kind in {"function", "method"}}
    named = [
        entry
        for entry in view.definitions
        if entry.kind not in VALUES and entry.name.rpartition(".")[0] not in functions
    ]
    near = sorted(named, key=lambda entry: (-nearness(entry), entry.start_line))[:most]
    lines = [
        f"{entry.start_line}-{entry.end_line} {entry.name}"
        for entry in sorted(near, key=lambda entry: (entry.start_line, -entry.end_line))
    ]
    if len(named) > len(near):
        lines.append(f"({len(named) - len(near)} more definitions)")
    return "\n".join((*lines, "")) if lines else f"({len(view.text.lines)} lines without definitions)\n"


def first_line(text: str) -> str:
    """The first line that is not blank, shortened, with a line break."""
    return _shorten_text(next((line for line in text.split("\n") if line.strip()), ""), MOST_CHARS) + "\n"


def nearest_lines(
    lines: Sequence[str], terms: Mapping[str, float], *, most: int, first: int = 1
) -> tuple[tuple[int, str], ...]:
    """(number, text) of up to `most` lines with wanted terms, in the order of the file.

    The rarer a term is among the lines, the more it counts; among equal lines, the first wins. `first` is the number of
    the first line given. For {"price": 1, "round": 1} and most=1:

        for price in prices:     "price" is in two lines
            total += price
        return round(total)      (3, "return round(total)"): "round" is in one line only
    """
    bags = bags_of(lines, terms.keys())
    held = Counter(term for bag in bags for term in bag)
    weights = {term: terms[term] / math.log(2 + count) for term, count in held.items()}
    scores = {at: sum(weights[term] for term in sorted(bag)) for at, bag in enumerate(bags) if bag}
    best = sorted((at for at, score in scores.items() if score > 0), key=lambda at: (-scores[at], at))
    return tuple((first + place, quoted_line(lines[place])) for place in sorted(best[:most]))


def quoted_line(line: str) -> str:
    """The line, stripped, and cut if it is very long."""
    text = line.strip()
    return text if len(text) <= QUOTED_CHARS else f"{text[:QUOTED_CHARS]} [cut]"


def numbered(lines: Sequence[tuple[int, str]]) -> str:
    """Each line after its number."""
    return "".join(f"{number}: {text}\n" for number, text in lines)


def _without_summary(lines: Sequence[str], piece: CodePiece) -> list[str]:
    """The lines of the piece, with those blank that `short_summary` shows above them."""
    kept = list(lines)
    shown = [line.strip() for line in piece.signature.split("\n")]
    for start in range(len(lines) - len(shown) + 1):
        end = start + len(shown)
        if [line.strip() for line in lines[start:end]] == shown:
            kept[start:end] = [""] * len(shown)
            break
    doc = piece.doc.strip().split("\n", 1)[0].strip(DOC_MARKS)
    said = [at for at, line in enumerate(kept) if doc and _strip_doc_marks(line) == doc][:1]
    return ["" if at in said else line for at, line in enumerate(kept)]


def _strip_doc_marks(line: str) -> str:
    text = line.strip(DOC_MARKS)
    return text[1:].strip(DOC_MARKS) if text[:1] in "rRuU" and text[1:2] in {'"', "'"} else text


def _shorten_text(text: str, most: int) -> str:
    """The text in one line; if too long, its first `most` characters and how many more there are."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]} (and {len(line) - most} more characters)"


class PieceHints(Struct, frozen=True, kw_only=True):
    """What makes a piece likely, apart from its words."""

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
    views: Sequence[FileView], terms: Mapping[str, float], hints: PieceHints
) -> dict[PieceKey, float]:
    """Score every piece from 0 to 1; the best has 1 (if any has more than 0)."""
    bags = {
        (view.row.path, piece.start_line): _term_bag(view, piece, terms)
        for view in views
        for piece in view.pieces
    }
    document_counts = Counter(term for bag in bags.values() for term in bag)
    total = len(bags)
    idf = {term: math.log(1 + (total - held + 0.5) / (held + 0.5)) for term, held in document_counts.items()}
    words = {
        key: sum(terms[term] * idf[term] * tf / (tf + SATURATION) for term, tf in sorted(bag.items()))
        for key, bag in bags.items()
    }
    words = _relative_scores(words)
    scores = {}
    for view in views:
        weight = 1.0 if hints.wants_tests or not is_test_file(view.row.path) else KIND_WEIGHTS["test"]
        for piece in view.pieces:
            key = (view.row.path, piece.start_line)
            scores[key] = weight * (words[key] + _score_gain(view, piece, hints))
    return {key: round(score, 4) for key, score in _relative_scores(scores).items()}


def is_named(piece: CodePiece, names: frozenset[str]) -> bool:
    """Whether any of the plain or dotted names refers to the piece (or, for a head, to its class)."""
    own = definition_name(piece)
    return bool(own) and matches_name(own, names)


def is_named_outright(piece: CodePiece, hints: PieceHints) -> bool:
    """Whether the task's own words name the piece; the head of a large class does not count as named."""
    return piece.kind != "head" and is_named(piece, hints.named_outright)


def matches_name(own: str, names: frozenset[str]) -> bool:
    """Whether any of the plain or dotted names refers to the definition with the qualified name `own`."""
    return any(own == name or own.endswith("." + name) for name in names)


def holds_frame(path: str, piece: CodePiece, frames: Sequence[StackFrame]) -> bool:
    """Whether a stack frame is in the piece."""
    return any(frame.path == path and piece.start_line <= frame.line <= piece.end_line for frame in frames)


def _score_gain(view: FileView, piece: CodePiece, hints: PieceHints) -> float:
    gains = (
        (TESTED_GAIN, _defines_any_name(view, piece, hints.test_words)),
        (PLAN_GAIN, is_named(piece, hints.planned)),
        (FRAME_GAIN, holds_frame(view.row.path, piece, hints.frames)),
        (NAMED_GAIN, is_named(piece, hints.named)),
    )
    return sum(gain for gain, has in gains if has)


def _defines_any_name(view: FileView, piece: CodePiece, words: frozenset[str]) -> bool:
    """Whether the piece is or contains a definition with one of these unqualified names."""
    return any(
        entry.name.rpartition(".")[2] in words
        for entry in view.definitions
        if piece.start_line <= entry.start_line <= entry.end_line <= piece.end_line
    )


def _term_bag(view: FileView, piece: CodePiece, wanted: Mapping[str, float]) -> dict[str, float]:
    """How often each wanted term occurs in the piece; its name counts more."""
    found = _text_terms(view.text.span(piece.start_line, piece.end_line))
    bag = {term: float(found[term]) for term in wanted.keys() & found.keys()}
    if piece.kind not in OTHER_KINDS:
        for term in count_terms(piece.name):
            if term in wanted:
                bag[term] = bag.get(term, 0.0) + NAME_WEIGHT
    return bag


@lru_cache(maxsize=2048)
def _text_terms(text: str) -> Mapping[str, int]:
    """How often each term stands in the text; kept, because each stage and pass scores the same pieces."""
    return count_terms(text)


def _relative_scores(scores: Mapping[PieceKey, float]) -> dict[PieceKey, float]:
    top = max(scores.values(), default=0.0)
    return {key: score / top if top > 0 else 0.0 for key, score in scores.items()}


class ScoredPiece(Struct, frozen=True, kw_only=True):
    """A piece of a file in scope, with its score."""

    entry: Candidate
    view: FileView
    piece: CodePiece
    score: float

    @property
    def key(self) -> PieceKey:
        """Identifies it among all pieces."""
        return (self.entry.path, self.piece.start_line)

    @property
    def rank(self) -> tuple[float, PieceKey]:
        """The order in which pieces are judged (total)."""
        return (-self.score - TIER_GAIN.get(self.entry.tier, 0.0), self.key)

    @property
    def text(self) -> str:
        """Its lines."""
        return self.view.text.span(self.piece.start_line, self.piece.end_line)

    def as_option(self, terms: Mapping[str, float]) -> Option:
        """The piece as a judge sees it."""
        piece, path = self.piece, self.entry.path
        text = self.text
        if piece.end_line - piece.start_line >= BODY_LINES or len(text) > BODY_CHARS:
            lines = self.view.text.lines[piece.start_line - 1 : piece.end_line]
            body = _without_summary(lines, piece)
            near = nearest_lines(body, terms, most=LINES_SHOWN, first=piece.start_line)
            text = short_summary(piece) + numbered(near)
        return Option(
            key=item_name(f"{path}:{piece.start_line}", piece.name),
            name=item_name(path, piece.name, (piece.start_line, piece.end_line)),
            text=text,
            score=self.score,
        )

    def select(self, detail: Detail, reason: str) -> Selection:
        """The piece, shown in this detail."""
        return Selection(
            path=self.entry.path,
            symbol=self.piece.name,
            start_line=self.piece.start_line,
            end_line=self.piece.end_line,
            detail=detail,
            tier=self.entry.tier,
            score=self.score,
            reason=reason,
            outline=summary(self.piece) if self.piece.kind not in OTHER_KINDS else "",
        )


class FilesInScope(Struct, frozen=True, kw_only=True):
    """The files in scope, divided into scored pieces."""

    views: tuple[tuple[Candidate, FileView], ...]
    """In the order of the files in scope."""
    pieces: tuple[ScoredPiece, ...]
    """All pieces, in the order of the files and their lines."""
    hints: PieceHints
    terms: Mapping[str, float]
    """What the task and its failing tests ask for, weighted."""
    tests: tuple[TestCode, ...]
    """The tests that fail, or that the task names."""
    unreadable: tuple[tuple[Candidate, NotEditable], ...]
    """Files that cannot be shown."""


def files_in_scope(context: StageContext, source: RepositorySource, query: TaskQuery) -> FilesInScope:
    """Divide the context's files into scored pieces, none of which fills the available tokens.

    Raises:
        RepositoryError: a file in scope differs from what was indexed.
    """
    views: list[tuple[Candidate, FileView]] = []
    unreadable: list[tuple[Candidate, NotEditable]] = []
    max_lines = max(MIN_DIVIDED_LINES, context.available_tokens // TOKENS_PER_LINE)
    for entry in context.files:
        view = source.view(entry.path, max_lines=max_lines, available_tokens=context.available_tokens)
        if isinstance(view, NotEditable):
            unreadable.append((entry, view))
        else:
            views.append((entry, view))
    tests = find_tests(query, source)
    hints = PieceHints(
        planned=frozenset(context.request.symbols),
        named=frozenset((*query.symbols, *query.identifiers)),
        frames=query.frames,
        wants_tests=asks_for_tests(query),
        named_outright=frozenset(query.named),
        test_words=words_of(tests),
    )
    terms = weighted_terms(context.request, query, tests)
    scores = score_pieces([view for _, view in views], terms, hints)
    pieces = tuple(
        ScoredPiece(entry=entry, view=view, piece=piece, score=scores[entry.path, piece.start_line])
        for entry, view in views
        for piece in view.pieces
    )
    return FilesInScope(
        views=tuple(views), pieces=pieces, hints=hints, terms=terms, tests=tests, unreadable=tuple(unreadable)
    )


def words_of(tests: Sequence[TestCode]) -> frozenset[str]:
    """The words in the code of the tests."""
    return frozenset(word for test in tests for word in WORD.findall(test.text))


def weighted_terms(request: ContextRequest, query: TaskQuery, tests: Sequence[TestCode]) -> dict[str, float]:
    """The task's search terms, and those of the code of its tests."""
    terms = dict(search_query(request, query).terms)
    for term in count_terms("\n".join(test.text for test in tests)):
        terms[term] = max(terms.get(term, 0.0), TEST_TERM_WEIGHT)
    return terms

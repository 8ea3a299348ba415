"""Adds near misses to a commit's questions, so that a judge learns to tell them apart from what is needed.

Of the verdicts that say no, 70 % are about the top of the ranking, 20 % about files in the same folders, 10 % about any
files. What the commit changes and the ranking missed is asked about, too. Each question is one of the run's own with
its candidate exchanged, in the question and in the list of candidates.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextRequest, TaskQuery
from clean_room_agent.artifacts.names import parse_item_name
from clean_room_agent.paths import kind_of
from clean_room_agent.retrieval.failing_tests import find_tests
from clean_room_agent.retrieval.judges import frame_option
from clean_room_agent.retrieval.pieces import OTHER_KINDS
from clean_room_agent.retrieval.retriever import Retrieved
from clean_room_agent.retrieval.scope_stage import describe_file
from clean_room_agent.retrieval.scored_pieces import ScoredPiece, read_view, weighted_terms
from clean_room_agent.retrieval.stage import Candidate, Option, SingleInputs
from clean_room_agent.retrieval.stage_source import NotEditable, RepositorySource
from clean_room_agent.training.commit_answers import Gold

ThingT = TypeVar("ThingT")

RANKED, NEIGHBOURS, RANDOM = 7, 2, 1
"""Tenths of the verdicts that say no."""
MAX_MISSED = 3
"""The most changed files or pieces missed by the ranking that are asked about."""
MAX_FILES_READ = 6
"""Files of which pieces are taken."""


class LivePass(Struct, frozen=True, kw_only=True):
    """The candidates of a pass, and the right answers."""

    request: ContextRequest
    query: TaskQuery
    found: Retrieved
    source: RepositorySource
    gold: Gold
    seed: str


class Question(Struct, frozen=True, kw_only=True):
    """One more question."""

    item: str
    inputs: SingleInputs
    found_by: str


def more_file_questions(live: LivePass, asked: Mapping[str, SingleInputs]) -> Iterator[Question]:
    """Further questions about files, besides those that the pass asked; none if it asked none."""
    if not asked:
        return
    terms = weighted_terms(live.request, live.query, find_tests(live.query, live.source))
    right = {"changed", "used", "dependency"}
    wrong = sum(live.gold.label_of_file(path) == "not edited" for path in asked)
    taken = {*asked, *(entry.path for entry in live.found.candidates if entry.tier <= 1)}
    missed = [path for path in live.gold.files if live.source.file(path) is not None and path not in taken]
    others = [
        path
        for path in live.source.paths()
        if path not in taken and kind_of(path) == "code" and live.gold.label_of_file(path) not in right
    ]
    for path, found_by in _drawn(live, "files", missed, others, wrong, folder_of=lambda path: path):
        option = Option(key=path, name=path, text=describe_file(path, terms, live.source), score=0.0)
        yield _exchanged(asked, option, lambda name: live.gold.label_of_file(name) == "not edited", found_by)


def more_piece_questions(live: LivePass, asked: Mapping[str, SingleInputs]) -> Iterator[Question]:
    """Further questions about code, besides those that the pass asked; none if it asked none."""
    if not asked:
        return
    terms = weighted_terms(live.request, live.query, find_tests(live.query, live.source))
    shown = {item.path for item in live.found.package.items}
    missing = [
        path for path, file in live.gold.files.items() if file.before is not None and path not in shown
    ]
    missed = [scored for scored in _units(live, missing) if _label(live.gold, scored) == "change"]
    wrong = sum(_label_of_name(live.gold, name) == "skip" for name in next(iter(asked.values())).others)
    others = [
        scored
        for scored in _units(live, _files_near_and_far(live))
        if scored.as_option(terms).key not in asked and _label(live.gold, scored) == "skip"
    ]
    for scored, found_by in _drawn(
        live, "code", missed, others, wrong, folder_of=lambda scored: scored.entry.path
    ):
        option = scored.as_option(terms)
        yield _exchanged(asked, option, lambda name: _label_of_name(live.gold, name) == "skip", found_by)


def _drawn(
    live: LivePass,
    what: str,
    missed: Sequence[ThingT],
    others: Sequence[ThingT],
    wrong: int,
    *,
    folder_of: Callable[[ThingT], str],
) -> Iterator[tuple[ThingT, str]]:
    """What is asked about besides the ranking, each with how it was found. `wrong` is the number of noes from the
    ranking.
    """
    chance = random.Random(f"{live.seed}\n{what}")  # noqa: S311 - guards nothing, and must be the same each time
    for thing in missed[:MAX_MISSED]:
        yield thing, "commit"
    folders = {PurePosixPath(path).parent for path in live.gold.files}
    near = [thing for thing in others if PurePosixPath(folder_of(thing)).parent in folders]
    far = [thing for thing in others if PurePosixPath(folder_of(thing)).parent not in folders]
    for found_by, pool, share in (("neighbour", near, NEIGHBOURS), ("random", far, RANDOM)):
        wanted = wrong * share / RANKED
        count = int(wanted) + (chance.random() < wanted - int(wanted))
        for thing in chance.sample(pool, min(count, len(pool))):
            yield thing, found_by


def _exchanged(
    asked: Mapping[str, SingleInputs], option: Option, is_wrong: Callable[[str], bool], found_by: str
) -> Question:
    """A question of the pass with `option` in place of the last wrong candidate."""
    inputs = next(iter(asked.values()))
    names = list(inputs.others)
    place = next((at for at in reversed(range(len(names))) if is_wrong(names[at])), len(names))
    names[place : place + 1] = [option.name]
    others = replace(inputs, option=frame_option(option), others=tuple(names))
    return Question(item=option.key, inputs=others, found_by=found_by)


def _units(live: LivePass, paths: Sequence[str]) -> Iterator[ScoredPiece]:
    """The definitions of these files, as a stage would offer them."""
    account = live.found.package.budget
    for path in paths:
        row = live.source.file(path)
        if row is None:
            continue
        view = read_view(path, live.source, account.context_window - account.reserved_tokens)
        if isinstance(view, NotEditable):
            continue
        entry = Candidate(path=path, file_id=row.id, tier=4, score=0.0, reasons=())
        for piece in view.pieces:
            if piece.kind not in OTHER_KINDS:
                yield ScoredPiece(entry=entry, view=view, piece=piece, score=0.0)


def _files_near_and_far(live: LivePass) -> list[str]:
    """A few code files from the folders of the changed files, and from others."""
    chance = random.Random(f"{live.seed}\nfiles of code")  # noqa: S311 - as above
    folders = {PurePosixPath(path).parent for path in live.gold.files}
    code = [path for path in live.source.paths() if kind_of(path) == "code"]
    near = [path for path in code if PurePosixPath(path).parent in folders]
    far = [path for path in code if PurePosixPath(path).parent not in folders]
    half = MAX_FILES_READ // 2
    return chance.sample(near, min(half, len(near))) + chance.sample(far, min(half, len(far)))


def _label(gold: Gold, scored: ScoredPiece) -> str:
    return gold.label_of_piece(scored.entry.path, scored.piece.start_line, scored.piece.end_line)


def _label_of_name(gold: Gold, name: str) -> str:
    item = parse_item_name(name)
    return gold.label_of_piece(item.path, *item.lines) if item.symbol and item.lines else ""

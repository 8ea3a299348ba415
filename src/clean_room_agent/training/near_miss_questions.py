"""Adds questions about files to those that a commit's passes ask, so that a judge learns to tell near misses from what is
needed: what the commit changes and the ranking missed, and, of the verdicts that say no, 20 % about files in the same
folders and 10 % about any files, besides the 70 % about the top of the ranking.

Each is one of the run's own questions with its candidate exchanged, in the question and in the list of candidates.
"""

import random
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextRequest, TaskQuery
from clean_room_agent.paths import kind_of
from clean_room_agent.retrieval.failing_tests import find_tests
from clean_room_agent.retrieval.judges import frame_option
from clean_room_agent.retrieval.retriever import Retrieved
from clean_room_agent.retrieval.scope_stage import describe_file
from clean_room_agent.retrieval.scored_pieces import weighted_terms
from clean_room_agent.retrieval.stage import Option, SingleInputs
from clean_room_agent.retrieval.stage_source import RepositorySource
from clean_room_agent.training.commit_answers import Gold

RANKED, NEIGHBOURS, RANDOM = 7, 2, 1
"""Tenths of the verdicts that say no."""
MAX_MISSED = 3
"""The most changed files missed by the ranking that are asked about."""
WRONG = "not edited"


def more_file_questions(
    asked: Mapping[str, SingleInputs],
    gold: Gold,
    request: ContextRequest,
    query: TaskQuery,
    found: Retrieved,
    source: RepositorySource,
    *,
    seed: str,
) -> Iterator[tuple[str, SingleInputs, str]]:
    """Further questions about files: path, inputs, and how it was found; none if the pass asked none."""
    if not asked:
        return
    terms = weighted_terms(request, query, find_tests(query, source))
    inputs = next(iter(asked.values()))
    names = list(inputs.others)
    wrong_names = [at for at, name in enumerate(names) if gold.label_of_file(name) == WRONG]
    place = wrong_names[-1] if wrong_names else len(names)
    taken = {*asked, *(entry.path for entry in found.candidates if entry.tier <= 1)}
    wrong = sum(gold.label_of_file(path) == WRONG for path in asked)
    for path, found_by in _drawn(gold, source, taken, wrong, random.Random(f"{seed}\nfiles")):  # noqa: S311 - guards nothing, and must be the same each time
        option = Option(key=path, name=path, text=describe_file(path, terms, source), score=0.0)
        others = (*names[:place], path, *names[place + 1 :])
        yield path, replace(inputs, option=frame_option(option), others=others), found_by


def _drawn(
    gold: Gold, source: RepositorySource, taken: set[str], wrong: int, chance: random.Random
) -> Iterator[tuple[str, str]]:
    """Files besides the ranking, each with how it was found. `wrong` is the number of noes from the ranking."""
    missed = [path for path in gold.files if source.file(path) is not None and path not in taken]
    for path in missed[:MAX_MISSED]:
        yield path, "commit"
    folders = {PurePosixPath(path).parent for path in gold.files}
    near: list[str] = []
    far: list[str] = []
    for path in source.paths():
        if path not in taken and kind_of(path) == "code" and gold.label_of_file(path) == WRONG:
            (near if PurePosixPath(path).parent in folders else far).append(path)
    for found_by, pool, share in (("neighbour", near, NEIGHBOURS), ("random", far, RANDOM)):
        wanted = wrong * share / RANKED
        count = int(wanted) + (chance.random() < wanted - int(wanted))
        for path in chance.sample(pool, min(count, len(pool))):
            yield path, found_by

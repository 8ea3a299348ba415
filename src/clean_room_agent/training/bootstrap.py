"""Turns commit histories into a dataset: mines them, makes the missing shards, and assembles the contents of all
shards.
"""

import multiprocessing
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Literal, TypeVar

from msgspec import Struct

from clean_room_agent.cancellation import end_with_parent
from clean_room_agent.errors import GitError
from clean_room_agent.git.log import stream_changes
from clean_room_agent.json_values import from_plain
from clean_room_agent.training.commit_sources import Exclusions, Source
from clean_room_agent.training.dataset import DatasetEntry, Message, RowOrigin, Split, TrainingRow
from clean_room_agent.training.dataset_filters import near_duplicates, split_groups, split_repositories
from clean_room_agent.training.mining import MinedCommit, mine
from clean_room_agent.training.pairs import Making
from clean_room_agent.training.shards import Unit, WorkUnit, cut_units, read_shard, shard_path

SAME = 0.7
"""Jaccard similarity from which two commits, or two pairs of a prompt, are nearly the same."""
ORDER: Mapping[Split, int] = {"test": 0, "validation": 1, "train": 2}
REFUSED = {"commit": "commit", "fault": "repository"}
GROUP = {"commit": "commit", "fault": "function"}
"""What rows of one question come from."""
NEGATIVE = frozenset({"no", "skip"})
"""Verdicts that reject the item."""
Progress = Callable[[int, int], None]
Splitter = Callable[[Sequence[TrainingRow]], Mapping[Hashable, Split]]
"""The split of each group of rows."""
UnitT = TypeVar("UnitT", bound=Unit)


class Mined(Struct, frozen=True, kw_only=True):
    """What rows are to be made from."""

    what: Literal["commit", "fault"] = "commit"
    units: tuple[Unit, ...]
    seen: int
    """Commits, or faults."""
    refused: Mapping[str, int]
    """Refused commits by the filter that refused them, or repositories in which no fault may be planted."""
    unread: tuple[tuple[str, str], ...] = ()
    """(name, reason) of the repositories that were not read, or not to the end."""


class Assembled(Struct, frozen=True, kw_only=True):
    """The rows of a dataset, and what was left out of it."""

    entries: tuple[DatasetEntry, ...]
    groups: int
    """Commits, or functions with faults, that at least one row comes from."""
    left_out: Mapping[str, int]
    """Commits or faults that make no task, then pairs, by reason."""
    positive: Mapping[str, int]
    """For each prompt, the rows whose verdict accepts the item; if it judges nothing, all rows."""


def mine_sources(
    sources: Iterable[Source],
    exclusions: Exclusions,
    *,
    unit_commits: int,
    newest: int | None,
    progress: Progress,
) -> Mined:
    """The commits that may be tasks, at most the `newest` of each history, in units; as far as git can read a history."""
    units: list[WorkUnit] = []
    refused: Counter[str] = Counter()
    unread: list[tuple[str, str]] = []
    kept = 0
    every = tuple(sources)
    for number, source in enumerate(every):
        progress(number, len(every))
        changes = stream_changes(source.git_dir, source.head)
        commits: list[MinedCommit] = []
        try:
            for commit in mine(changes, refused, skip=exclusions.commits):
                commits.append(commit)  # noqa: PERF402 - those before an object that git cannot read count
        except GitError as exc:
            unread.append((source.name, exc.message))
        if newest is not None and len(commits) > newest:
            refused["older than the newest that are wanted"] += len(commits) - newest
            commits = commits[-newest:]
        kept += len(commits)
        units += cut_units(source.name, source.git_dir, commits, unit_commits)
    return Mined(
        units=tuple(units),
        seen=kept + refused.total(),
        refused=dict(sorted(refused.items())),
        unread=tuple(unread),
    )


def missing_units(folder: Path, units: Iterable[UnitT], making: Making) -> tuple[UnitT, ...]:
    """The units whose file does not exist yet."""
    return tuple(unit for unit in units if not shard_path(folder, unit, making).exists())


def make_shards(
    make: Callable[[UnitT], object], units: Sequence[UnitT], progress: Progress, *, jobs: int, engine: str
) -> None:
    """Make the units' shards: on a Ray cluster, or on this machine in `jobs` processes (in this one for 1).

    `make`, a function of a module or a part of one, writes a unit's own file: a worker that dies leaves none, or a whole one. Its
    folder and the repositories must have the same paths on all machines. `progress` is told at once that none is made.
    """
    progress(0, len(units))
    if engine == "ray":
        from clean_room_agent.training.cluster import call_on_ray

        for number, _ in enumerate(call_on_ray(make, units), 1):
            progress(number, len(units))
        return
    if jobs == 1 or len(units) < 2:
        for number, unit in enumerate(units, 1):
            make(unit)
            progress(number, len(units))
        return
    # Not forked: threads of this process may hold locks.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(units)), context, initializer=end_with_parent) as pool:
        waiting = [pool.submit(make, unit) for unit in units]
        try:
            for number, done in enumerate(as_completed(waiting), 1):
                done.result()
                progress(number, len(units))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def assemble(folder: Path, mined: Mined, making: Making, split: Splitter | None = None) -> Assembled:
    """The rows of all shards, split, without near-duplicates; the same for the same shards, whichever machines made
    them. `split`: by default that of commits, or of faults in repositories of others.
    """
    left_out: Counter[str] = Counter(
        {f"{REFUSED[mined.what]}: {reason}": count for reason, count in mined.refused.items()}
    )
    rows: list[TrainingRow] = []
    changes: dict[Hashable, str] = {}
    for unit in mined.units:
        shard = read_shard(shard_path(folder, unit, making))
        left_out.update(
            {name: count for name, count in shard.counts.items() if name not in {"commits", "pairs"}}
        )
        for columns in shard.rows:
            rows.append(_as_row(columns))
            changes.setdefault(rows[-1].origin.group, columns["change"])
    split = split or (split_groups if mined.what == "commit" else split_repositories)
    splits = split(rows)
    # What is nearly the same as something in the test is taken out of training, not the other way round.
    rows.sort(key=lambda row: ORDER[splits[row.origin.group]])
    known = sorted(changes, key=lambda group: ORDER[splits[group]])
    again = near_duplicates([changes[group] for group in known], known, threshold=SAME)
    repeated = {known[place] for place in again}
    left_out[f"pair of a {GROUP[mined.what]} much like another"] = sum(
        row.origin.group in repeated for row in rows
    )
    kept: list[TrainingRow] = []
    for stage in sorted({row.origin.stage for row in rows}):
        own = [row for row in rows if row.origin.stage == stage and row.origin.group not in repeated]
        # Pairs of other commits are compared by their own text; those of other splits by all their words, the prompt's
        # rules too, as of two groups nothing is taken for the prompt's own.
        for group_of in (
            lambda row: row.origin.group,
            lambda row: splits[row.origin.group] == "train",
            lambda row: splits[row.origin.group] == "test",
        ):
            texts = [f"{row.prompt[-1].content}\n{row.completion[-1].content}" for row in own]
            repeats = set(near_duplicates(texts, [group_of(row) for row in own], threshold=SAME))
            left_out[f"{stage}: much like another pair"] += len(repeats)
            own = [row for place, row in enumerate(own) if place not in repeats]
        kept += own
    return Assembled(
        entries=tuple(DatasetEntry(split=splits[row.origin.group], kind="sft", row=row) for row in kept),
        groups=len({row.origin.group for row in kept}),
        left_out={reason: count for reason, count in sorted(left_out.items()) if count},
        positive=Counter(row.origin.stage for row in kept if row.completion[-1].content not in NEGATIVE),
    )


def _as_row(columns: Mapping[str, Any]) -> TrainingRow:
    user = Message(role="user", content=columns["prompt"])
    system = Message(role="system", content=columns["system"])
    return TrainingRow(
        prompt=(system, user) if system.content else (user,),
        completion=(Message(role="assistant", content=columns["answer"]),),
        origin=from_plain({**columns, "source": "synthetic"}, RowOrigin),
    )

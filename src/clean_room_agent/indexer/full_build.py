"""Builds a complete index with several processes, each of which writes what it has parsed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from clean_room_agent import syntax
from clean_room_agent.db.curated import files
from clean_room_agent.db.curated.bulk_load import IndexDraft, new_draft
from clean_room_agent.db.curated.files import SkippedStamp
from clean_room_agent.db.curated.names import StoredNames, insert_resolutions
from clean_room_agent.db.curated.postings import BUCKET
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.extract import ExtractedFile, extract
from clean_room_agent.indexer.history.build import PendingHistory
from clean_room_agent.indexer.index_run import Failed, IndexOutcome, IndexRun, failure, put_repo, put_states
from clean_room_agent.indexer.resolution import StoredWorld
from clean_room_agent.indexer.scan import scan
from clean_room_agent.indexer.workers import Channel, WorkerPool
from clean_room_agent.indexer.write import insert_files

CREATED, READ, RESOLVED = "created", "read", "resolved"
REPO_ID = 1
NEEDED_TO_RESOLVE = ("symbols_by_name", "symbols_by_file", "files_by_path")
"""Indexes that workers search by, when all files are read."""
RESOLVED_TABLES = ("dependencies", "lookups", "reexports", "symbol_references")
"""What workers write at last; the indexes of all else are made meanwhile."""
CODE_COST = 5
"""How much longer a byte of code takes than one of text."""
RESOLVED_AT_ONCE = 64
"""Files whose references are written in one go."""


class _Plan(Struct, frozen=True, kw_only=True):
    """What the workers inherit when they are forked."""

    draft: IndexDraft
    root: Path
    max_bytes: int
    buckets: Sequence[Sequence[tuple[int, str]]]
    """Each the (file id, path)s of one bucket, the one that takes longest first."""
    ids: dict[str, int]
    left_out: Mapping[str, str]


def build_whole(run: IndexRun, past: PendingHistory, target: Path) -> IndexOutcome:
    """Write a new database at `target`; until it is complete, the old one (or none) stays in place.

    `past` is history that git is already reading.

    Raises:
        IndexingError: a file cannot be read or decoded; nothing was changed.
    """
    found = scan(run.listing.top, run.listing.paths, {}, scanned_at=0, max_bytes=run.bounds.max_file_bytes)
    ids = {path: number for number, path in enumerate(found.present, start=1)}
    with new_draft(target) as draft:
        buckets = _distribute_files(found.sizes)
        plan = _Plan(
            draft=draft,
            root=run.listing.top,
            max_bytes=run.bounds.max_file_bytes,
            buckets=buckets,
            ids=ids,
            left_out=found.left_out,
        )
        size = max(min(run.jobs, len(buckets)), 1)
        with WorkerPool(size, tasks=len(buckets), body=lambda channel: _run_worker(channel, plan)) as pool:
            outcome = _lead_build(run, past, pool, plan, target)
        draft.publish(target)
    return outcome


def _lead_build(
    run: IndexRun, past: PendingHistory, pool: WorkerPool, plan: _Plan, target: Path
) -> IndexOutcome:
    """The parent's part: write history while the workers parse, then do what needs all files."""
    draft = plan.draft
    draft.create()  # the workers are reading by now
    pool.tell(CREATED)
    past.collect()
    conn = draft.connect()
    with draft.writing(conn):
        repo_id = put_repo(conn, run)
        past.write_commits(conn, repo_id=repo_id)
    failures: list[Failed] = []
    skipped: list[SkippedStamp] = []
    done = 0
    for count, without in pool.messages(READ):
        done += count
        run.progress(done, len(plan.ids))
        for one in without:
            if isinstance(one, Failed):
                failures.append(one)
            else:
                skipped.append(one)
        if failures and not run.continue_on_error:
            raise failure(min(failures))
    with draft.writing(conn):
        draft.create_indexes(conn, NEEDED_TO_RESOLVE)
    left_out = {one.path for one in failures}.union(one.path for one in skipped)
    pool.tell(left_out)
    ids = {path: number for path, number in plan.ids.items() if path not in left_out}
    with draft.writing(conn):
        past.write(conn, repo_id=repo_id, ids=ids)
        files.put_skipped(conn, skipped)
        put_states(conn, run)
        draft.create_indexes(conn, without=RESOLVED_TABLES)
    for _ in pool.messages(RESOLVED):
        pass
    with draft.writing(conn):
        draft.create_indexes(conn)
    changed, deleted = draft.carry_over(conn, target) if target.exists() else (len(ids), 0)
    conn.close()
    return IndexOutcome(
        scanned=len(plan.ids),
        changed=changed,
        deleted=deleted,
        failures=sorted(failures),
        left_out=plan.left_out,
    )


def _distribute_files(sizes: Mapping[str, int]) -> list[list[tuple[int, str]]]:
    """Distribute files over buckets; within a bucket, the slowest file comes first."""
    by_bucket: dict[int, list[tuple[int, str]]] = {}
    weights: dict[int, int] = {}
    for number, (path, size) in enumerate(sizes.items(), start=1):
        by_bucket.setdefault(number // BUCKET, []).append((number, path))
        cost = size * CODE_COST if syntax.grammar_of(path) else size
        weights[number // BUCKET] = weights.get(number // BUCKET, 0) + cost
    return [by_bucket[bucket] for bucket in sorted(by_bucket, key=lambda one: (-weights[one], one))]


def _run_worker(channel: Channel, plan: _Plan) -> None:
    """One worker's life: parse files and write them, wait for the others, then resolve its own files' references."""
    held: list[tuple[int, str, StoredNames]] = []
    conn: Connection | None = None
    for task in channel.tasks():
        bucket = plan.buckets[task]
        found, without = _read_bucket(plan, bucket)
        held.extend(
            (number, facts.file.path, facts.names) for number, facts in found if facts.names is not None
        )
        if conn is None:
            conn = _connect_to_draft(channel, plan)
        with plan.draft.writing(conn):
            insert_files(conn, REPO_ID, bucket[0][0] // BUCKET, found)
        channel.send((len(bucket), without))
    channel.send(READ)
    conn = conn or _connect_to_draft(channel, plan)
    left_out = channel.wait()
    world = StoredWorld(
        conn, plan.root, {path: one for path, one in plan.ids.items() if path not in left_out}, is_new=True
    )
    held.sort()
    for first in range(0, len(held), RESOLVED_AT_ONCE):
        resolved = [world.resolve(path, stored) for _, path, stored in held[first : first + RESOLVED_AT_ONCE]]
        with plan.draft.writing(conn):
            insert_resolutions(conn, resolved)
    conn.close()
    channel.send(RESOLVED)


def _connect_to_draft(channel: Channel, plan: _Plan) -> Connection:
    channel.wait()  # until the draft is CREATED
    return plan.draft.connect()


def _read_bucket(
    plan: _Plan, bucket: Sequence[tuple[int, str]]
) -> tuple[list[tuple[int, ExtractedFile]], list[SkippedStamp | Failed]]:
    """Parse the files of one bucket; return those with something to index, then those without."""
    found: list[tuple[int, ExtractedFile]] = []
    without: list[SkippedStamp | Failed] = []
    for number, path in bucket:
        facts = extract(plan.root, path, max_bytes=plan.max_bytes)
        if isinstance(facts, ExtractedFile):
            found.append((number, facts))
        else:
            without.append(facts)
    return found, without

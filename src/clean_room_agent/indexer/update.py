"""Updates an index in one transaction: parses changed files, then resolves again what they affect.

Modules that are needed only to parse files are imported late: most runs find nothing changed.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from clean_room_agent.db.connection import transaction
from clean_room_agent.db.curated import files, names
from clean_room_agent.db.curated.files import SkippedStamp
from clean_room_agent.db.rows import Connection
from clean_room_agent.errors import IndexingError
from clean_room_agent.file_contents import MAX_TEXT_BYTES, content_hash
from clean_room_agent.indexer.index_run import MAX_BYTES_KEY, Failed, IndexOutcome, failure
from clean_room_agent.indexer.scan import Scan, scan
from clean_room_agent.safe_open import open_file

if TYPE_CHECKING:
    from clean_room_agent.indexer.extract import ExtractedFile
    from clean_room_agent.indexer.workers import Channel
    from clean_room_agent.indexer.write import Changes

ALONE_BYTES = 200_000
"""Less is read sooner by this process than by others that must be started."""


def update_paths(conn: Connection, root: Path, paths: Sequence[str]) -> None:
    """Update the open index for just these files of `root`, and remove those that no longer exist.

    The history is left as it is.

    Raises:
        IndexingError: a file cannot be read or decoded; nothing was changed.
    """
    known = files.list_stamps(conn)
    wanted = {path: known[path] for path in paths if path in known}
    max_bytes = int(files.get_index_state(conn, MAX_BYTES_KEY) or MAX_TEXT_BYTES)
    found = scan(root, paths, wanted, scanned_at=0, max_bytes=max_bytes)
    with transaction(conn):
        settled = settle(conn, root, found)
        outcome = update_files(conn, root, settled, max_bytes=max_bytes, jobs=1)
        if outcome.failures:
            raise failure(outcome.failures[0])


def settle(conn: Connection, root: Path, found: Scan) -> Scan:
    """Drop suspects whose content did not change, and remember their new stamps."""
    suspects = tuple(path for path in found.suspects if not _is_same(conn, root, path))
    return structs.replace(found, suspects=suspects)


def update_files(conn: Connection, root: Path, found: Scan, *, max_bytes: int, jobs: int) -> IndexOutcome:
    """Update the index, in a transaction, for the files that were found changed or gone; those that cannot be read are left out and
    listed in the outcome. At most `jobs` processes parse files.
    """
    suspects = found.suspects
    if not (suspects or found.gone):
        return IndexOutcome(
            scanned=len(found.present), changed=0, deleted=0, failures=[], left_out=found.left_out
        )
    from clean_room_agent.db.curated import postings  # noqa: PLC0415 - see the module's first lines
    from clean_room_agent.indexer.extract import ExtractedFile  # noqa: PLC0415
    from clean_room_agent.indexer.write import FileWriter  # noqa: PLC0415

    repo = files.get_repo(conn)
    if repo is None:
        raise IndexingError("the index is empty", hint="run `cra index` in the repository")
    writer = FileWriter(conn, repo.id)
    writer.expect(suspects)
    writer.remove(found.gone)
    files.forget_skipped(conn, [*found.gone, *suspects])
    failures: list[Failed] = []
    alone = sum(found.sizes[path] for path in suspects) < ALONE_BYTES
    largest_first = sorted(suspects, key=lambda path: -found.sizes[path])
    for facts in _extract_suspects(root, largest_first, max_bytes=max_bytes, jobs=1 if alone else jobs):
        if isinstance(facts, ExtractedFile):
            writer.write(facts)
            continue
        writer.remove([facts.path])
        if isinstance(facts, SkippedStamp):
            files.put_skipped(conn, [facts])
        else:
            failures.append(facts)
    changes = writer.changes
    if changes.written or changes.removed:
        files.delete_files(conn, sorted(changes.removed.values()))
        _resolve_again(conn, root, changes, writer.ids)
        postings.replace_files(conn, changes.search)
    return IndexOutcome(
        scanned=len(found.present),
        changed=len(changes.written),
        deleted=len(changes.removed),
        failures=sorted(failures),
        left_out=found.left_out,
    )


def _resolve_again(conn: Connection, root: Path, changes: "Changes", ids: Mapping[str, int]) -> None:
    """Resolve the files that the changes affect, themselves included, and write that."""
    from clean_room_agent.indexer.resolution import StoredWorld, affected  # noqa: PLC0415 - see the module's first lines

    world = StoredWorld(conn, root, ids)
    paths = {file_id: path for path, file_id in ids.items()}
    for file_id in sorted(affected(conn, root, changes, ids, world)):
        stored = names.get_names(conn, file_id)
        found = names.Resolution() if stored is None else world.resolve(paths[file_id], stored)
        names.replace_resolution(conn, file_id, found)


def _is_same(conn: Connection, root: Path, path: str) -> bool:
    """Whether the file's content is what the index has; if so, store its new stamp."""
    known = files.get_file_by_path(conn, path)
    if known is None:
        return False
    try:
        with open_file(root, path) as file:
            status = os.fstat(file.fileno())
            same = status.st_size == known.size_bytes and content_hash(file.read()) == known.content_hash
    except OSError:
        return False
    if same:
        files.update_stamp(conn, known.id, status.st_mtime_ns, status.st_ino)
    return same


def _extract_suspects(
    root: Path, suspects: Sequence[str], *, max_bytes: int, jobs: int
) -> "Iterator[ExtractedFile | SkippedStamp | Failed]":
    """Parse the suspects and yield each result as it comes, so that writing overlaps with parsing.

    The largest should come first: one that comes last keeps the other processes waiting.
    """
    from clean_room_agent import syntax  # noqa: PLC0415 - see the module's first lines
    from clean_room_agent.indexer.extract import extract, prepare  # noqa: PLC0415
    from clean_room_agent.indexer.workers import WorkerPool  # noqa: PLC0415

    prepare(sorted({grammar for grammar in map(syntax.grammar_of, suspects) if grammar is not None}))
    if jobs == 1 or len(suspects) < 2:
        for path in suspects:
            yield extract(root, path, max_bytes=max_bytes)
        return

    def work(channel: "Channel") -> None:
        for task in channel.tasks():
            channel.send(extract(root, suspects[task], max_bytes=max_bytes))
        channel.send(None)

    with WorkerPool(min(jobs, len(suspects)), tasks=len(suspects), body=work) as pool:
        yield from pool.messages(None)

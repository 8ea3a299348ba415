"""Many files read by several processes: the parser holds the interpreter's lock, so threads would not help."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

from clean_room_agent import syntax
from clean_room_agent.errors import IndexingError
from clean_room_agent.indexer.extract import Failed, FileFacts, Skipped, extract, prepare

FEW_FILES = 24
"""Fewer are read sooner in this process than others are started."""
CHUNK = 8
POLL = 1.0


def extract_all(
    root: Path, paths: Sequence[str], *, max_bytes: int, jobs: int
) -> Generator[FileFacts | Skipped | Failed, None, None]:
    """What each file says, in the order of `paths`, whatever `jobs` is.

    Raises:
        IndexingError: a process was killed, most likely for want of memory.
    """
    read = partial(_read, root, max_bytes)
    if jobs <= 1 or len(paths) < FEW_FILES:
        yield from map(read, paths)
        return
    prepare(sorted({grammar for grammar in map(syntax.grammar_of, paths) if grammar is not None}))
    executor = ProcessPoolExecutor(
        max_workers=jobs,
        mp_context=multiprocessing.get_context("fork"),
        initializer=_begin,
        initargs=(os.getpid(),),
    )
    try:
        yield from executor.map(read, paths, chunksize=CHUNK)
    except BrokenProcessPool as exc:
        raise IndexingError(
            "a process that read files was killed", hint="it may have run out of memory: try --jobs 1"
        ) from exc
    finally:
        executor.shutdown(cancel_futures=True)


def _read(root: Path, max_bytes: int, path: str) -> FileFacts | Skipped | Failed:
    return extract(root, path, max_bytes=max_bytes)


def _begin(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends the others
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """A worker outlives a killed parent, and would keep its lock on the index."""
    while os.getppid() == parent:
        time.sleep(POLL)
    os._exit(1)

"""Version numbers for new adapters, unique even if several of a prompt are trained at a time."""

import contextlib
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from itertools import chain, count
from pathlib import Path

from clean_room_agent.errors import RecordError
from clean_room_agent.workspace import hold

WORK = ".training"
"""The suffix of a training's folder, which is removed when the adapter is complete."""


@contextlib.contextmanager
def held_version(adapters: Path, prompt: str, taken: Callable[[], AbstractSet[int]]) -> Iterator[int]:
    """Reserve a version number for the prompt's next adapter.

    An interrupted training below `adapters` keeps its number and comes first; numbers of running ones are skipped.
    `taken` returns the numbers in the registry, which may grow at any time.
    """
    place = f"{prompt}-v"
    broken_off = sorted(
        int(number) for path in adapters.glob(f"{place}*{WORK}")
        if (number := path.name.removeprefix(place).removesuffix(WORK)).isdecimal()
    )  # fmt: skip
    newer = count(1 + max(taken(), default=0))
    for version in chain(broken_off, newer):
        folder, lock = adapters / f"{place}{version}", adapters / f"{place}{version}.lock"
        begun = folder.with_name(folder.name + WORK).exists()
        if folder.exists() and not begun:
            continue
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(hold(lock, timeout=0))
            except RecordError:
                continue
            stack.callback(lock.unlink)
            if version not in taken():
                yield version
                return

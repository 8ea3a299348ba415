"""Runs work on several machines: one Ray task for each call of a function.

A unit of `bootstrap` writes its own file, so nothing is sent back: a worker that dies leaves no file of its unit, or a whole
one; Ray gives the unit to another.
"""

import contextlib
import importlib
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from clean_room_agent.training.bootstrap import Progress
from clean_room_agent.training.pairs import Making
from clean_room_agent.training.shards import Unit, make_shard

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
TRIES = 5
"""How often a unit is started again if its worker dies."""
WINDOW = 4
"""Units in progress for each processor of the cluster."""


def run_on_ray(folder: Path, units: Sequence[Unit], making: Making, progress: Progress) -> None:
    """Make the units' shards on the cluster. `folder` and the repositories must have the same paths on all machines."""
    with contextlib.redirect_stdout(sys.stderr), _cluster() as ray:
        window = WINDOW * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        calls = [(folder, unit, ray.put(making)) for unit in units]
        for done, _ in enumerate(_results(ray, make_shard, calls, window), start=1):
            progress(done, len(units))


def call_on_ray(function: Callable[[ItemT], ResultT], items: Sequence[ItemT], jobs: int) -> Iterator[ResultT]:
    """The results of the function for all items, as they come in, `jobs` at a time, on the cluster.

    A call whose worker died is made again. On Ctrl-C, the calls in progress get a KeyboardInterrupt, and their results
    are still returned.
    """
    with contextlib.ExitStack() as stack:
        # Not while the caller has a result, and answers on stdout.
        with contextlib.redirect_stdout(sys.stderr):
            ray = stack.enter_context(_cluster())
        results = _results(ray, function, [(item,) for item in items], jobs)
        while True:
            with contextlib.redirect_stdout(sys.stderr):
                found = list(itertools.islice(results, 1))
            if not found:
                return
            yield from found


@contextlib.contextmanager
def _cluster() -> Iterator[Any]:
    """Ray, connected to the cluster that `RAY_ADDRESS` names, otherwise to one of this machine's processors."""
    # Ray reports on workers on stdout, which is for answers: callers redirect that to stderr.
    ray: Any = importlib.import_module("ray")  # half of its functions have types, and not everybody has it
    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False, include_dashboard=False)
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()


def _results(
    ray: Any, function: Callable[..., ResultT], calls: Sequence[tuple[Any, ...]], window: int
) -> Iterator[ResultT]:
    task = ray.remote(max_retries=TRIES)(function)
    running = [task.remote(*arguments) for arguments in calls[:window]]
    rest = iter(calls[window:])
    while running:
        try:
            finished, _ = ray.wait(running, num_returns=1)
        except KeyboardInterrupt:
            rest = iter(())
            for each in running:
                ray.cancel(each, force=False)
            continue
        for each in finished:
            running.remove(each)
            with contextlib.suppress(ray.exceptions.TaskCancelledError):  # it had not begun
                yield ray.get(each)
        running += [task.remote(*arguments) for arguments in [next(rest, None)] if arguments is not None]

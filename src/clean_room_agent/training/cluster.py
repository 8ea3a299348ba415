"""Runs work on several machines: one Ray task for each call of a function."""

import contextlib
import importlib
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
TRIES = 5
"""How often a call is made again if its worker dies."""
WINDOW = 4
"""Calls in progress for each processor of the cluster, where the caller does not say."""


def call_on_ray(
    function: Callable[[ItemT], ResultT], items: Sequence[ItemT], jobs: int | None = None
) -> Iterator[ResultT]:
    """The results of the function for all items, as they come in, `jobs` at a time, on the cluster that `RAY_ADDRESS`
    names, otherwise on this machine's processors.

    A call whose worker died is made again. On Ctrl-C, the calls in progress get a KeyboardInterrupt, and their results
    are still returned.
    """
    # Ray reports on workers on stdout, which is for answers; not redirected while the caller has a result.
    ray: Any = importlib.import_module("ray")  # half of its functions have types, and not everybody has it
    started = not ray.is_initialized()
    with contextlib.ExitStack() as stack:
        with contextlib.redirect_stdout(sys.stderr):
            if started:
                ray.init(log_to_driver=False, include_dashboard=False)
                stack.callback(ray.shutdown)
            window = jobs or WINDOW * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        results = _remote_results(ray, function, items, window)
        while True:
            with contextlib.redirect_stdout(sys.stderr):
                found = list(itertools.islice(results, 1))
            if not found:
                return
            yield from found


def _remote_results(
    ray: Any, function: Callable[[ItemT], ResultT], items: Sequence[ItemT], window: int
) -> Iterator[ResultT]:
    # Not all at once: Ray keeps the arguments and results of every call that it has been given.
    task = ray.remote(max_retries=TRIES)(function)
    running = [task.remote(item) for item in items[:window]]
    rest = iter(items[window:])
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
        running += [task.remote(item) for item in itertools.islice(rest, 1)]

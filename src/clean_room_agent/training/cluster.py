"""The engine for more than one machine: a Ray Core task a unit. Units write their own files, so nothing is sent back.

A worker that dies leaves no file of its unit, or a whole one; Ray gives the unit to another.
"""

import contextlib
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clean_room_agent.training.bootstrap import Progress
from clean_room_agent.training.shards import Making, Unit, make_shard

TRIES = 5
"""Times that a unit is begun again whose worker died."""
WINDOW = 4
"""Units under way for each processor of the cluster."""


def run_on_ray(folder: Path, units: Sequence[Unit], making: Making, progress: Progress) -> None:
    """The `Engine` of a cluster: the one that `RAY_ADDRESS` names, else one of this machine's processors.

    `folder` and the repositories must stand at the same paths on all machines.
    """
    ray: Any = importlib.import_module("ray")  # half of its functions have types, and not everybody has it

    with contextlib.redirect_stdout(
        sys.stderr
    ):  # Ray prints there what becomes of workers, and an answer stands on stdout
        _run(ray, folder, units, making, progress)


def _run(ray: Any, folder: Path, units: Sequence[Unit], making: Making, progress: Progress) -> None:
    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False, include_dashboard=False)
    try:
        task = ray.remote(max_retries=TRIES)(make_shard)
        shared = ray.put(making)
        window = WINDOW * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        waiting = list(units)
        running = [task.remote(folder, unit, shared) for unit in waiting[:window]]
        rest = iter(waiting[window:])
        done = 0
        while running:
            finished, running = ray.wait(running, num_returns=1)
            ray.get(finished)
            done += 1
            progress(done, len(units))
            running += [task.remote(folder, unit, shared) for unit in [next(rest, None)] if unit is not None]
    finally:
        if started:
            ray.shutdown()

"""`cra` with a stop watch at its parts, for `benchmarks.overhead`: the same command line, and a file of seconds a part."""

import functools
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SPANS = "CRA_BENCHMARK_SPANS"
"""The variable that holds the moment of Enter (monotonic seconds) and the file to write."""

PARTS: tuple[tuple[str, str, str], ...] = (
    ("index: refresh", "clean_room_agent.app.wiring", "refresh_index"),
    ("index: the run's own copy", "clean_room_agent.app.run_index", "backup"),
    ("index: follow an accepted step", "clean_room_agent.app.run_index", "update_paths"),
    ("git: open the repository", "clean_room_agent.app.solve", "open_repository"),
    ("git: snapshot", "clean_room_agent.orchestrator.setup", "snapshot"),
    ("git: make the worktree", "clean_room_agent.orchestrator.testing.worktrees", "add_worktree"),
    ("git: remove the worktree", "clean_room_agent.orchestrator.testing.worktrees", "remove_worktree"),
    ("git: put the worktree back", "clean_room_agent.orchestrator.testing.test_runner", "reset_worktree"),
    ("retrieval, its model calls included", "clean_room_agent.app.wiring", "Retriever.retrieve"),
    ("tests", "clean_room_agent.orchestrator.testing.test_runner", "run_tests"),
)


def main() -> int:
    """Run the command line, then write what its parts took."""
    given = os.environ.pop(SPANS, "")
    if not given:
        return _run()
    began, _, target = given.partition(" ")
    spans = {"start of Python": time.monotonic() - float(began)}
    imported = time.monotonic()
    for _, module, _ in PARTS:
        importlib.import_module(module)
    spans["imports"] = time.monotonic() - imported
    for name, module, function in PARTS:
        _time(spans, name, module, function)
    code = _run()
    Path(target).write_text(json.dumps(spans), encoding="utf-8")
    return code


def _run() -> int:
    code: int = importlib.import_module("clean_room_agent.cli.main").run()
    return code


def _time(spans: dict[str, float], name: str, module: str, function: str) -> None:
    owner: Any = importlib.import_module(module)
    *path, function = function.split(".")
    for part in path:
        owner = getattr(owner, part)
    original: Callable[..., Any] = getattr(owner, function)

    @functools.wraps(original)
    def timed(*args: Any, **kwargs: Any) -> Any:
        began = time.monotonic()
        try:
            return original(*args, **kwargs)
        finally:
            spans[name] = spans.get(name, 0.0) + time.monotonic() - began

    setattr(owner, function, timed)


if __name__ == "__main__":
    sys.exit(main())

"""The shapes of the fixtures in conftest.py, and the pytest command of the tiny projects."""

import sys
from collections.abc import Mapping
from typing import Protocol

from clean_room_agent.orchestrator.test_runs.results import TestRun

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider -p no:inline_snapshot"
"""Without a plugin of ours that puts functions of its own into pytest."""


class Write(Protocol):
    def __call__(self, files: Mapping[str, str], /) -> None: ...


class RunOnce(Protocol):
    def __call__(self, command: str, files: Mapping[str, str], /) -> TestRun: ...


class Runner(Protocol):
    def __call__(
        self,
        command: str = ...,
        *,
        timeout: float = ...,
        bound: int = ...,
    ) -> TestRun: ...

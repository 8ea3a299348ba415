"""`pytest --no-processes`: a test is skipped as soon as it starts a process. The others run in about a minute.

Hooks of pytest's, for a `conftest.py` to import. No mark says which tests these are, so none can be wrong.
"""

import sys
from collections.abc import Generator
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

STARTS = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "multiprocessing"}
)
"""Events before there is a process more: all but the last are audited by Python."""
REASON = "it starts a process"


class NoProcesses:
    """The plugin that the option switches on."""

    def __init__(self) -> None:
        self._is_test = False
        self._has_started = False
        sys.addaudithook(self._hear)
        start = BaseProcess.start

        def start_heard(process: BaseProcess) -> None:  # what multiprocessing spawns is no audited event
            self._hear("multiprocessing", None)
            start(process)

        BaseProcess.start = start_heard  # type: ignore[method-assign, assignment]

    def _hear(self, event: str, _: object) -> None:
        if self._is_test and event in STARTS:
            self._has_started = True
            pytest.skip(REASON)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, Any]:
        """Setup, call and teardown of one test."""
        self._is_test, self._has_started = True, False
        try:
            return (yield)
        finally:
            self._is_test = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        """What a refused start made fail in another thread, or in teardown, is no failure."""
        report = yield
        if self._has_started and report.failed:
            report.outcome = "skipped"
            report.longrepr = ("", 0, REASON)
        return report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-processes", action="store_true", help="skip tests as soon as they start a process")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--no-processes"):
        config.pluginmanager.register(NoProcesses())
        # What was opened for the process that did not start is closed when it is collected, in whichever test that is.
        for warning in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
            config.addinivalue_line("filterwarnings", f"ignore::{warning}")

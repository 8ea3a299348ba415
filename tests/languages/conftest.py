"""Tiny projects whose tests are run for real."""

from tests.orchestrator.test_runs.conftest import project, run, run_once, write

__all__ = ["project", "run", "run_once", "write"]

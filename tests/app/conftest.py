"""The fixtures of `testing.runs.till`."""

from testing.runs.till import solved, solved_once, till

__all__ = ["solved", "solved_once", "till"]

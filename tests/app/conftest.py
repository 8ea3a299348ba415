"""The fixtures of `tests.fakes.till`."""

from tests.fakes.till import solved, solved_once, till

__all__ = ["solved", "solved_once", "till"]

"""Checks that the extras of this package that a command needs are installed."""

import importlib.util

from clean_room_agent.errors import UsageError

EXTRAS = {
    "data": ("pyarrow", "datasketch"),
    "mcp": ("mcp",),
    "cluster": ("ray",),
}
"""Of each extra, the Python packages, whose modules have the same names."""
ENGINES = ("local", "ray")
"""Where many pieces of work are done: in processes on this machine, or on a cluster."""


def require_extras(*names: str) -> None:
    """Check that these extras are installed.

    Raises:
        UsageError: one is not; the message says how to install it.
    """
    for name in names:
        missing = [package for package in EXTRAS[name] if importlib.util.find_spec(package) is None]
        if missing:
            raise UsageError(
                f"this needs the extra `{name}`: not installed: {', '.join(missing)}",
                hint=f"pip install 'clean-room-agent[{','.join(names)}]'",
            )

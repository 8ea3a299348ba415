"""Checks that the extras of this package that a command needs are installed."""

import importlib.util

from clean_room_agent.errors import UsageError

EXTRAS = {"data": ("pyarrow", "datasketch", "git"), "cluster": ("ray",)}
ENGINES = ("local", "ray")
"""Where many pieces of work are done: in processes on this machine, or on a cluster."""


def require_extras(*names: str) -> None:
    """Check that these extras are installed.

    Raises:
        UsageError: one is not; the message says how to install it.
    """
    for name in names:
        missing = [module for module in EXTRAS[name] if importlib.util.find_spec(module) is None]
        if missing:
            raise UsageError(
                f"this needs the extra `{name}` ({', '.join(missing)} is not installed)",
                hint=f"pip install 'clean-room-agent[{','.join(names)}]'",
            )

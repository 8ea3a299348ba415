"""The entry point: opens the standard streams, and answers `--version` and shell completion before anything else is
imported.
"""

import gc
import os
import sys

from clean_room_agent.cli.streams import failure_of, open_streams
from clean_room_agent.version import VERSION

COMPLETE = "_CRA_COMPLETE"
"""Set by the shell's completion script, to the shell's name."""


def main() -> None:
    """Run the command line of this process; it ends with a documented exit code."""
    open_streams()
    _leave(run())


def run() -> int:
    """Run the command line, and return its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"cra, version {VERSION}\n")
        return 0
    shell = os.environ.get(COMPLETE)
    if shell is not None:
        from clean_room_agent.cli.completing import answer_shell

        answer_shell(shell, sys.argv[1:])
        return 0
    gc.disable()  # until the command is imported, too: nothing would be freed
    from clean_room_agent.cli.main import main as run_command

    return run_command()


def _leave(code: int) -> None:
    """End the process, at once unless a thread is left: freeing what it holds object by object would take Python 10 ms.

    A command whose answer could not be written has failed, even if its work is done.
    """
    import threading

    lost = failure_of(sys.stdout)
    if lost is not None:
        sys.stderr.write(f"error: cannot write to standard output: {lost.strerror}\n")
        code = code or 1
    if threading.active_count() > 1:
        sys.exit(code)
    import atexit

    atexit._run_exitfuncs()  # noqa: SLF001 - what Python runs itself
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

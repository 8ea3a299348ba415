"""The entry point: answers `--version` and shell completion before anything else is imported."""

import gc
import os
import sys

from clean_room_agent.version import VERSION

COMPLETE = "_CRA_COMPLETE"
"""Set by the shell's completion script, to the shell's name."""


def main() -> None:
    """Run the command line of this process; it ends with a documented exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"cra, version {VERSION}\n")
        return
    shell = os.environ.get(COMPLETE)
    if shell is not None:
        from clean_room_agent.cli.completing import tell_shell

        tell_shell(shell, sys.argv[1:])
        return
    gc.disable()  # until the command is imported, too: nothing would be freed
    from clean_room_agent.cli.main import main as run_command

    try:
        run_command()
    except SystemExit as end:
        if isinstance(end.code, int):
            _leave(end.code)
        raise


def _leave(code: int) -> None:
    """End the process, unless a thread is left: freeing what it holds object by object would take Python 10 ms."""
    import atexit
    import contextlib
    import threading

    if threading.active_count() == 1:
        atexit._run_exitfuncs()  # noqa: SLF001 - what Python runs itself
        with contextlib.suppress(OSError, ValueError):  # Python says what is wrong with a stream
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

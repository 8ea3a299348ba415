"""The entry point: opens the standard streams, and answers `--version` and shell completion before anything else is
imported.
"""

import gc
import os
import sys

from clean_room_agent.cli.streams import failure_of, open_streams
from clean_room_agent.version import VERSION


def main() -> None:
    """Run the command line of this process; it ends with a documented exit code."""
    open_streams()
    code = run()
    lost = failure_of(sys.stdout)
    if lost is not None:
        # The work may be done, but not what was asked for: an answer.
        sys.stderr.write(f"error: cannot write to standard output: {lost.strerror}\n")
        code = code or 1
    sys.exit(code)


def run() -> int:
    """Run the command line, and return its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"cra, version {VERSION}\n")
        return 0
    asked = os.environ.get("_CRA_COMPLETE")  # by the shell's completion script
    if asked is not None:
        from clean_room_agent.cli.completing import answer_shell

        answer_shell(asked)
        return 0
    gc.disable()  # until the command is imported: nothing would be freed, and it takes a sixth of the time
    from clean_room_agent.cli.main import main as run_command

    return run_command()

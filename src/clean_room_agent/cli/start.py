"""The entry point: answers `--version` and shell completion before anything else is imported."""

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
    from clean_room_agent.cli.main import main as run_command

    run_command()

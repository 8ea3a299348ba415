"""A program for tests: runs `cra` and dies by SIGKILL where the answer of one prompt would be read.

Usage: killed_command.py PROMPT ARGUMENT...
"""

import os
import signal
import sys
from typing import Any

from clean_room_agent.cli.main import main
from clean_room_agent.llm.prompt import Prompt

VICTIM = sys.argv[1]
READ = Prompt.parse


def die_or_read(self: Prompt[Any, Any], *args: Any) -> Any:
    """In place of `Prompt.parse`, which is the first to look at an answer."""
    if self.name == VICTIM:
        os.kill(os.getpid(), signal.SIGKILL)
    return READ(self, *args)


if __name__ == "__main__":
    setattr(Prompt, "parse", die_or_read)  # noqa: B010 - a method is not to be assigned to, types say
    sys.exit(main(sys.argv[2:]))

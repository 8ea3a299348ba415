"""What a command costs, whatever else the machine does meanwhile."""

import resource
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def processor_seconds(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> float:
    """Of the processor's time: the least of ten, for what others do to the caches is in some of them."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, env=env, cwd=cwd)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(once() for _ in range(10))

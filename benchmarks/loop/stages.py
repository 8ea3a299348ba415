"""Commands of the loop, each timed with the memory of its largest process, and remembered: begun again, what is done stays."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict


class Stage(Struct, frozen=True, kw_only=True):
    """A command that ended."""

    name: str
    code: int
    seconds: float
    processor_seconds: float
    peak_mb: float
    load: float
    """Processes that wanted a processor, mean of the last 5 minutes of the stage."""
    out: str
    said: str
    """On standard error, its end."""


class Stages:
    """The stages of one work folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        """`environment` is added to this process's."""
        self._folder = folder
        self.environment = {**os.environ, **environment}
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, name: str) -> bool:
        """Whether the stage has ended."""
        return (self._folder / f"{name}.json").exists()

    def known(self, name: str) -> Stage:
        """The stage, of an earlier run."""
        return Stage(**json.loads((self._folder / f"{name}.json").read_text(encoding="utf-8")))

    def cra(self, name: str, *command: str, cwd: Path, accept: tuple[int, ...] = (0,)) -> Stage:
        """The stage, from an earlier run or run now.

        Raises:
            SystemExit: it ended with another code.
        """
        kept = self._folder / f"{name}.json"
        if kept.exists():
            return self.known(name)
        stage = self._run(name, command, cwd)
        if stage.code not in accept:
            raise SystemExit(f"{name} ended with {stage.code}:\n{stage.out}\n{stage.said}")
        kept.write_text(json.dumps(asdict(stage), indent=1), encoding="utf-8")
        return stage

    def _run(self, name: str, command: tuple[str, ...], cwd: Path) -> Stage:
        out, said = self._folder / f"{name}.out", self._folder / f"{name}.err"
        begun = time.monotonic()
        with out.open("wb") as answers, said.open("wb") as talk:
            process = subprocess.Popen(
                (sys.executable, "-m", "clean_room_agent", *command),
                cwd=cwd,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=answers,
                stderr=talk,
            )
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        stage = Stage(
            name=name,
            code=process.returncode,
            seconds=time.monotonic() - begun,
            processor_seconds=usage.ru_utime + usage.ru_stime,
            peak_mb=usage.ru_maxrss / 1024,
            load=os.getloadavg()[1],
            out=out.read_text(encoding="utf-8"),
            said=said.read_text(encoding="utf-8")[-2000:],
        )
        print(
            f"{name:<28}{stage.code:>4}{stage.seconds:>9.1f} s{stage.processor_seconds:>9.1f} cpu s{stage.peak_mb:>8.0f} MB",
            flush=True,
        )
        return stage

"""The commands of a small project in Python, carried out in this process: its unittests, and the import of its files.

What they print is what a process of their own would have printed, and is read as that is; the tenth of a second that Python
takes to start is not spent.
"""

import contextlib
import importlib
import io
import linecache
import os
import shlex
import shutil
import sys
import threading
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import cast
from unittest.mock import patch

from clean_room_agent import proc
from clean_room_agent.orchestrator.test_runs.command_runner import TestWorktree
from clean_room_agent.orchestrator.test_runs.test_commands import FOLDER_VARIABLE
from clean_room_agent.sandbox.bubblewrap import Bubblewrap, Sandbox
from clean_room_agent.sandbox.policy import Policy

NOT_FOUND = 127
"""What a shell exits with where there is no such program."""
_alone = threading.Lock()
"""Held while the folder, the import path and the modules of this process are those of a project."""


class FolderOfTexts(TestWorktree, kw_only=True):
    """A plain folder in which a commit's files are written; `files` knows them."""

    files: Callable[[str], Mapping[str, str]]
    holds: str = ""
    """The commit whose files are there: commands that run in this process write none."""

    def checkout(self, commit: str) -> None:
        if self.holds != commit:
            shutil.rmtree(self.root, ignore_errors=True)
            for path, text in self.files(commit).items():
                (self.root / path).parent.mkdir(parents=True, exist_ok=True)
                (self.root / path).write_text(text)
            self.holds = commit
        self.clean_at = commit


class InProcess(Sandbox, frozen=True, kw_only=True):
    """Runs no process: the commands that it knows are carried out here, in `folder`."""

    bubblewrap: Bubblewrap = cast("Bubblewrap", None)
    policy: Policy = cast("Policy", None)
    folder: Path
    is_broken: Callable[[], bool]
    """Whether no command can be started just now."""

    def run(
        self,
        command: tuple[str, ...] | str,
        *,
        env: Mapping[str, str],
        timeout: float | None,
        bound: int = proc.DEFAULT_BOUND,
        input: bytes = b"",  # noqa: A002 - as the sandbox names it
        heard: Callable[[bytes], None] | None = None,
    ) -> proc.Completed:
        del timeout, bound, input, heard
        text = str(command)
        if self.is_broken():
            code, out, err = NOT_FOUND, "", "sh: 1: not found\n"
        elif " -c " in text:
            code, out, err = _run_program(self.folder, shlex.split(text))
        else:
            code, out, err = _run_unittests(
                self.folder, {name: env[name] for name in env.keys() & {FOLDER_VARIABLE}}
            )
        return proc.Completed(
            command=("sh", "-c", text),
            returncode=code,
            stdout=out.encode(),
            stderr=err.encode(),
            timed_out=False,
            stdout_cut=0,
            stderr_cut=0,
            duration_s=0.0,
        )


def _run_unittests(folder: Path, env: Mapping[str, str]) -> tuple[int, str, str]:
    """Of `python -m unittest -v`, with these variables: exit code, standard output and standard error."""
    said = io.StringIO()
    # One such process at a time, and only it has the variables.
    with _as_process_in(folder) as out, patch.dict(os.environ, env):
        found = unittest.TestLoader().discover(str(folder), top_level_dir=str(folder))
        result = unittest.TextTestRunner(stream=said, verbosity=2).run(found)
    return int(not result.wasSuccessful()), out.getvalue(), said.getvalue()


def _run_program(folder: Path, words: list[str]) -> tuple[int, str, str]:
    """The same of `python -c PROGRAM arguments`."""
    interpreter, _, program, *arguments = words
    if not Path(interpreter).exists():
        return NOT_FOUND, "", f"sh: 1: {interpreter}: not found\n"
    code = 0
    with _as_process_in(folder) as out:
        sys.argv = ["-c", *arguments]
        try:
            exec(program, ModuleType("__main__").__dict__)
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue(), ""


@contextlib.contextmanager
def _as_process_in(folder: Path) -> Iterator[io.StringIO]:
    """The body runs as in a new process started in `folder`; yields its standard output. The process is as before afterwards."""
    with _alone:
        path, arguments, modules, here = [*sys.path], sys.argv, dict(sys.modules), Path.cwd()
        writes, sys.dont_write_bytecode = (
            sys.dont_write_bytecode,
            True,
        )  # two texts can have one time and size
        # The project may have a package with the name of one that is loaded.
        own = {entry.stem for entry in folder.iterdir()}
        _forget_modules(modules, own)
        importlib.invalidate_caches()
        linecache.clearcache()
        out = io.StringIO()
        try:
            os.chdir(folder)
            sys.path.insert(0, str(folder))
            with contextlib.redirect_stdout(out):
                yield out
        finally:
            os.chdir(here)
            _forget_modules(sys.modules.keys() - modules.keys(), own)
            sys.modules.update(modules)
            sys.path[:], sys.argv, sys.dont_write_bytecode = path, arguments, writes


def _forget_modules(names: Iterable[str], own: set[str]) -> None:
    """Those of `names` that are, or lie below, a package in `own`."""
    for name in names:
        if name.partition(".")[0] in own:
            sys.modules.pop(name, None)

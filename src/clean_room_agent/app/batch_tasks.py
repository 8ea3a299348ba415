"""Reads the tasks of a batch from JSON Lines; each task has the same task id whenever the batch is started."""

import hashlib
import json
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from clean_room_agent.app.run_wiring import NEEDED
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.app.solve import plan_given
from clean_room_agent.app.wiring import workspace_of
from clean_room_agent.artifacts.goals import NOTHING_GIVEN, GivenEvidence
from clean_room_agent.artifacts.names import counted
from clean_room_agent.errors import CraError, UsageError
from clean_room_agent.file_contents import read_given, require_text
from clean_room_agent.orchestrator.task import PlanGiven

MAX_FAULTS = 10


class TaskLine(BaseModel):
    """One line: what to do, and where."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    task: str | None = None
    """What to change, in words."""
    issue: str | None = None
    """Instead of `task`: a file that contains the words."""
    id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._-]{1,64}$")
    """The task's name in the summary; the line's number by default."""
    repo: str | None = None
    """The repository; by default that of the command."""
    plan: str | None = None
    """A plan to follow, as with `cra solve --plan`."""
    check: str | list[str] = []
    """What must hold at the end, as with `cra solve --check`."""
    test: str | list[str] = []
    """Tests that must pass at the end, as with `cra solve --test`."""
    file: str | list[str] = []
    """The only files to change, as with `cra solve --file`."""

    @model_validator(mode="after")
    def _says_what(self) -> "TaskLine":
        if self.plan is None and (self.task is None) == (self.issue is None):
            raise ValueError("give the task either as task or as issue (a file)")
        return self

    @property
    def evidence(self) -> GivenEvidence:
        """How the task is judged, and where it is."""
        return GivenEvidence(
            tests=_several(self.test), checks=_several(self.check), files=_several(self.file)
        )


def _several(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


class BatchJob(Struct, frozen=True, kw_only=True):
    """One task, ready to run wherever its repository is."""

    name: str
    line: int
    repo: Path
    task_id: str
    """The same for the same batch, repository, name and words, so that a second start finds its runs."""
    task: str
    given: PlanGiven
    overrides: Overrides
    retry: bool
    """Whether a run that ended without success is resumed."""


def read_jobs(
    path: Path, *, repo: Path, batch: str, overrides: Overrides, retry: bool
) -> tuple[BatchJob, ...]:
    """The jobs of the file, in its order. Paths in it are relative to its folder; blank lines are skipped.

    Raises:
        UsageError: lines are invalid; the message names at most ten. Nothing was started.
    """
    text = read_given(path)
    jobs: list[BatchJob] = []
    faults: list[str] = []
    names: dict[str, int] = {}
    if overrides.budget_config is not None:  # jobs may run elsewhere
        overrides = replace(overrides, budget_config=overrides.budget_config.absolute())
    settle = _Settling(path=path, repo=repo, batch=batch, overrides=overrides, retry=retry)
    for number, line in _lines(text):
        try:
            job = settle.job(number, line)
            if (first := names.setdefault(job.name, number)) != number:
                raise UsageError(f"the id {job.name!r} is already used in line {first}")
            jobs.append(job)
        except CraError as error:
            remedy = f" -> {error.hint}" if error.hint else ""
            faults.append(f"line {number}: {error.message}{remedy}")
    if faults:
        more = f"\n  and {counted(len(faults) - MAX_FAULTS, 'more line')}" if len(faults) > MAX_FAULTS else ""
        raise UsageError(
            f"{path}: nothing was started\n  " + "\n  ".join(faults[:MAX_FAULTS]) + more,
            hint='a line is an object: {"task": "...", "id": "...", "repo": "..."}; see cra batch --help',
        )
    if not jobs:
        raise UsageError(f"{path} contains no task", hint='write a line for each: {"task": "..."}')
    return tuple(jobs)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if line.strip():
            yield number, line


class _Settling(Struct, frozen=True, kw_only=True):
    path: Path
    repo: Path
    batch: str
    overrides: Overrides
    retry: bool

    def job(self, number: int, line: str) -> BatchJob:
        """The line's job.

        Raises:
            CraError: the line is invalid.
        """
        read = _task_line(line)
        folder = self.path.absolute().parent
        top = _ready(folder / read.repo if read.repo is not None else self.repo, self.overrides)
        workspace = workspace_of(top)
        plan = folder / read.plan if read.plan else None
        given, planned = plan_given(workspace, plan, None, read.evidence, folder=folder)
        words = read.task if read.issue is None else read_given(folder / read.issue)
        task = (words if words is not None else planned).strip()
        if not task:
            raise UsageError("the task is empty")
        require_text(task, "the task")
        name = read.id or str(number)
        # In this form since before there was evidence: runs of a batch are found again by it.
        followed = f"PlanGiven(meta_plan={given.meta_plan!r}, single={given.single!r}, hints=())"
        judged = "" if given.evidence == NOTHING_GIVEN else repr(given.evidence)
        parts = (self.batch, str(top), name, task, f"{followed if read.plan else ''}{judged}")
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
        return BatchJob(
            name=name,
            line=number,
            repo=top,
            task_id=str(uuid.UUID(bytes=digest[:16], version=4)),
            task=task,
            given=given,
            overrides=self.overrides,
            retry=self.retry,
        )


def _task_line(line: str) -> TaskLine:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise UsageError(f"not JSON: {exc}") from exc
    if not isinstance(found, dict):
        raise UsageError("not a JSON object")
    try:
        return TaskLine.model_validate(found)
    except ValidationError as exc:
        told = []
        for error in exc.errors():
            key = ".".join(map(str, error["loc"]))
            if error["type"] == "extra_forbidden":
                told.append(f"unknown key {key!r}; known: {', '.join(TaskLine.model_fields)}")
            else:
                told.append(
                    f"{key}: {error['msg']}" if key else str(error["msg"]).removeprefix("Value error, ")
                )
        raise UsageError("; ".join(told)) from exc


@cache
def _ready(path: Path, overrides: Overrides) -> Path:
    """The top of the repository at `path`, once it is checked that its configuration has all that a run needs."""
    workspace = workspace_of(path)
    load_settings(workspace.config, overrides).require(*NEEDED)
    return workspace.repo

"""One run of one commit, measured by its record and its repository."""

import contextlib
from pathlib import Path

from msgspec import Struct
from testing.runs.recorded import list_orchestrator_runs

from benchmarks.commits.commit_list import CommitEntry, CommitList
from benchmarks.commits.solve_commit import gold_of
from benchmarks.context.attention import reader_of
from benchmarks.context.figures import PromptFigures, RunFigures, prompt_figures, run_figures
from benchmarks.oracle.page import kept_row
from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.calls import list_calls

IMPLEMENT = "implement"


class Measured(Struct, frozen=True, kw_only=True):
    """`prompt` is of the first implement prompt, None where the run never came to one."""

    id: str
    solved: bool
    prompt_tokens: int
    """Of the first implement prompt, by the server."""
    prompt: PromptFigures | None
    run: RunFigures

    @property
    def single_step(self) -> bool:
        """Whether one step was all that the run did."""
        return self.run.steps == 1

    @property
    def calls(self) -> int:
        """Of all kinds."""
        return sum(self.run.calls.values())

    @property
    def tokens(self) -> int:
        """Of all prompts."""
        return sum(self.run.tokens.values())


def record_of(work: Path, entry: CommitEntry, setting: str) -> Path:
    """Where a work folder keeps the record of a commit's run under a setting."""
    return work / "solve" / entry.id / f"{setting}.sqlite"


def measure(work: Path, listed: CommitList, entry: CommitEntry, setting: str) -> Measured:
    """The figures of the run, from its record and from the clone in which it ran."""
    calls = _calls(record_of(work, entry, setting))
    first = next((call for call in calls if call.site.call_type == IMPLEMENT), None)
    figures = None
    if first is not None:
        top = work / "solve" / entry.id / entry.repository.split("/")[1]
        reader = reader_of(work, listed, entry, top, gold_of(top, entry))
        figures = prompt_figures(reader.read(first.request.prompt), reader.needs, reader.failures)
    row = kept_row(work / "oracle", entry.id, setting)
    return Measured(
        id=entry.id,
        solved=row is not None and row.solved,
        prompt_tokens=(first.cost.prompt_tokens or 0) if first is not None else 0,
        prompt=figures,
        run=run_figures(calls),
    )


def _calls(record: Path) -> tuple[ModelCall, ...]:
    """All that the record's run asked."""
    with contextlib.closing(connect_file("raw", record, read_only=True)) as conn:
        return tuple(call for run in list_orchestrator_runs(conn) for call in list_calls(conn, run.task_id))

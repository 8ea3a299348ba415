"""`cra enrich`: a model's description of each file that changed since it was last described."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from clean_room_agent.artifacts.ids import new_task_id
from clean_room_agent.cli import options, output, wiring
from clean_room_agent.cli.listening import heard_by
from clean_room_agent.cli.settings import Overrides, Settings, load_settings
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.enrichment import list_descriptions, mark_promoted
from clean_room_agent.enrichment.describe import Described, Describer, Descriptions
from clean_room_agent.enrichment.due import Chosen, choose
from clean_room_agent.enrichment.promotion import promote
from clean_room_agent.enrichment.prompts.enrichment import ENRICHMENT
from clean_room_agent.enrichment.workers import Stop
from clean_room_agent.errors import CraError, Interrupted
from clean_room_agent.llm.transports.stoppable import Stoppable
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.report.causes import Ending, ending_of
from clean_room_agent.workspace import Workspace, hold

NAMED = 20
"""Paths of one kind that the summary names; `--json` names all."""
PARTIAL = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A file that was asked about and has no description."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted:
    """What `--promote` did."""

    promoted: int
    unchanged: int
    outdated: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What `--json` answers."""

    task_id: str
    """Under which the calls are recorded."""
    model: str
    files: int
    """That can be described."""
    already_described: int
    described: int
    skipped: tuple[Skipped, ...]
    """By path."""
    gave_up: bool
    """Whether too many answers in a row could not be read."""
    ending: Ending
    """Why files have no description, by what the calls came to."""
    left: int
    """For another time: `--limit` left them, or it gave up before."""
    promotion: Promoted | None
    calls: int
    tokens: int
    duration_ms: int


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[REPO]")
@options.repo_option
@click.option("--promote", "promoting", is_flag=True, help="Copy the descriptions into the index.")
@click.option(
    "--limit", type=click.IntRange(min=0), help="Ask about so many files at most, this time; 0: none."
)
@click.option(
    "--all", "every", is_flag=True, help="Every text file, not only Python, JavaScript and TypeScript."
)
@options.json_option
@options.notify_option
@click.option("-v", "--verbose", is_flag=True, help="A line for each file.")
def command(
    path: Path | None,
    repo: Path,
    promoting: bool,
    limit: int | None,
    every: bool,
    as_json: bool,
    verbose: bool,
) -> int:
    """Have the reasoning model describe the files of REPO (here by default).

    Only files without a description of their present content are asked about, the most imported first; a run that was
    stopped goes on where it was. Ends with 0, or with 4 where a file's answer could not be read; after too many of these
    in a row ([enrichment] max_unreadable) no more is asked.
    """
    workspace = wiring.workspace_of(path or repo)
    settings = load_settings(workspace.config, Overrides())
    settings.require("models", "budget")
    workspace.create()
    stop = Stop()
    with (
        hold(workspace.folder / "enrich.lock", timeout=0, what="the enrichment"),
        wiring.open_asking(
            workspace, settings, lambda used: Stoppable(wiring.live_transport(used), stop.asked)
        ) as asking,
    ):
        summary = _Enrichment(workspace, settings, asking, stop, verbose=verbose).run(
            limit=limit, every=every, promoting=promoting
        )
    if as_json:
        output.answer_json(summary)
    else:
        _show(summary)
    return PARTIAL if summary.skipped else 0


class _Enrichment:
    """One run of the command, with what it has open."""

    def __init__(
        self, workspace: Workspace, settings: Settings, asking: wiring.Asking, stop: Stop, *, verbose: bool
    ) -> None:
        self._workspace = workspace
        self._settings = settings
        self._asking = asking
        self._stop = stop
        self._verbose = verbose

    def run(self, *, limit: int | None, every: bool, promoting: bool) -> Summary:
        """Index, ask, promote; what was done is kept whatever ends it."""
        began = time.monotonic()
        task_id = new_task_id()
        self._refresh()
        index = connect_file("curated", self._workspace.curated, read_only=True)
        with contextlib.closing(index):
            kb = KnowledgeBase(index)
            chosen = choose(kb, self._asking.record.write(list_descriptions), every=every)
            outcome = self._describe(kb, task_id, chosen, limit)
        spent = self._asking.meter.read()
        if promoting and outcome.files:
            self._refresh()  # asking takes long: files may have changed
        promotion = self._promote() if promoting else None
        skipped = tuple(Skipped(path=each.path, reason=each.fault) for each in outcome.files if each.fault)
        ending = self._asking.record.write(ending_of, task_id) if skipped else Ending()
        return Summary(
            task_id=task_id,
            model=self._model,
            files=len(chosen.described) + len(chosen.due),
            already_described=len(chosen.described),
            described=len(outcome.files) - len(skipped),
            skipped=skipped,
            gave_up=outcome.gave_up,
            ending=ending,
            left=len(chosen.due) - len(outcome.files),
            promotion=promotion,
            calls=spent.calls,
            tokens=spent.tokens,
            duration_ms=round((time.monotonic() - began) * 1000),
        )

    @property
    def _model(self) -> str:
        return self._asking.router.resolve(ENRICHMENT.role, ENRICHMENT.name).tag

    def _refresh(self) -> None:
        bar = output.ProgressBar("indexing")
        try:
            wiring.refresh_index(self._workspace, self._settings, self._asking.record, progress=bar.show)
        finally:
            bar.close()

    def _describe(self, kb: KnowledgeBase, task_id: str, chosen: Chosen, limit: int | None) -> Descriptions:
        due = chosen.due[:limit]
        if not due:
            return Descriptions(files=(), gave_up=False)
        view = _View(total=len(due), model=self._model, verbose=self._verbose)
        describer = Describer(
            kb=kb,
            root=self._workspace.repo,
            models=self._asking.models,
            model_tag=self._model,
            record=self._asking.record,
            pass_id=task_id,
        )
        try:
            with heard_by(self._press):
                return describer.run(
                    due,
                    parallel=self._settings.models.parallel,
                    max_unreadable=self._settings.enrichment.max_unreadable,
                    watcher=view,
                    stop=self._stop,
                )
        except KeyboardInterrupt as exc:
            raise Interrupted(
                f"interrupted: {view.described} of {len(due)} files described",
                hint="what is described is kept; the same command goes on from there",
            ) from exc
        except CraError:
            if view.described:
                view.say(f"{view.described} of {len(due)} files described, which are kept")
            raise
        finally:
            view.close()

    def _press(self) -> None:
        """Ctrl-C: nothing new is asked; a second time, nothing is waited for."""
        if self._stop.asked():
            raise KeyboardInterrupt
        self._stop.ask()

    def _promote(self) -> Promoted:
        known = self._asking.record.write(list_descriptions)
        index_lock = hold(
            self._workspace.index_lock, timeout=self._settings.index.lock_timeout, what="the index"
        )
        with index_lock, contextlib.closing(connect_file("curated", self._workspace.curated)) as conn:
            promotion = promote(conn, known)
        self._asking.record.write(mark_promoted, promotion.ids)
        return Promoted(
            promoted=promotion.promoted, unchanged=promotion.unchanged, outdated=promotion.outdated
        )


class _View:
    """What a person sees while it goes on: a line that says how far it is and how long it will take."""

    def __init__(
        self,
        *,
        total: int,
        model: str,
        verbose: bool,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self.described = 0
        self._total = total
        self._verbose = verbose
        self._timer = timer
        self._began = timer()
        self._done = 0
        self._bar = output.ProgressBar(output.safe(f"{model} describes"))
        self.tick()

    def answered(self, described: Described) -> None:
        """As `Watcher` says."""
        self._done += 1
        self.described += not described.fault
        if self._verbose or described.fault:
            self.say(f"{described.path}: {described.fault or described.purpose}")
        self.tick()

    def tick(self) -> None:
        """As `Watcher` says."""
        self._bar.show(self._done, self._total, self._time_left())

    def stopping(self, under_way: int) -> None:
        """As `Watcher` says."""
        if under_way:
            answers = "the answer" if under_way == 1 else f"{under_way} answers"
            self.say(f"stopping: waiting for {answers} under way; Ctrl-C again stops at once")

    def close(self) -> None:
        """The line is gone."""
        self._bar.close()

    def say(self, text: str) -> None:
        """A line that stays."""
        self._bar.close()
        output.aside(text)

    def _time_left(self) -> str:
        if not self._done:
            return ""
        seconds = (self._timer() - self._began) / self._done * (self._total - self._done)
        return f", about {_duration(seconds)} left" if seconds else ""


def _duration(seconds: float) -> str:
    """In the unit that a person would take."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    if seconds < 100 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


def _show(summary: Summary) -> None:
    seconds = summary.duration_ms / 1000
    if summary.described or summary.skipped:
        output.answer(
            f"{summary.described} {_files(summary.described)} described by {summary.model}; "
            f"{summary.calls} calls, {summary.tokens:,} tokens, {_duration(seconds)}"
        )
    if summary.already_described:
        output.answer(f"{summary.already_described} of {summary.files} files were described already")
    elif not summary.files:
        output.answer("no file to describe; `--all` takes every text file")
    if summary.gave_up:
        output.answer("gave up: too many answers in a row could not be read; what was described is kept")
    for line in summary.ending.sentences():
        output.answer(f"  {line}")
    if summary.left:
        output.answer(f"{summary.left} {_files(summary.left)} left for another time")
    _name("without a description", tuple(f"{each.path}: {each.reason}" for each in summary.skipped))
    if summary.promotion is not None:
        output.answer(
            f"{summary.promotion.promoted} promoted, {summary.promotion.unchanged} were in the index already"
        )
        _name("not promoted, because changed since described", summary.promotion.outdated)
    elif summary.described:
        output.answer("`cra enrich --promote` puts the descriptions into the index")


def _name(what: str, lines: tuple[str, ...]) -> None:
    if not lines:
        return
    output.answer(f"{len(lines)} {what}:")
    for line in lines[:NAMED]:
        output.answer(f"  {line}")
    if len(lines) > NAMED:
        output.answer(f"  and {len(lines) - NAMED} more; `--json` names them all")


def _files(number: int) -> str:
    return "file" if number == 1 else "files"

"""`cra enrich`: have a model describe each file that changed since it was last described."""

import time
from collections.abc import Callable
from pathlib import Path

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.enrichment import EnrichmentSummary, enrich
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.artifacts.names import counted
from clean_room_agent.cli import options, output
from clean_room_agent.enrichment.describe import Described
from clean_room_agent.json_values import to_shown
from clean_room_agent.workspace import hold

NAMED = 20
"""Paths of one kind that the summary names; `--json` names all."""


class EnrichmentView:
    """A progress line: how many files are done, and how long the rest will take."""

    def __init__(
        self,
        *,
        total: int,
        model: str,
        verbose: bool,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total
        self._verbose = verbose
        self._timer = timer
        self._began = timer()
        self._done = 0
        self._bar = output.ProgressBar(output.safe(f"{model} describes"))
        self.tick()

    def answered(self, described: Described) -> None:
        """Count the file, and name it if it has no description or all are to be named."""
        self._done += 1
        if self._verbose or described.reason:
            self.say(f"{described.path}: {described.reason or described.purpose}")
        self.tick()

    def tick(self) -> None:
        """Update the remaining time."""
        self._bar.show(self._done, self._total, self._time_left())

    def close(self) -> None:
        """Remove the progress line."""
        self._bar.close()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._bar.close()
        output.aside(text)

    def _time_left(self) -> str:
        if not self._done:
            return ""
        seconds = (self._timer() - self._began) / self._done * (self._total - self._done)
        return f", about {_duration(seconds)} left" if seconds else ""


def _duration(seconds: float) -> str:
    """A duration in a suitable unit."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    if seconds < 100 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


def show(summary: EnrichmentSummary) -> None:
    """Print what was described, what was not and why, and what to do next."""
    if summary.described or summary.skipped:
        output.answer(
            f"{counted(summary.described, 'file')} described by {summary.model}; "
            f"{counted(summary.calls, 'call')}, {counted(summary.tokens, 'token')}, {_duration(summary.duration_ms / 1000)}"
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
        output.answer(f"{counted(summary.left, 'file')} left for another time")
    _name("without a description", tuple(f"{skipped.path}: {skipped.reason}" for skipped in summary.skipped))
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


PARTIAL = 4


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[REPO]")
@options.repo_option
@click.option("--promote", "promoting", is_flag=True, help="Copy the descriptions into the index.")
@click.option(
    "--limit", type=options.number(0), help="Ask about at most this many files, this time; 0: none."
)
@click.option(
    "--all", "every", is_flag=True, help="All text files, not only Python, JavaScript and TypeScript."
)
@options.json_option
@options.notify_option
@click.option("-v", "--verbose", is_flag=True, help="Print a line for each file.")
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

    Only files whose current content has no description are asked about, most-imported files first; stopped and started
    again, it continues. Exit codes: 0 done, 4 an answer could not be read; after too many of these in a row ([enrichment]
    max_unreadable) it stops.
    """
    workspace = output.opened(wiring.workspace_of(path or repo))
    settings = load_settings(workspace.config, Overrides())
    settings.require("models", "budget")
    workspace.create()
    with (
        hold(workspace.folder / "enrich.lock", timeout=0, what="the enrichment"),
        wiring.open_model_access(workspace, settings, wiring.live_transport) as access,
    ):
        summary = enrich(
            workspace,
            settings,
            access,
            open_bar=output.ProgressBar,
            open_view=lambda total, model: EnrichmentView(total=total, model=model, verbose=verbose),
            limit=limit,
            every=every,
            promoting=promoting,
        )
    if as_json:
        output.answer_json(to_shown(summary))
    else:
        show(summary)
    return PARTIAL if summary.skipped else 0

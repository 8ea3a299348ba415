"""How `cra enrich` shows its progress and prints its summary."""

import time
from collections.abc import Callable

from clean_room_agent.app.enrichment import EnrichmentSummary
from clean_room_agent.artifacts.names import counted
from clean_room_agent.cli import output
from clean_room_agent.enrichment.describe import Described

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

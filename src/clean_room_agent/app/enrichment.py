"""Has a model describe files: indexes, asks, promotes; finished descriptions survive any interruption."""

import contextlib
import time
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from clean_room_agent.app import wiring
from clean_room_agent.app.indexing import refresh_index
from clean_room_agent.app.progress import Bar
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.names import new_task_id
from clean_room_agent.cancellation import on_interrupt
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.indexing import list_descriptions, mark_promoted
from clean_room_agent.enrichment.describe import Describer, Descriptions, DueFiles, Watcher, find_due_files
from clean_room_agent.enrichment.promotion import promote
from clean_room_agent.enrichment.prompt import ENRICHMENT
from clean_room_agent.enrichment.workers import Stop
from clean_room_agent.errors import CraError, Interrupted
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.report.causes import ending_of
from clean_room_agent.report.summary import Ending
from clean_room_agent.workspace import Workspace, hold


class Skipped(Struct, frozen=True, kw_only=True):
    """A file that the model was asked about without getting a description."""

    path: str
    reason: str


class Promoted(Struct, frozen=True, kw_only=True):
    """What `--promote` did."""

    promoted: int
    unchanged: int
    outdated: tuple[str, ...]


class FileCounts(Struct, frozen=True, kw_only=True):
    """How many files there are, by state."""

    files: int
    """That can be described."""
    already_described: int
    described: int
    left: int
    """Left for another time, because of `--limit` or because it gave up."""


class Cost(Struct, frozen=True, kw_only=True):
    """The cost of the calls."""

    calls: int
    tokens: int
    duration_ms: int


class Failures(Struct, frozen=True, kw_only=True):
    """Files without a description, and why."""

    skipped: tuple[Skipped, ...]
    """By path."""
    gave_up: bool
    """Whether too many answers in a row could not be read."""
    ending: Ending
    """Why files have no description, by the outcomes of the calls."""


class Summary(Struct, frozen=True, kw_only=True):
    """One run of `cra enrich`."""

    task_id: str
    """Under which the calls are recorded."""
    model: str
    counts: FileCounts
    failures: Failures
    promotion: Promoted | None
    cost: Cost


class View(Watcher, Protocol):
    """Shows the progress of the descriptions."""

    @property
    def described(self) -> int:
        """Files that have a description by now."""

    def say(self, text: str) -> None:
        """Print a line that stays."""

    def close(self) -> None:
        """End the display."""


class Enrichment:
    """One run of the command, with what it has open."""

    def __init__(
        self,
        workspace: Workspace,
        settings: Settings,
        access: wiring.ModelAccess,
        stop: Stop,
        *,
        open_bar: Callable[[str], Bar],
        open_view: Callable[[int, str], View],
    ) -> None:
        """`open_bar` gets what is being done, `open_view` the number of files and the model that is asked."""
        self._workspace = workspace
        self._settings = settings
        self._access = access
        self._stop = stop
        self._open_bar = open_bar
        self._open_view = open_view

    def run(self, *, limit: int | None, every: bool, promoting: bool) -> Summary:
        """Index, ask and promote. Finished descriptions are kept however the run ends."""
        began = time.monotonic()
        task_id = new_task_id()
        self._refresh()
        index = connect_file("curated", self._workspace.curated, read_only=True)
        with contextlib.closing(index):
            kb = KnowledgeBase(index)
            chosen = find_due_files(kb, self._access.record.write(list_descriptions), every=every)
            outcome = self._describe(kb, task_id, chosen, limit)
        spent = self._access.meter.read()
        if promoting and outcome.files:
            self._refresh()  # asking takes long: files may have changed
        promotion = self._promote() if promoting else None
        skipped = tuple(Skipped(path=each.path, reason=each.fault) for each in outcome.files if each.fault)
        ending = self._access.record.write(ending_of, task_id) if skipped else Ending()
        return Summary(
            task_id=task_id,
            model=self._model,
            counts=FileCounts(
                files=len(chosen.described) + len(chosen.due),
                already_described=len(chosen.described),
                described=len(outcome.files) - len(skipped),
                left=len(chosen.due) - len(outcome.files),
            ),
            failures=Failures(skipped=skipped, gave_up=outcome.gave_up, ending=ending),
            promotion=promotion,
            cost=Cost(
                calls=spent.calls,
                tokens=spent.tokens,
                duration_ms=round((time.monotonic() - began) * 1000),
            ),
        )

    @property
    def _model(self) -> str:
        return self._access.router.resolve(ENRICHMENT.role, ENRICHMENT.name).tag

    def _refresh(self) -> None:
        bar = self._open_bar("indexing")
        try:
            refresh_index(self._workspace, self._settings.index, self._access.record, progress=bar.show)
        finally:
            bar.close()

    def _describe(self, kb: KnowledgeBase, task_id: str, chosen: DueFiles, limit: int | None) -> Descriptions:
        due = chosen.due[:limit]
        if not due:
            return Descriptions(files=(), gave_up=False)
        view = self._open_view(len(due), self._model)
        describer = Describer(
            kb=kb,
            root=self._workspace.repo,
            models=self._access.models,
            model_tag=self._model,
            record=self._access.record,
            pass_id=task_id,
        )
        try:
            with on_interrupt(self._press):
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
                hint="finished descriptions are kept; the same command continues from there",
            ) from exc
        except CraError:
            if view.described:
                view.say(f"{view.described} of {len(due)} files described, which are kept")
            raise
        finally:
            view.close()

    def _press(self) -> None:
        """Handle Ctrl-C: ask nothing new; the second time, do not wait for answers either."""
        if self._stop.asked():
            raise KeyboardInterrupt
        self._stop.ask()

    def _promote(self) -> Promoted:
        known = self._access.record.write(list_descriptions)
        index_lock = hold(
            self._workspace.index_lock, timeout=self._settings.index.lock_timeout, what="the index"
        )
        with index_lock, contextlib.closing(connect_file("curated", self._workspace.curated)) as conn:
            promotion = promote(conn, known)
        self._access.record.write(mark_promoted, promotion.ids)
        return Promoted(
            promoted=promotion.promoted, unchanged=promotion.unchanged, outdated=promotion.outdated
        )

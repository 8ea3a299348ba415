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
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.indexing import list_descriptions, mark_promoted
from clean_room_agent.enrichment.describe import Described, Describer, find_due_files
from clean_room_agent.enrichment.promotion import Promotion, promote
from clean_room_agent.enrichment.prompt import ENRICHMENT
from clean_room_agent.errors import CraError, Interrupted
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.report.causes import ending_of
from clean_room_agent.report.summary import Ending
from clean_room_agent.workspace import Workspace, hold


class Skipped(Struct, frozen=True, kw_only=True):
    """A file that the model was asked about without getting a description."""

    path: str
    reason: str


class EnrichmentSummary(Struct, frozen=True, kw_only=True):
    """One run of `cra enrich`, as `--json` answers it."""

    task_id: str
    """Under which the calls are recorded."""
    model: str
    files: int
    """That can be described."""
    already_described: int
    described: int
    left: int
    """Left for another time, because of `--limit` or because it gave up."""
    skipped: tuple[Skipped, ...]
    """By path."""
    gave_up: bool
    """Whether too many answers in a row could not be read."""
    ending: Ending
    """Why files have no description, by the outcomes of the calls."""
    promotion: Promotion | None
    calls: int
    tokens: int
    duration_ms: int


class View(Protocol):
    """Shows the progress of the descriptions."""

    def answered(self, described: Described) -> None:
        """A file is done."""

    def say(self, text: str) -> None:
        """Print a line that stays."""

    def close(self) -> None:
        """End the display."""


def enrich(
    workspace: Workspace,
    settings: Settings,
    access: wiring.ModelAccess,
    *,
    open_bar: Callable[[str], Bar],
    open_view: Callable[[int, str], View],
    limit: int | None,
    every: bool,
    promoting: bool,
) -> EnrichmentSummary:
    """Index, ask and promote. Finished descriptions are kept however the run ends.

    `open_bar` gets what is being done, `open_view` the number of files and the model that is asked.
    """
    began = time.monotonic()
    task_id = new_task_id()
    model = access.router.resolve(ENRICHMENT.role, ENRICHMENT.name).tag

    def refresh() -> None:
        with contextlib.closing(open_bar("indexing")) as bar:
            refresh_index(workspace, settings.index, access.record, progress=bar.show)

    refresh()
    index = connect_file("curated", workspace.curated, read_only=True)
    with contextlib.closing(index):
        kb = KnowledgeBase(index)
        known, due = find_due_files(kb, access.record.write(list_descriptions), every=every)
        asked = due[:limit]
        with contextlib.closing(open_view(len(asked), model)) as view:
            describer = Describer(
                kb=kb,
                root=workspace.repo,
                models=access.models,
                model_tag=model,
                record=access.record,
                pass_id=task_id,
                answered=view.answered,
            )
            try:
                describer.run(
                    asked,
                    parallel=settings.models.parallel,
                    max_unreadable=settings.enrichment.max_unreadable,
                )
            except KeyboardInterrupt as exc:
                raise Interrupted(
                    f"interrupted: {describer.described} of {len(asked)} files described",
                    hint="finished descriptions are kept; the same command continues from there",
                ) from exc
            except CraError:
                if describer.described:
                    view.say(f"{describer.described} of {len(asked)} files described, which are kept")
                raise
    if promoting and describer.done:
        refresh()  # asking takes long: files may have changed
    promotion = _promote(workspace, settings, access) if promoting else None
    skipped = tuple(
        Skipped(path=file.path, reason=file.reason)
        for file in sorted(describer.done, key=lambda file: file.path)
        if file.reason
    )
    spent = access.meter.read()
    return EnrichmentSummary(
        task_id=task_id,
        model=model,
        files=len(known) + len(due),
        already_described=len(known),
        described=describer.described,
        left=len(due) - len(describer.done),
        skipped=skipped,
        gave_up=describer.gave_up,
        ending=access.record.write(ending_of, task_id) if skipped else Ending(),
        promotion=promotion,
        calls=spent.calls,
        tokens=spent.tokens,
        duration_ms=round((time.monotonic() - began) * 1000),
    )


def _promote(workspace: Workspace, settings: Settings, access: wiring.ModelAccess) -> Promotion:
    index_lock = hold(workspace.index_lock, timeout=settings.index.lock_timeout, what="the index")
    with index_lock, contextlib.closing(connect_file("curated", workspace.curated)) as conn:
        promotion, ids = promote(conn, access.record.write(list_descriptions))
    access.record.write(mark_promoted, ids)
    return promotion

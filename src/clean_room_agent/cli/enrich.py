"""`cra enrich`: have a model describe each file that changed since it was last described."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from msgspec import Struct

from clean_room_agent.app import wiring
from clean_room_agent.app.indexing import refresh_index
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.artifacts.names import counted, new_task_id
from clean_room_agent.cli import options, output
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.indexing import list_descriptions, mark_promoted
from clean_room_agent.enrichment.describe import Described, Describer, Promotion, find_due_files, promote
from clean_room_agent.enrichment.prompt import ENRICHMENT
from clean_room_agent.errors import CraError, Interrupted
from clean_room_agent.json_values import to_shown
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.report.causes import ending_of
from clean_room_agent.report.summary import Ending, duration
from clean_room_agent.workspace import Workspace, hold

PARTIAL = 4
NAMED = 20
"""Paths of one kind that the summary names; `--json` names all."""


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
    skipped: tuple[dict[str, str], ...]
    """Path and reason of each that was asked about without getting a description, by path."""
    gave_up: bool
    """Whether too many files in a row got no description."""
    ending: Ending
    """Why files have no description, by the outcomes of the calls."""
    promotion: Promotion | None
    calls: int
    tokens: int
    duration_ms: int


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[REPO]")
@options.repo_option
@click.option("--promote", "promoting", is_flag=True, help="Copy the descriptions into the index.")
@click.option(
    "--limit", type=options.number(0), help="Ask about at most this many files, this time; 0: none."
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="All text files, not only those of languages that are indexed in full.",
)
@options.json_option
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
    again, it continues. Exit codes: 0 done, 4 an answer could not be read; after five of these in a row it stops.
    """
    workspace = wiring.workspace_of(path or repo)
    settings = load_settings(workspace.config, Overrides())
    settings.require("models", "budget")
    workspace.create()
    with (
        hold(workspace.folder / "enrich.lock", timeout=0, what="the enrichment"),
        wiring.open_model_access(workspace, settings, wiring.live_transport) as access,
    ):
        summary = _enrich_repository(
            workspace, settings, access, limit=limit, every=every, promoting=promoting, verbose=verbose
        )
    if as_json:
        output.answer_json(to_shown(summary))
    else:
        _print_summary(summary)
    return PARTIAL if summary.skipped else 0


def _enrich_repository(
    workspace: Workspace,
    settings: Settings,
    access: wiring.ModelAccess,
    *,
    limit: int | None,
    every: bool,
    promoting: bool,
    verbose: bool,
) -> EnrichmentSummary:
    """Index, ask and promote. Finished descriptions are kept however the run ends."""
    began = time.monotonic()
    task_id = new_task_id()
    model = access.router.resolve(ENRICHMENT.role, ENRICHMENT.name).tag
    _refresh_with_progress(workspace, settings, access)
    with contextlib.closing(connect_file("curated", workspace.curated, read_only=True)) as index:
        kb = KnowledgeBase(index)
        known, due = find_due_files(kb, access.record.write(list_descriptions), every=every)
        asked = due[:limit]
        describer = Describer(
            kb=kb,
            root=workspace.repo,
            models=access.models,
            model_tag=model,
            record=access.record,
            pass_id=task_id,
        )
        answers = describer.describe(asked, parallel=settings.models.parallel)
        done = _watch_answers(answers, len(asked), model, verbose=verbose)
    if promoting and done:
        _refresh_with_progress(workspace, settings, access)  # asking takes long: files may have changed
    promotion = _promote_descriptions(workspace, settings, access) if promoting else None
    skipped = sorted((file.path, file.reason) for file in done if file.reason)
    spent = access.meter.read()
    return EnrichmentSummary(
        task_id=task_id,
        model=model,
        files=len(known) + len(due),
        already_described=len(known),
        described=len(done) - len(skipped),
        left=len(due) - len(done),
        skipped=tuple({"path": path, "reason": reason} for path, reason in skipped),
        gave_up=len(done) < len(asked),
        ending=access.record.write(ending_of, task_id) if skipped else Ending(),
        promotion=promotion,
        calls=spent.calls,
        tokens=spent.tokens,
        duration_ms=round((time.monotonic() - began) * 1000),
    )


def _refresh_with_progress(workspace: Workspace, settings: Settings, access: wiring.ModelAccess) -> None:
    with output.ProgressBar("indexing") as bar:
        refresh_index(workspace, settings.index, access.record, progress=bar.show)


def _promote_descriptions(workspace: Workspace, settings: Settings, access: wiring.ModelAccess) -> Promotion:
    index_lock = hold(workspace.index_lock, timeout=settings.index.lock_timeout, what="the index")
    with index_lock, contextlib.closing(connect_file("curated", workspace.curated)) as conn:
        promotion, ids = promote(conn, access.record.write(list_descriptions))
    access.record.write(mark_promoted, ids)
    return promotion


def _watch_answers(answers: Iterator[Described], total: int, model: str, *, verbose: bool) -> list[Described]:
    """The files that were asked about, after showing their progress: how many are done, and how long the rest will take.

    A file without a description is named at once; with `verbose`, every file. Raises Interrupted on Ctrl-C.
    """
    done: list[Described] = []
    began = time.monotonic()
    with output.ProgressBar(output.safe(f"{model} describes")) as bar:
        bar.show(0, total)
        try:
            for file in answers:
                done.append(file)
                if verbose or file.reason:
                    bar.close()
                    output.aside(f"{file.path}: {file.reason or file.purpose}")
                seconds = (time.monotonic() - began) / len(done) * (total - len(done))
                bar.show(len(done), total, f", about {duration(seconds)} left" if seconds else "")
        except (KeyboardInterrupt, CraError) as exc:
            bar.close()
            described = sum(not file.reason for file in done)
            if isinstance(exc, KeyboardInterrupt):
                raise Interrupted(
                    f"interrupted: {described} of {total} files described",
                    hint="finished descriptions are kept; the same command continues from there",
                ) from exc
            if described:
                output.aside(f"{described} of {total} files described, which are kept")
            raise
    return done


def _print_summary(summary: EnrichmentSummary) -> None:
    """Print what was described, what was not and why, and what to do next."""
    if summary.described or summary.skipped:
        output.answer(
            f"{counted(summary.described, 'file')} described by {summary.model}; "
            f"{counted(summary.calls, 'call')}, {counted(summary.tokens, 'token')}, {duration(summary.duration_ms / 1000)}"
        )
    if summary.already_described:
        output.answer(f"{summary.already_described} of {summary.files} files were described already")
    elif not summary.files:
        output.answer("no file to describe; `--all` takes every text file")
    if summary.gave_up:
        output.answer("gave up: too many files in a row got no description; what was described is kept")
    for line in summary.ending.sentences():
        output.answer(f"  {line}")
    if summary.left:
        output.answer(f"{counted(summary.left, 'file')} left for another time")
    _print_list("without a description", [f"{file['path']}: {file['reason']}" for file in summary.skipped])
    if summary.promotion is not None:
        output.answer(
            f"{summary.promotion.promoted} promoted, {summary.promotion.unchanged} were in the index already"
        )
        _print_list("not promoted, because changed since described", summary.promotion.outdated)
    elif summary.described:
        output.answer("`cra enrich --promote` puts the descriptions into the index")


def _print_list(what: str, lines: Sequence[str]) -> None:
    if lines:
        output.answer(f"{len(lines)} {what}:")
    for line in lines[:NAMED]:
        output.answer(f"  {line}")
    if len(lines) > NAMED:
        output.answer(f"  and {len(lines) - NAMED} more; `--json` names them all")

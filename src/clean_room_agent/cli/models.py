"""`cra models`: show the models on the server, which one does what, and what was measured of them; `fit` measures them."""

import json
import math
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import click
from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text

from clean_room_agent.app import wiring
from clean_room_agent.app.discovery import WHICH_MODEL
from clean_room_agent.app.fit.fit_view import FitView, fit_view
from clean_room_agent.app.fit.fitted import fits_of, sums_of_runs
from clean_room_agent.app.fit.measuring import measure_models
from clean_room_agent.app.fit.probe import ProbeProgress
from clean_room_agent.app.model_server import model_on, open_server
from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.app.wiring import router_of
from clean_room_agent.artifacts.context import Role
from clean_room_agent.cli import options, output
from clean_room_agent.cli.safe_console import answers_console, sanitized
from clean_room_agent.db.raw.analysis import CallSums
from clean_room_agent.errors import CraError
from clean_room_agent.llm.model_config import ROLES, ModelsConfig
from clean_room_agent.llm.probes import small_window_error
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.transport import ModelDetails, ModelServer
from clean_room_agent.report.run_list import plain_table, size_text

PURPOSES: dict[Role, str] = {
    "coding": "writes the edits",
    "reasoning": "plans and judges",
    "classifier": "answers yes or no",
}


class ModelFault(Struct, frozen=True, kw_only=True):
    """A problem and its remedy."""

    text: str
    remedy: str
    exit_code: int


class ModelJob(Struct, frozen=True, kw_only=True):
    """A job of a model."""

    name: str
    """coding, reasoning, classifier; `escalation.<role> <n>`; `overrides.<prompt or stage>`."""
    purpose: str
    tag: str
    window: int | None
    """The window it is used with, in tokens; None if it has another role's."""
    served: int | None = None
    """The window that the server gives it, if the server decides that."""
    trained: int | None = None
    """The window that it was trained for."""
    fault: ModelFault | None = None


class Offered(Struct, frozen=True, kw_only=True):
    """A model that the server has."""

    tag: str
    size_bytes: int
    jobs: tuple[str, ...]
    forwards_to: str


class ModelsView(Struct, frozen=True, kw_only=True):
    """The configured server, the jobs, and the server's models."""

    base_url: str
    provider: str
    version: str
    """"" if the server cannot be asked."""
    fault: ModelFault | None
    """Why it cannot be asked."""
    jobs: tuple[ModelJob, ...]
    offered: tuple[Offered, ...]
    fit: FitView | None
    """What was measured of the models, and follows; None if that is nothing, or the server cannot be asked."""

    @property
    def exit_code(self) -> int:
        """0 if each job can be done; otherwise the code of the first fault."""
        faults = (self.fault, *(job.fault for job in self.jobs))
        return next((fault.exit_code for fault in faults if fault is not None), 0)


def look_at_models(settings: Settings, runs: Sequence[CallSums] = ()) -> ModelsView:
    """Compare the configured models with those on the server, without asking a model. `runs` is what answers came to.

    Raises:
        ConfigError: the configuration contradicts itself, or names an unknown prompt; or a file of figures is broken.
    """
    router = router_of(settings)
    models = settings.models
    server = open_server(models)
    version, fault = "", None
    try:
        version = server.version()
    except CraError as error:
        fault = _model_fault(error)
    jobs = tuple(_model_jobs(router, None if fault else server))
    users: dict[str, tuple[str, ...]] = {}
    for job in jobs:
        users[job.tag] = (*users.get(job.tag, ()), job.name)
    fit = None if fault else fit_view(settings, fits_of(settings, server), runs)
    return ModelsView(
        base_url=" and ".join(one.base_url for one in models.each_server()),
        provider=" and ".join(dict.fromkeys(one.provider for one in models.each_server())),
        version=version,
        fault=fault,
        jobs=jobs,
        offered=() if fault else tuple(
            Offered(
                tag=each.tag,
                size_bytes=each.size_bytes,
                jobs=users.get(each.tag, ()),
                forwards_to=each.forwards_to,
            )
            for each in sorted(server.list_models(), key=lambda each: each.tag)
        ),
        fit=fit if fit and (fit.figures or fit.chosen) else None,
    )  # fmt: skip


def _model_jobs(router: ModelRouter, server: ModelServer | None) -> list[ModelJob]:
    """The jobs, with what the server says of their models, each of which it is asked about once."""
    details_of = cache(partial(_details_of, server, router.models))
    named: list[tuple[str, str, str, int | None]] = []
    for role in ROLES:
        tag = router.resolve(role, "").tag
        named.append((role, PURPOSES[role], tag, router.window(role).context))
    for role in ROLES:
        for place, tag in enumerate(router.escalation(role), start=1):
            purpose = f"asked {_ordinal(place)} when {role} is stuck"
            named.append((f"escalation.{role} {place}", purpose, tag, router.window(role).context))
    roles = {prompt.name: prompt.role for prompt in PROMPTS}
    for name, tag in sorted(router.models.overrides.items()):
        role_of_prompt = roles.get(name)
        window = router.window(role_of_prompt).context if role_of_prompt else None
        what = "prompt" if role_of_prompt else "stage"
        named.append((f"overrides.{name}", f"answers only this {what}", tag, window))
    return [
        _model_job(name, purpose, tag, window or router.window_of(tag), details_of(tag))
        for name, purpose, tag, window in named
    ]


def _model_job(
    name: str, purpose: str, tag: str, window: int | None, found: ModelDetails | ModelFault | None
) -> ModelJob:
    fault = found if isinstance(found, ModelFault) else None
    details = found if isinstance(found, ModelDetails) else None
    if details and details.served is not None and window is not None and details.served < window:
        fault = _model_fault(small_window_error(details.served, tag, window))
    return ModelJob(
        name=name,
        purpose=purpose,
        tag=tag,
        window=window,
        served=details.served if details else None,
        trained=details.context_length if details else None,
        fault=fault,
    )


def _details_of(
    server: ModelServer | None, models: ModelsConfig, tag: str
) -> ModelDetails | ModelFault | None:
    try:
        return None if server is None else model_on(server, tag, models)
    except CraError as error:
        return _model_fault(error)


def _model_fault(error: CraError) -> ModelFault:
    return ModelFault(text=error.message, remedy=error.hint, exit_code=error.exit_code)


def _ordinal(place: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(place, f"as number {place}")


HELP = """Show the models on the configured server, which one does what, and what was measured of them.

No model is asked anything, but by `cra models fit`; `cra check` does that, to test windows and answer formats. To change a model, use
`cra config set models.coding TAG`.

Exit codes: 0 every job has its model, 2 configuration, 3 the server cannot be reached, lacks a model, or its window is too
small.
"""


@click.group(help=HELP, invoke_without_command=True)
@options.repo_option
@options.json_option
@click.pass_context
def command(context: click.Context, repo: Path, as_json: bool) -> int:
    """The command."""
    if context.invoked_subcommand is not None:
        return 0
    workspace = wiring.workspace_of(repo)
    settings = load_settings(workspace.config, Overrides())
    settings.require("models", "budget")
    view = look_at_models(settings, sums_of_runs(workspace, settings))
    if as_json:
        output.answer_json(view)
    else:
        answers_console().print(*_render_view(sanitized(view)), sep="\n", highlight=False)
    return view.exit_code


def _render_view(view: ModelsView) -> list[RenderableType]:
    where = f"{view.base_url} ({view.provider})" + (f", {view.version}" if view.version else "")
    parts: list[RenderableType] = [Text(where)]
    if view.fault is not None:
        parts += [Text(view.fault.text, style="red"), Text(f"  -> {view.fault.remedy}", style="cyan")]
    parts.append(Text(""))
    of_job = ("job", "model", "window", "")
    jobs = plain_table(*of_job, right=("window",), folded=of_job)
    for job in view.jobs:
        told = Text(job.purpose, style="dim")
        if job.fault is not None:
            told = Text("cannot be used", style="red")
        window = f"{job.window:,}" if job.window else ""
        jobs.add_row(Text(job.name), Text(job.tag, style="bold"), window, told)
    parts.append(jobs)
    for fault in dict.fromkeys(job.fault for job in view.jobs if job.fault is not None):
        parts += [Text(f"\n{fault.text}", style="red"), Text(f"  -> {fault.remedy}", style="cyan")]
    if view.offered:
        columns = ("on the server", "size", "used for")
        offered = plain_table(*columns, right=("size",), folded=columns)
        for each in view.offered:
            note = ", ".join(each.jobs)
            if each.forwards_to:
                note = "; ".join(filter(None, (note, f"forwards prompts to {each.forwards_to}")))
            offered.add_row(
                Text(each.tag), size_text(each.size_bytes) if each.size_bytes else "", Text(note or "-")
            )
        parts += [Text(""), offered]
    elif view.fault is None:
        parts += [Text("\nthe server has no model"), Text(WHICH_MODEL)]
    if view.fit is not None:
        parts += [Text(""), *_render_fit(view.fit)]
    return parts


def _render_fit(fit: FitView) -> list[RenderableType]:
    """The figures, then what is chosen by them."""
    measured = (
        f"measured of {', '.join(fit.models)}"
        if fit.models
        else "not measured: `cra models fit` does it, once"
    )
    parts: list[RenderableType] = [
        Text(measured if fit.whole or not fit.models else f"{measured}, not yet all")
    ]
    parts += [Text(f"  {figure}") for figure in fit.figures]
    if fit.verdict:
        parts.append(Text(fit.verdict, style="red"))
    overridden = {one.name for one in fit.overridden}
    for one in fit.chosen:
        note = "" if fit.models else f" ({one.why})"
        note += " (but something else is configured)" if one.name in overridden else ""
        parts.append(Text(f"  -> {one.name} = {json.dumps(one.value)}{note}", style="cyan"))
    return parts


@command.command("fit")
@click.option("--again", is_flag=True, help="Measure anew what is measured already.")
@options.repo_option
@options.json_option
def fit_command(again: bool, repo: Path, as_json: bool) -> int:
    """Measure, once, what the configured models can be asked for on this machine; it takes some minutes.

    They are asked some forty made-up tasks, each with a check; what they write runs in the sandbox in which tests run. It can
    be interrupted, and goes on where it was. What is chosen by the figures applies to each run where nothing else is
    configured. llama-server and others know a model only by its name: use --again after you have changed the file.
    """
    workspace = wiring.workspace_of(repo)
    settings = load_settings(workspace.config, Overrides())
    settings.require("models", "budget", "stages", "solve")
    try:
        fits = measure_models(workspace, settings, again=again, tell=_tell_progress, note=output.aside)
    except (KeyboardInterrupt, CraError):
        output.aside("what was measured is kept: `cra models fit` goes on from there")
        raise
    view = fit_view(settings, fits, sums_of_runs(workspace, settings))
    if as_json:
        output.answer_json(view)
    else:
        answers_console().print(*_render_fit(sanitized(view)), sep="\n", highlight=False, soft_wrap=True)
    return 1 if view.verdict else 0


def _tell_progress(progress: ProbeProgress) -> None:
    left = ""
    if progress.seconds_left is not None:
        left = f", at most {math.ceil(progress.seconds_left / 60)} min left"
    output.aside(f"{progress.doing}: {progress.done} of at most {progress.most}{left}")

"""Settings with what was chosen for their models: below everything that is configured, and recorded with the run."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from clean_room_agent.app.fit.decisions import ChosenKey, as_tables, can_work, choices
from clean_room_agent.app.fit.figures import FigureName, Fit
from clean_room_agent.app.fit.fit_file import fits_folder, read_fit
from clean_room_agent.app.model_server import open_server
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.context import Role
from clean_room_agent.config import laid_over
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.analysis import CallSums, list_call_sums
from clean_room_agent.llm.model_config import ROLES
from clean_room_agent.llm.transport import ModelServer
from clean_room_agent.workspace import Workspace

ASKED_BY: Mapping[FigureName, frozenset[str]] = {
    "function": frozenset({"function"}),
    "masked": frozenset({"fill"}),
    "lines": frozenset({"lines"}),
    "redrawn": frozenset({"function"}),
    "edit": frozenset({"implement"}),
    "plan": frozenset({"meta_plan", "part_plan"}),
    "judgment": frozenset({"scope_judgment", "piece_judgment", "scope", "precision"}),
}
"""The prompts, or stages, whose model a figure speaks of."""
RECORDED = "fit"
"""Where a run's recorded configuration has what was chosen for its models."""
CANNOT = (
    "this model cannot do the work: no form in which it was asked for code gave right answers often enough; take a larger "
    "one that is trained for code and follows instructions, as coding in [models]"
)


def fits_of(settings: Settings, server: ModelServer) -> dict[Role, Fit]:
    """What was measured of each role's model, by its digest, without what a model of its own answers (`[models.overrides]`).

    Raises:
        ConfigError: a file of figures is broken.
    """
    if not fits_folder().exists():  # nobody is asked
        return {}
    found = {}
    for role in ROLES:
        tag = settings.models.tag_of(role)
        fit = read_fit(tag, server.digest(tag) or "")
        if fit is not None:
            found[role] = fit
    own = {name for name, prompts in ASKED_BY.items() if not prompts.isdisjoint(settings.models.overrides)}
    return {
        role: replace(fit, ended=[name for name in fit.ended if name not in own])
        for role, fit in found.items()
    }


def models_of(settings: Settings) -> dict[Role, str]:
    """Each role's model, but of those that another answers for in part (`[models.overrides]`)."""
    roles: dict[Role, frozenset[str]] = {
        "reasoning": ASKED_BY["plan"],
        "classifier": ASKED_BY["judgment"],
    }
    asked = settings.models.overrides
    return {role: settings.models.tag_of(role) for role, own in roles.items() if own.isdisjoint(asked)}


def sums_of_runs(workspace: Workspace, settings: Settings) -> tuple[CallSums, ...]:
    """What the coding model's answers came to in the runs of the repository."""
    if not workspace.raw.exists():
        return ()
    with contextlib.closing(get_connection("raw", repo_path=workspace.repo, read_only=True)) as conn:
        found = list_call_sums(conn)
    return tuple(one for one in found if one.model == settings.models.coding)


def fitted(settings: Settings, runs: Sequence[CallSums] = ()) -> Settings:
    """The settings with what was chosen for their models, as far as they were measured, or were asked often enough in `runs`, and
    nothing else is configured.

    Raises:
        ConfigError: a file of figures is broken.
    """
    fits = fits_of(settings, open_server(settings.models)) if fits_folder().exists() else {}
    chosen = choices(fits, runs, models_of(settings))
    if not chosen:
        return settings
    models = sorted({f"{fit.model} {fit.began}" for fit in fits.values()})
    return with_recorded(settings, {"models": models, "chosen": as_tables(chosen)})


def with_recorded(settings: Settings, fit: Mapping[str, Any] | None) -> Settings:
    """The settings with what a recorded run's `fit` chose; None for a run without one."""
    if fit is None:
        return settings
    return Settings(source=settings.source, data={**laid_over(fit["chosen"], settings.data), RECORDED: fit})


def contradictions(settings: Settings, chosen: tuple[ChosenKey, ...]) -> Iterator[ChosenKey]:
    """What was chosen, where something else is configured."""
    for one in chosen:
        configured = settings.data.get(one.table, {})
        if one.key in configured and configured[one.key] != one.value:
            yield one


def verdict(fits: Mapping[Role, Fit]) -> str:
    """What to tell of the coding model that cannot do the work; "" if it can, or is not measured."""
    coding = fits.get("coding")
    return CANNOT if coding is not None and can_work(coding) is False else ""

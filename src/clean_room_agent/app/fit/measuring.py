"""`cra models fit`: measures the configured models."""

from collections.abc import Callable

from clean_room_agent.app import wiring
from clean_room_agent.app.clock import utc_now
from clean_room_agent.app.fit.checks import checking
from clean_room_agent.app.fit.figures import Fit
from clean_room_agent.app.fit.fit_file import VERSION, read_fit, write_fit
from clean_room_agent.app.fit.fit_view import is_whole
from clean_room_agent.app.fit.probe import Probe, ProbeProgress
from clean_room_agent.app.model_server import open_server
from clean_room_agent.app.settings import Settings
from clean_room_agent.artifacts.context import Role
from clean_room_agent.artifacts.model_calls import CallWatcher, unwatched
from clean_room_agent.artifacts.names import new_task_id
from clean_room_agent.llm.model_config import ROLES
from clean_room_agent.workspace import Workspace

MOST_SLOTS = 4
"""Answers that are asked for at a time, of a server that gives more, or does not say how many."""


def measure_models(
    workspace: Workspace,
    settings: Settings,
    *,
    again: bool,
    tell: Callable[[ProbeProgress], None],
    note: Callable[[str], None],
    watch: CallWatcher = unwatched,
) -> dict[Role, Fit]:
    """Measure the models of the roles, or what is not measured yet; with `again`, all of it anew. What is measured is kept
    as soon as it is. A prompt that has a model of its own is answered by its role's model here.

    Raises:
        ModelError: the server lacks a model, or failed.
        ConfigError: a file of figures is broken, or no sandbox is possible where one is configured.
    """
    wiring.require_models(settings, wiring.live_transport)
    server = open_server(settings.models)
    by_tag: dict[str, Fit] = {}
    for tag in dict.fromkeys(map(settings.models.tag_of, ROLES)):
        digest = server.digest(tag) or ""
        known = None if again else read_fit(tag, digest)
        by_tag[tag] = known or Fit(version=VERSION, model=tag, digest=digest, began=utc_now())
    fits = {role: by_tag[settings.models.tag_of(role)] for role in ROLES}
    if is_whole(fits):
        return fits
    slots = min(server.slots(settings.models.tag_of("coding")) or MOST_SLOTS, MOST_SLOTS)
    models = {**settings.data["models"], "overrides": {}, "parallel": slots}
    settings = Settings(source=settings.source, data={**settings.data, "models": models})
    task_id = new_task_id()
    with (
        checking(settings.sandbox, note) as check,
        wiring.open_services(workspace, settings, task_id, watch=watch) as services,
    ):
        probe = Probe(services, fits, check, slots=slots, keep=write_fit, tell=tell)
        try:
            probe.measure()
        finally:
            services.session.archive(services.record)
    return fits

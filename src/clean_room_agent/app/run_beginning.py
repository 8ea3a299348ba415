"""Notes the beginning of a run in the record, and tells the user how a resumed run differs."""

import json

from clean_room_agent.app import wiring
from clean_room_agent.app.resumption import changes_since, given_to, recorded_config
from clean_room_agent.artifacts.event_kinds import EventKind
from clean_room_agent.artifacts.ids import short_id
from clean_room_agent.db.raw.events import EventRow, append_event
from clean_room_agent.orchestrator.events import Note, Observer
from clean_room_agent.orchestrator.task import PlanGiven
from clean_room_agent.version import VERSION


def note_beginning(
    services: wiring.Services, observer: Observer, given: PlanGiven, *, hint: str, flags: str
) -> PlanGiven:
    """Record what the run begins or continues with: what the user decided for it, which a resumed run has from the
    record.

    Raises:
        ConfigError: what is done was judged by another test command than is configured now.
    """
    task_id, run = services.session.task_id, services.resumed

    def note(kind: EventKind, detail: str) -> None:
        row = EventRow(task_id=task_id, kind=kind, detail=detail, timestamp=services.record.now())
        services.record.write(append_event, row)

    if run is None:
        if flags:
            note(EventKind.FLAGS, flags)
        return given
    settings = services.settings
    then = services.record.write(recorded_config, run)
    changed = changes_since(then, settings.data, source=settings.source)
    if run.program_version != VERSION:
        changed = (*changed, f"cra itself was {run.program_version} and is {VERSION}")
    if flags:
        note(EventKind.FLAGS, flags)
    note(EventKind.RESUMED, "; ".join(changed) or "with nothing configured otherwise")
    together = {"config": settings.data, "program_version": VERSION}
    note(EventKind.RESUMED_WITH, json.dumps(together, default=str, sort_keys=True))
    if hint:
        note(EventKind.HINT, hint)
    observer.notice(Note(text=f"going on with {short_id(task_id)}: what it has done stands"))
    for text in changed:
        observer.notice(Note(text=f"changed since, and counts from here on: {text}"))
    return services.record.write(given_to, task_id)

"""Who opens the curated database in a run, and who connects to the model server."""

import re
from collections.abc import Sequence

from tests.architecture.watched_run import Watched

CURATED = re.compile(r"/curated(_[0-9a-f-]+)?\.sqlite")
PORT = ("app.run_index:IndexCopy.", "retrieval.retriever:Retriever.")


def breach(stack: Sequence[str]) -> str:
    """The frame that must not open a curated database, because no port stands between it and the opening; "" if none.

    `stack` is outermost first. `execute` may not be in it at all; `orchestrator` only outside of the port.
    """
    port = max((place for place, frame in enumerate(stack) if frame.startswith(PORT)), default=-1)
    for place, frame in enumerate(stack):
        if frame.startswith("execute.") or (frame.startswith("orchestrator.") and place > port):
            return frame
    return ""


def test_the_wall_is_broken_by_whoever_opens_the_index_without_the_port() -> None:
    opening = ("db.connection:connect_file", "db.connection:_open_connection")
    above = ("cli.main:main", "orchestrator.solve:solve", "orchestrator.solve:run_step")
    port = ("orchestrator.run:RunContext.retrieve", "retrieval.retriever:Retriever.retrieve")
    assert breach(("cli.main:main", "app.run_wiring:run_parts", *opening)) == ""
    assert breach((*above, *port, *opening)) == ""
    assert breach((*above, *opening)) == "orchestrator.solve:solve"
    assert breach((*above, "execute.plan:adjust", *port, *opening)) == "execute.plan:adjust"
    assert breach((*above, *port, "orchestrator.tree:Tree.read", *opening)) == "orchestrator.tree:Tree.read"


def test_neither_execute_nor_orchestrator_opens_the_curated_database(watched: Watched) -> None:
    assert watched.returncode == 0, watched.stderr
    curated = [entry for entry in watched.databases() if CURATED.search(entry.target)]
    assert len(curated) >= 2, (
        "the two connections to the copy; the process that indexes opens the index itself"
    )
    assert {entry.thread for entry in curated} == {"MainThread"}, "or the stack would not show who asked"
    assert [entry.stack for entry in curated if breach(entry.stack)] == []
    assert not any(entry.stack[-1].startswith(("execute.", "orchestrator.")) for entry in watched.databases())


def test_every_database_is_opened_in_one_place(watched: Watched) -> None:
    files = [entry for entry in watched.databases() if entry.target != ":memory:"]
    assert {entry.stack[-1] for entry in files} == {"db.connection:_open_connection"}
    in_memory = {entry.stack[-1] for entry in watched.databases() if entry.target == ":memory:"}
    assert {place.partition(":")[0] for place in in_memory} <= {"db.migrations"}, "the model of a new one"


def test_every_connection_goes_to_this_machine_through_the_transport(watched: Watched) -> None:
    assert len(watched.connections()) > 5
    assert {entry.target.split(",")[0] for entry in watched.connections()} == {"('127.0.0.1'"}
    assert all(entry.modules[-1] == "llm.transports.connections" for entry in watched.connections())

"""Who opens the curated database in a run, and how far it is from the command to the model."""

import itertools
import re
from collections.abc import Sequence

from tests.architecture.watched_run import Watched

CURATED = re.compile(r"/curated(_[0-9a-f-]+)?\.sqlite")
PORT = ("app.run_index:IndexCopy.", "retrieval.retriever:Retriever.")
MAX_HOPS = 8
STATIONS = {
    "cli.main": "1 the command line",
    "cli.solve": "1 the command line",
    "app.solve": "2 the use case",
    "app.wiring": "2 the use case",
    "app.run_wiring": "2 the use case",
    "app.model_server": "2 the use case",
    "orchestrator.run": "3 the port that wiring built",
    "orchestrator.solve": "4 the order of passes",
    "orchestrator.": "5 a pass",
    "retrieval.retriever": "6 a context",
    "execute.": "6 an answer",
    "retrieval.": "7 a stage",
    "llm.": "8 a door",
}
"""Modules (or, with a dot at the end, packages) of the eight hops; the first entry that fits counts."""


def breach(stack: Sequence[str]) -> str:
    """The frame that must not open a curated database, because no port stands between it and the opening; "" if none.

    `stack` is outermost first. `execute` may not be in it at all; `orchestrator` only outside of the port.
    """
    port = max((place for place, frame in enumerate(stack) if frame.startswith(PORT)), default=-1)
    for place, frame in enumerate(stack):
        if frame.startswith("execute.") or (frame.startswith("orchestrator.") and place > port):
            return frame
    return ""


def station(module: str) -> str:
    """Where on the way from the command to the model a module stands; its own name where nobody gave it a place."""
    for name, place in STATIONS.items():
        if module == name or (name.endswith(".") and module.startswith(name)):
            return place
    return module


def hops(modules: Sequence[str]) -> tuple[str, ...]:
    """The stations of a stack in order; to come back to one is another hop."""
    return tuple(place for place, _ in itertools.groupby(map(station, modules)))


def test_the_wall_is_broken_by_whoever_opens_the_index_without_the_port() -> None:
    opening = ("db.connection:connect_file", "db.connection:_open")
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
    assert {entry.stack[-1] for entry in files} == {"db.connection:_open"}
    in_memory = {entry.stack[-1] for entry in watched.databases() if entry.target == ":memory:"}
    assert {place.partition(":")[0] for place in in_memory} <= {"db.migrations"}, "the model of a new one"


def test_every_connection_goes_to_this_machine_through_the_transport(watched: Watched) -> None:
    assert len(watched.connections()) > 5
    assert {entry.target.split(",")[0] for entry in watched.connections()} == {"('127.0.0.1'"}
    assert all(entry.modules[-1] == "llm.transports.connections" for entry in watched.connections())


def test_the_coder_is_asked_in_eight_hops(watched: Watched) -> None:
    asked = [
        entry
        for entry in watched.connections()
        if "execute.implement:implement" in entry.stack
        and "llm.transports.connections:ForwardGuard.refusal" not in entry.stack
    ]
    assert asked
    for entry in asked:
        assert entry.modules == (
            "cli.main",
            "cli.solve",
            "app.solve",
            "orchestrator.solve",
            "orchestrator.steps.rounds",
            "orchestrator.steps.attempt",
            "execute.implement",
            "llm.client",
            "llm.request_sender",
            "llm.transports.ollama",
            "llm.transports.http",
            "llm.transports.connections",
        )


def test_no_model_is_further_than_eight_hops_from_the_command(watched: Watched) -> None:
    ways = {hops(entry.modules) for entry in watched.connections() if entry.thread != "loading"}
    known = set(STATIONS.values())
    assert {place for way in ways for place in way} <= known
    assert max(map(len, ways)) <= MAX_HOPS
    assert all(way[0] == STATIONS["cli.main"] and way[-1] == STATIONS["llm."] for way in ways)


def test_the_thread_that_has_a_model_loaded_goes_straight_to_the_server(watched: Watched) -> None:
    ways = {hops(entry.modules) for entry in watched.connections() if entry.thread == "loading"}
    assert ways == {(STATIONS["app.wiring"], STATIONS["llm."])}


def test_a_hop_is_counted_again_when_the_way_comes_back_to_it() -> None:
    assert (
        len(hops(("cli.main", "cli.solve", "app.solve", "orchestrator.solve", "execute.plan", "execute.fit")))
        == 4
    )
    assert len(hops(("orchestrator.solve", "execute.plan", "orchestrator.solve", "execute.plan"))) == 4
    assert hops(("cli.main", "somewhere.new")) == (STATIONS["cli.main"], "somewhere.new")

"""A model server that breaks ends the run: what the user sees, and what the record holds."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import Struct, field
from testing.runs.solving import Project, Script, Told, serving
from testing.servers.ollama_script import Answer
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.execute.implement import IMPLEMENT

LONG = "abcdefgh " * 40


class Fault(Struct, frozen=True, kw_only=True):
    """What the server does to the coder's prompt, and what must come of it."""

    answers: Sequence[Answer]
    error: str
    said: str
    hint: str
    kept: str = ""
    """The start of the response that the record holds."""
    timeouts: dict[str, float] = field(default_factory=dict)


FAULTS = {
    "error in the stream": Fault(
        answers=[Answer(text=LONG, error="an error was encountered while running the model")],
        error="ServerFailed",
        said="failed in the middle of its answer: an error was encountered while running the model",
        hint="the server's own log says more",
        kept="abcdefgh abcdefgh",
    ),
    "silence in the answer": Fault(
        answers=[Answer(text=LONG, pause_seconds=60)],
        error="ServerTimeout",
        said="coder:3b at {url} fell silent for 0.4 s in the middle of its answer",
        hint="raise idle in [models.timeouts]",
        kept="abcdefgh",
        timeouts={"idle": 0.4},
    ),
}
"""One that an answer ends with, and one that is waited for; `tests/llm/test_faults.py` has all."""


def check_ended(told: Told, error: str) -> None:
    """The run ended by that error: the user reads it, the record holds it, and nothing else is left."""
    assert told.code == 3
    assert told.traces == {}
    assert told.branches == ()
    assert told.sessions == ()
    newest = told.recorded.calls[-1]
    assert newest.ending.finish == f"error:{error}"
    assert told.recorded.ending == ("failed", newest.ending.error)
    assert told.recorded.reading_of(newest) == ("", "")
    assert f"error: {newest.ending.error}\n" in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_broken_server_ends_the_run_with_its_words_and_a_remedy(till: Project, name: str) -> None:
    fault = FAULTS[name]
    with serving(till, Script(till.oracle, {IMPLEMENT.title: fault.answers})) as server:
        told = till.solve(server, models={"timeouts": fault.timeouts})
    check_ended(told, fault.error)
    assert f"error: {fault.said.format(url=server.base_url)}" in told.err or fault.said in told.err
    assert fault.hint in told.err.rsplit("->", 1)[1]
    assert told.recorded.run is not None
    assert f"then cra solve --resume {told.recorded.run.task_id[:8]}" in told.err
    asked = told.recorded.calls_of("implement")
    assert len(asked) == len(fault.answers)
    assert [call.site.attempt for call in asked] == list(range(len(asked)))
    assert asked[-1].answer.response.startswith(fault.kept)
    assert (asked[-1].answer.response == "") == (fault.kept == "")


def test_no_server_at_all_is_said_before_anything_runs(till: Project) -> None:
    with OllamaServer(till.oracle) as server:
        till.configure(server.base_url)
    told = till.cra("solve", till.task)
    assert (told.code, told.traces, told.branches) == (3, {}, ())
    assert f"error: no model server answers at {server.base_url}: " in told.err
    assert "-> start it (Ollama: `ollama serve`), or fix base_url in [models]" in told.err
    check_nothing_ran(told)


def check_nothing_ran(told: Told) -> None:
    assert "baseline" not in told.err
    assert (told.recorded.run, told.recorded.probes, told.recorded.calls) == (None, (), ())


@pytest.mark.parametrize(
    ("command", "models"),
    [
        ("solve", {"escalation": {"coding": ["coder:7b"]}}),
        ("plan", {"overrides": {"part_plan": "coder:7b"}}),
    ],
    ids=["escalation", "override"],
)
def test_a_model_that_is_missing_is_said_before_anything_runs(
    till: Project, command: str, models: dict[str, Any]
) -> None:
    with serving(till) as server:
        till.configure(server.base_url, models=models)
        told = till.cra(command, till.task)
    assert (told.code, told.traces, told.branches) == (3, {}, ())
    assert f"error: {server.base_url} does not have the model 'coder:7b'" in told.err
    assert (
        "-> run `ollama pull coder:7b`, or name another one in [models]; it has: coder:3b, thinker:4b"
        in told.err
    )
    check_nothing_ran(told)

"""A whole run against servers of OpenAI's API, and the same run again without one."""

import json
import re

import pytest
from testing.runs.solving import Project, Script
from testing.servers.openai_server import Kind, OpenAiServer

from clean_room_agent.app.discovery import NEEDED_BY


@pytest.mark.parametrize("kind", ["vllm", "llama-cpp-python"])
def test_a_task_is_solved_and_the_run_replayed(kind: Kind, till: Project) -> None:
    with OpenAiServer(Script(till.oracle), kind=kind, window=16_384) as server:
        told = till.solve(server, "--json", models={"provider": "openai", **NEEDED_BY.get(kind, {})})
        schemas = [call.schema for call in server.calls]
    assert told.code == 0, told.err
    done = json.loads(told.out)
    assert (done["status"], told.traces) == ("complete", {})
    assert {call.model.provider for call in told.recorded.calls} == {"openai"}
    assert any(schemas)
    assert any(call.cost.prompt_tokens for call in told.recorded.calls)
    assert till.cra("replay", done["task_id"]).code == 0
    shown = till.cra("show", done["task_id"], "--budget")
    assert (shown.code, "16,384" in shown.out) == (0, True)


def test_what_the_servers_cache_spared_is_shown_with_the_cost(till: Project) -> None:
    with OpenAiServer(Script(till.oracle), window=16_384, spared="timings") as server:
        assert till.solve(server, models={"provider": "openai", "parallel": 1}).code == 0
    assert re.search(r"cost .* tokens, \d+% of the prompts' in the server's cache", till.cra("show", "@").out)
    assert re.search(r"thinker:4b, \d+% cached", till.cra("stats").out)
    sums = json.loads(till.cra("stats", "--json").out)["prompts"]
    assert all(each["cached_tokens"] <= each["told_tokens"] == each["prompt_tokens"] for each in sums)
    assert any(each["cached_tokens"] for each in sums)

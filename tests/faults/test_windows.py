"""Prompts that do not fit: refused by the server, cut by it in silence, or held back before they are sent."""

import json
import re
from pathlib import Path

import pytest
from testing import repositories
from testing.runs.solving import MENDED_MONEY, MONEY, PROBE, TILL, Project, make_project, serving
from testing.servers.ollama_script import Answer, ChatCall, Overflow
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import PART_PLAN


def probes_sent(server: OllamaServer) -> int:
    return sum(request["messages"][-1]["content"].startswith(PROBE) for request in server.requests)


def test_a_server_that_refuses_long_prompts_is_asked_once_per_model_and_again_by_a_check(
    till: Project,
) -> None:
    with serving(till, overflow="plain") as server:
        told = till.solve(server)
        assert (told.code, told.traces) == (0, {})
        assert [probe.model.tag for probe in told.recorded.probes] == ["thinker:4b", "coder:3b"]
        assert {probe.ending.finish for probe in told.recorded.probes} == {"error:WindowExceeded"}
        later = till.solve(server)
        assert (later.code, later.recorded.probes) == (0, ())
        before = probes_sent(server)
        till.cra("check")
        assert probes_sent(server) == before + 2


def test_a_server_that_cuts_in_silence_is_refused_before_it_reads_a_prompt(till: Project) -> None:
    with serving(till, overflow="silent") as server:
        told = till.solve(server)
    assert (told.code, told.traces, told.branches, told.sessions) == (3, {}, (), ())
    assert "longer than thinker:4b's window of 16384 tokens: it silently truncates long prompts" in told.err
    assert "-> update the server (Ollama from 0.12.4 on refuses them;" in told.err
    assert "or set allow_truncating_server = true" in told.err
    assert told.recorded.calls == ()
    assert [probe.ending.finish for probe in told.recorded.probes] in (["stop"], ["length"])
    assert told.recorded.ending[0] == "failed"
    assert "it silently truncates long prompts" in told.recorded.ending[1]


def test_a_cut_prompt_ends_the_run_even_where_a_cutting_server_is_allowed(till: Project) -> None:
    with serving(till, overflow="silent", largest_window=512) as server:
        told = till.solve(server, models={"allow_truncating_server": True})
    assert (told.code, told.traces, told.branches) == (3, {}, ())
    assert "it truncated the prompt" in told.err
    assert told.recorded.calls[-1].ending.finish == "error:TruncatingServer"


@pytest.mark.parametrize("form", ["plain", "json"])
def test_a_server_with_a_smaller_window_than_configured_is_named(till: Project, form: Overflow) -> None:
    with serving(till, overflow=form, largest_window=700) as server:
        told = till.solve(server)
    assert (told.code, told.traces, told.branches, told.sessions) == (3, {}, (), ())
    assert told.recorded.ending[0] == "failed"
    if form == "json":  # it names its window, so the probe tells
        assert "the server runs thinker:4b with a window of 700 tokens, not the configured 16384" in told.err
        assert "-> set context_window = 700 or less for this model in [budget]" in told.err
        assert told.recorded.calls == ()
    else:
        assert told.recorded.calls[-1].ending.finish == "error:WindowExceeded"
        assert "context_window" in told.err.rsplit("->", 1)[1]


def long_code(lines: int) -> str:
    """The share, and lines that a reader has to see and nobody needs."""
    filler = "".join(f"    part_{n} = {n} * cents + {n + 1} - people % {n + 2}\n" for n in range(lines))
    return f"    share = cents // people\n{filler}"


def test_a_target_that_is_too_large_to_show_is_named_and_an_attempt_without_it_says_so(
    tmp_path: Path,
) -> None:
    """And after a cut answer the next may be longer, and sees the code that the step needs."""
    other = "\n\ndef other(cents: int, people: int) -> int:\n" + long_code(500) + "    return share\n"
    files = {**TILL, "till/money.py": MONEY + other}
    project = make_project(tmp_path, files, {"till/money.py": MENDED_MONEY + other})

    def names_both(_: ChatCall, right: str) -> str:
        plan = json.loads(right)
        return json.dumps({**plan, "steps": [{**plan["steps"][0], "symbols": ["split", "other"]}]})

    cut = Answer(text="<edit file=", done_reason="length")
    told = project.solve_scripted(
        {PART_PLAN.title: [names_both], IMPLEMENT.title: [cut]},
        budget={"context_window": 8192, "reserved_tokens": 2048},
    )
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.outcomes == ["truncated", "applied_and_passed"]
    first, second = told.recorded.calls_of("implement")
    unseen = re.compile(r"^Not shown, too large: (till/money.py::other \(lines \d+-526\))$", re.MULTILINE)
    (before,), (named,) = [unseen.findall(call.request.prompt) for call in (first, second)]
    assert [row.detail for row in told.recorded.events if row.kind == "target_not_shown"] == [before, named]
    assert f"the step changes what is too large for its prompt: {before}" in told.err
    assert f"; unchanged, too large to show: {named}" in told.err
    *_, implemented = [row for row in told.recorded.passes if ":impl:" in row.task_id]
    assert (implemented.detail or "").endswith(f"; unchanged, too large to show: {named}")
    assert "part_180" not in first.request.prompt
    assert "def split" in second.request.prompt
    bounds = [json.loads(call.request.request_body)["options"]["num_predict"] for call in (first, second)]
    assert bounds[1] >= 8192 // 3


@pytest.mark.parametrize("more", [120, 129])
def test_a_file_that_would_crowd_out_the_plan_is_narrowed_to_what_the_task_needs(
    till: Project, more: int
) -> None:
    path = "till/money.py"
    others = "".join(
        f"\n\ndef round_by_{number}(cents: int) -> int:\n    return cents // {number + 1} * {number + 1}\n"
        for number in range(more)
    )
    repositories.commit(till.top, {path: MONEY + others}, "More ways to round")
    with serving(till) as server:
        told = till.solve(server, budget={"context_window": 6144, "reserved_tokens": 1400})
    assert (told.code, told.traces) == (0, {}), told.err

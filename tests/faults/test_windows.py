"""Prompts that do not fit: refused by the server, or cut by it in silence."""

from testing.runs.solving import Project, serving


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


def test_a_server_with_a_smaller_window_than_configured_is_named(till: Project) -> None:
    with serving(till, overflow="json", largest_window=700) as server:
        told = till.solve(server)
    assert (told.code, told.traces, told.branches, told.sessions) == (3, {}, (), ())
    assert told.recorded.ending[0] == "failed"
    assert "the server runs thinker:4b with a window of 700 tokens, not the configured 16384" in told.err
    assert "-> set context_window = 700 or less for this model in [budget]" in told.err
    assert told.recorded.calls == ()

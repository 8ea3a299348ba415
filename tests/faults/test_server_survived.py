"""What a real model server does wrong and a run survives: it is solved, and the record says what happened."""

import pytest
from testing.runs.solving import Project, Script, Spoil, Told, serving
from testing.servers.ollama_script import Answer, ChatCall, busy

from clean_room_agent.app.prompts import PROMPTS

TITLES = {prompt.name: prompt.title for prompt in PROMPTS}


def check_solved(told: Told) -> None:
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.ending == ("complete", "")
    assert "complete: the tests pass" in told.out
    assert len(told.branches) == 1


def cut(call: ChatCall, right: str) -> Answer:
    """The first half of the right answer, ended for length."""
    return Answer(text=right[: len(right) // 2], done_reason="length")


EVERY: dict[str, Spoil] = {
    "lines split in the middle": lambda _, right: Answer(text=right, chunk_bytes=11),
    "characters split in the middle": lambda _, right: Answer(text=right, chunk_bytes=1, piece_chars=40),
    "counts absent because they are 0": lambda _, right: Answer(text=right, cached=True),
    "thinking text, though none was asked for": lambda _, right: Answer(text=right, thinking="Hm. <edit> {"),
    "a slow load within the limits": lambda _, right: Answer(text=right, load_seconds=0.05),
    "pauses within the limits": lambda _, right: Answer(text=right, pause_seconds=0.01, piece_chars=60),
    "log probabilities of nothing": lambda _, right: Answer(text=right, likely=((" ", 1.0),)),
}


@pytest.mark.parametrize("name", sorted(EVERY))
def test_a_habit_of_the_server_changes_no_answer(till: Project, name: str) -> None:
    with serving(till, Script(lambda call: text_with_accents(till, call), every=EVERY[name])) as server:
        told = till.solve(server)
    check_solved(told)
    assert {call.ending.finish for call in told.recorded.calls} == {"stop"}
    assert {reading.reading for reading in told.recorded.readings} == {"parsed"}
    (coded,) = told.recorded.calls_of("implement")
    assert coded.answer.response.startswith("Voilà, größer — 変更:\n<edit")
    assert (coded.cost.prompt_tokens is None) == ("absent" in name)
    assert coded.answer.thinking == ("Hm. <edit> {" if "thinking" in name else "")


def text_with_accents(till: Project, call: ChatCall) -> str:
    """The oracle's answer; before its edits stand words whose letters take several bytes."""
    right = till.oracle(call)
    assert isinstance(right, str)
    return f"Voilà, größer — 変更:\n{right}" if call.title == TITLES["implement"] else right


RETRIED = {
    "busy": (busy(), "error:ServerBusy"),
    "broken before the headers": (Answer(close="before_headers"), "error:ServerUnreachable"),
    "broken before the first token": (Answer(close="before_token"), "error:ServerUnreachable"),
}


@pytest.mark.parametrize("name", sorted(RETRIED))
def test_a_request_that_gave_no_token_is_sent_again_and_both_are_recorded(till: Project, name: str) -> None:
    answer, finish = RETRIED[name]
    told = till.solve_scripted({TITLES["implement"]: [answer]})
    check_solved(told)
    first, second = told.recorded.calls_of("implement")
    assert (first.ending.finish, first.site.attempt, second.ending.finish, second.site.attempt) == (
        finish,
        0,
        "stop",
        1,
    )
    assert first.request.prompt == second.request.prompt
    assert told.recorded.outcomes == ["applied_and_passed"]
    assert told.recorded.attempts[0].call_id == second.id


JSON_PROMPTS = ["task_analysis", "scope_batch", "meta_plan", "part_plan"]
REPAIRED: dict[str, tuple[Spoil, str]] = {
    "cut in the middle": (cut, "the answer was cut off after"),
    "prose": (lambda *_: "I would look at the money module.", "no JSON"),
    "another shape": (lambda *_: '{"colour": "red"}', ""),
    "nothing": (lambda *_: "", ""),
}


@pytest.mark.parametrize(
    ("name", "fault"),
    [(name, "cut in the middle") for name in JSON_PROMPTS]
    + [("meta_plan", fault) for fault in sorted(REPAIRED)[1:]],
)
def test_an_unreadable_answer_is_repaired_once(till: Project, name: str, fault: str) -> None:
    spoil, said = REPAIRED[fault]
    told = till.solve_scripted({TITLES[name]: [spoil]})
    check_solved(told)
    first, second = told.recorded.calls_of(name)[:2]
    reading, why = told.recorded.reading_of(first)
    assert reading == "unreadable"
    assert said in why
    assert told.recorded.reading_of(second) == ("repaired", "")
    assert second.request.prompt.startswith(first.request.prompt)
    assert f"What was wrong: {why}" in second.request.prompt
    assert first.ending.finish == ("length" if spoil is cut else "stop")


@pytest.mark.parametrize("name", ["task_analysis", "scope_batch"])
def test_retrieval_goes_on_without_an_answer_that_stays_unreadable(till: Project, name: str) -> None:
    told = till.solve_scripted({TITLES[name]: ["No.", "Still no."]})
    check_solved(told)
    assert [told.recorded.reading_of(call)[0] for call in told.recorded.calls_of(name)[:2]] == [
        "unreadable"
    ] * 2


@pytest.mark.parametrize(
    ("name", "words"), [("meta_plan", "no valid plan: "), ("part_plan", "part p1: no valid plan: ")]
)
def test_without_a_fallback_a_plan_that_stays_unreadable_fails_the_run(
    till: Project, name: str, words: str
) -> None:
    told = till.solve_scripted({TITLES[name]: ["No plan."] * 9}, orchestrator={"plan_fallback": False})
    assert (told.code, told.traces, told.branches, told.sessions) == (1, {}, (), ())
    status, reason = told.recorded.ending
    assert (status, reason[: len(words)]) == ("failed", words)
    assert reason in told.out
    assert {told.recorded.reading_of(call)[0] for call in told.recorded.calls_of(name)} == {"unreadable"}
    assert any(event.kind == "plan_fault" for event in told.recorded.events)
    assert told.recorded.attempts == ()


@pytest.mark.parametrize(
    ("name", "pass_id", "instead"),
    [
        ("meta_plan", "meta_plan", "one part in its place: till/money.py"),
        ("part_plan", "part_plan:p1", "one step in its place: till/money.py"),
    ],
)
def test_a_plan_that_stays_unreadable_is_done_without(
    till: Project, name: str, pass_id: str, instead: str
) -> None:
    told = till.solve_scripted({TITLES[name]: ["No plan."] * 9})
    check_solved(told)
    said = f"no valid plan: the answer holds no JSON object; {instead}"
    assert said in told.err
    assert f"plan    {pass_id}: {said}" in told.out
    assert told.recorded.actions == ["fallback"]
    assert told.recorded.run is not None
    shown = till.cra("show", told.recorded.run.task_id)
    assert said in shown.out


def test_an_edit_that_was_cut_is_a_truncated_attempt_and_the_next_one_is_told(till: Project) -> None:
    told = till.solve_scripted({TITLES["implement"]: [cut]})
    check_solved(told)
    assert told.recorded.outcomes == ["truncated", "applied_and_passed"]
    assert told.recorded.actions == ["retry"]
    first, second = told.recorded.calls_of("implement")
    assert first.ending.finish == "length"
    assert told.recorded.reading_of(first)[0] == "unreadable"
    assert "## Attempt 1 failed; the code is again as shown above" in second.request.prompt
    assert (
        "Result: truncated. the answer was cut off before its end; nothing was applied"
        in second.request.prompt
    )
    assert not told.recorded.attempts[0].patch_applied
    assert "truncated: the answer was cut off before its end; nothing was applied" in told.err


def test_no_model_is_loaded_twice(till: Project) -> None:
    with serving(
        till, Script(till.oracle, {TITLES["implement"]: [cut], TITLES["meta_plan"]: ["no"]})
    ) as server:
        check_solved(till.solve(server))
        assert (server.reloads, sorted(server.state.loaded)) == (0, ["coder:3b", "thinker:4b"])


@pytest.mark.parametrize("parallel", [1, 2, 3])
def test_no_more_requests_are_under_way_than_configured(till: Project, parallel: int) -> None:
    judged = TITLES["scope_judgment"]
    script = Script(
        till.oracle,
        every=lambda call, right: Answer(text=right, peers=parallel if call.title == judged else 0),
    )
    with serving(till, script) as server:
        told = till.solve(
            server, models={"parallel": parallel}, judgments={"route": "each", "each_share": 0.0}
        )
        assert server.peak == parallel
    check_solved(told)
    assert len(told.recorded.calls_of("scope_judgment")) >= parallel

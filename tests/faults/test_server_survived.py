"""What a real model server does wrong and a run survives: it is solved, and the record says what happened."""

import pytest
from testing.runs.solving import Project, Script, Spoil, Told, make_project, serving
from testing.servers.ollama_script import Answer, ChatCall

from clean_room_agent.app.prompts import PROMPTS

TITLES = {prompt.name: prompt.title for prompt in PROMPTS}


def check_solved(told: Told) -> None:
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.ending == ("complete", "")
    assert "complete: shown by " in told.out
    assert len(told.branches) == 1


def cut(call: ChatCall, right: str) -> Answer:
    """The first half of the right answer, ended for length."""
    return Answer(text=right[: len(right) // 2], done_reason="length")


def every_habit(_: ChatCall, right: str) -> Answer:
    """Lines and characters are split in their middle, counts are absent because they are 0, there is thinking text that nobody
    asked for, a load and pauses within the limits, and log probabilities of nothing.
    """
    return Answer(
        text=right,
        chunk_bytes=29,
        piece_chars=40,
        cached=True,
        thinking="Hm. <edit> {",
        load_seconds=0.05,
        pause_seconds=0.001,
        likely=((" ", 1.0),),
    )


def test_habits_of_a_server_change_no_answer(till: Project) -> None:
    """One by one they are in `tests/llm/test_faults.py`."""
    with serving(till, Script(lambda call: text_with_accents(till, call), every=every_habit)) as server:
        told = till.solve(server)
        assert (server.reloads, sorted(server.state.loaded)) == (0, ["coder:3b", "thinker:4b"])
    check_solved(told)
    assert {call.ending.finish for call in told.recorded.calls} == {"stop"}
    assert {reading.reading for reading in told.recorded.readings} == {"parsed"}
    (coded,) = told.recorded.calls_of("implement")
    assert coded.answer.response.startswith("Voilà, größer — 変更:\n<edit")
    assert coded.cost.prompt_tokens is None
    assert coded.answer.thinking == "Hm. <edit> {"


def text_with_accents(till: Project, call: ChatCall) -> str:
    """The oracle's answer; before its edits stand words whose letters take several bytes."""
    right = till.oracle(call)
    assert isinstance(right, str)
    return f"Voilà, größer — 変更:\n{right}" if call.title == TITLES["implement"] else right


UNREADABLE: dict[str, tuple[Spoil, str]] = {
    "task_analysis": (cut, "the answer was cut off after"),
    "scope_batch": (lambda *_: "I would look at the money module.", "no JSON"),
    "meta_plan": (lambda *_: '{"colour": "red"}', ""),
    "part_plan": (lambda *_: "", ""),
}
"""By prompt, an answer that cannot be read, and words of why."""


@pytest.fixture(scope="module")
def stumbled(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """A run in which each prompt goes wrong once: edits before their first token, the others by what cannot be read."""
    spoiled: dict[str, list[Answer | Spoil]] = {
        TITLES[name]: [spoil] for name, (spoil, _) in UNREADABLE.items()
    }
    spoiled[TITLES["implement"]] = [Answer(close="before_token")]
    told = make_project(tmp_path_factory.mktemp("stumbled")).solve_scripted(spoiled)
    check_solved(told)
    return told


def test_a_request_that_gave_no_token_is_sent_again_and_both_are_recorded(stumbled: Told) -> None:
    told = stumbled
    first, second = told.recorded.calls_of("implement")
    assert (first.ending.finish, first.site.attempt) == ("error:ServerUnreachable", 0)
    assert (second.ending.finish, second.site.attempt) == ("stop", 1)
    assert first.request.prompt == second.request.prompt
    assert told.recorded.outcomes == ["applied_and_passed"]
    assert told.recorded.attempts[0].call_id == second.id


def test_unreadable_answers_are_repaired_once(stumbled: Told) -> None:
    told = stumbled
    for name, (spoil, said) in UNREADABLE.items():
        first, second = told.recorded.calls_of(name)[:2]
        reading, why = told.recorded.reading_of(first)
        assert reading == "unreadable"
        assert said in why
        assert told.recorded.reading_of(second) == ("repaired", "")
        assert second.request.prompt.startswith(first.request.prompt)
        assert f"What was wrong: {why}" in second.request.prompt
        assert first.ending.finish == ("length" if spoil is cut else "stop")

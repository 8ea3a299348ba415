from rich.console import Console, RenderableType
from tests.report.conftest import LargeRun

from clean_room_agent.report.call_texts import attempt_diffs, call_texts, render_prompts, render_responses
from clean_room_agent.report.trace import choose


def shown(renderable: RenderableType) -> str:
    console = Console(width=120)
    with console.capture() as told:
        console.print(renderable)
    return told.get()


def test_the_texts_of_a_call_are_shown_as_they_were(large: LargeRun) -> None:
    chosen = choose(large.trace, f"call:{large.all.calls[-1].id}")
    (text,) = call_texts(large.conn, chosen)
    told = shown(render_prompts((text,)))
    assert f"=== call {text.call_id}" in told
    assert text.prompt.split("\n")[0] in told
    assert "--- answer (stop, parsed)" in shown(render_responses((text,)))


def test_no_call_is_said_so() -> None:
    assert shown(render_prompts(())) == shown(render_responses(())) == "no call is recorded here\n"


def test_of_the_attempts_those_that_stand_can_be_asked_for_alone(large: LargeRun) -> None:
    every = attempt_diffs(large.all, accepted_only=False)
    standing = attempt_diffs(large.all, accepted_only=True)
    assert {diff.stands for diff in every} == {True, False}
    assert standing == tuple(diff for diff in every if diff.stands)

from tests.retrieval.world import context_request

from clean_room_agent.artifacts.context import RefinementRequest
from clean_room_agent.artifacts.evidence import Evidence, FailingTest
from clean_room_agent.evidence_text import LEAST_CHARACTERS, describe_evidence
from clean_room_agent.retrieval.judgment_header import question_text


def failing(name: str, **fields: str) -> FailingTest:
    return FailingTest(name=name, **fields)  # type: ignore[arg-type]


def test_a_task_alone_is_all_there_is() -> None:
    assert question_text(context_request(task=" Fix it\n", focus="Fix it")) == "## Task\nFix it"


def test_focus_evidence_and_what_was_missed_follow_under_their_headings() -> None:
    request = context_request(
        task="Fix it", focus="the cart", evidence=Evidence(tests=(failing("t.py::test_a"),))
    )
    missing = RefinementRequest(reason="no such name", error_signatures=("NameError: x", ""))
    assert question_text(request, missing) == (
        "## Task\nFix it\n\n## The part of it to do now\nthe cart\n\n"
        "## What the tests show now\nFailing test: t.py::test_a\n\n"
        "## What an earlier attempt missed\nno such name\nNameError: x"
    )


def test_evidence_reads_as_in_the_prompts_of_plans_and_steps_and_stays_short() -> None:
    short, long = (
        Evidence(tests=(failing("a", statement="assert x == y", expected="1", actual="2" * size),))
        for size in (1, 9_000)
    )
    assert question_text(context_request(task="Fix it", evidence=short)).endswith(
        f"\n\n## What the tests show now\n{describe_evidence(short)}"
    )
    assert len(question_text(context_request(task="Fix it", evidence=long))) < LEAST_CHARACTERS + 100


def test_a_name_with_a_line_break_cannot_add_a_line() -> None:
    asked = question_text(context_request(task="Fix it", evidence=Evidence(tests=(failing("a\n## Task"),))))
    assert asked.endswith('\nFailing test: "a\\n## Task"')

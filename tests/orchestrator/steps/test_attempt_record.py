from clean_room_agent.artifacts.outcomes import AttemptOutcome
from clean_room_agent.json_values import from_plain, to_plain
from clean_room_agent.orchestrator.steps.attempt_record import CheckedAttempt, upgrade_attempt

ANSWER = {
    "step": {"success": False, "edits": [], "raw_response": "text"},
    "truncated": False,
    "bad": None,
    "dropped": [],
    "call_id": 7,
    "prompt_tokens": 1,
    "completion_tokens": 2,
    "latency_ms": 3,
    "attempts": 1,
    "endless": False,
}
FLAT = {
    "tried": {
        "outcome": "tests_failed",
        "detail": "1 fails newly: t.py::a",
        "answer": ANSWER,
        "fingerprint": "f" * 8,
        "commit": "c0ffee",
        "diff": "the diff",
        "result": None,
        "tests": {"command": "pytest", "returncode": 1, "outcomes": {"t.py::a": "failed"}},
        "verdict": {"passed": False, "reason": "1 fails newly", "newly_failing": ["t.py::a"]},
        "missing": None,
        "feedback": "mind the rest",
        "untouched": ["modify b.py"],
        "unfinished": False,
    },
    "lint": "E501",
    "types": None,
}
"""As earlier versions kept an attempt."""


def test_an_attempt_that_an_earlier_version_kept_is_read() -> None:
    read = from_plain(upgrade_attempt(FLAT), CheckedAttempt)
    attempt = read.attempt
    assert read.lint == "E501"
    assert (attempt.outcome, attempt.feedback) == (AttemptOutcome.TESTS_FAILED, "mind the rest")
    assert (attempt.change.commit, attempt.change.untouched) == ("c0ffee", ("modify b.py",))
    assert attempt.judgment is not None
    assert attempt.judgment.tests.red() == {"t.py::a"}
    assert attempt.judgment.verdict.newly_failing == ("t.py::a",)


def test_an_untested_attempt_of_an_earlier_version_has_no_judgment() -> None:
    untested = {**FLAT["tried"], "outcome": "refused", "commit": "", "tests": None, "verdict": None}  # type: ignore[dict-item]
    read = from_plain(upgrade_attempt({"tried": untested}), CheckedAttempt)
    assert read.attempt.judgment is None
    assert read.attempt.answer.call_id == 7


def test_what_is_kept_today_comes_back() -> None:
    read = from_plain(upgrade_attempt(FLAT), CheckedAttempt)
    plain = to_plain(read)
    assert from_plain(upgrade_attempt(plain), CheckedAttempt) == read


def test_the_tests_that_an_earlier_version_kept_in_an_attempt_of_today_are_read() -> None:
    today = to_plain(from_plain(upgrade_attempt(FLAT), CheckedAttempt))
    tests = {"command": "pytest", "returncode": 1, "outcomes": {"t.py::a": "failed"}}
    older = {
        **today,
        "attempt": {**today["attempt"], "judgment": {**today["attempt"]["judgment"], "tests": tests}},
    }
    judgment = from_plain(upgrade_attempt(older), CheckedAttempt).attempt.judgment
    assert judgment is not None
    assert judgment.tests.red() == {"t.py::a"}

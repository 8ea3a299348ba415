from typing import Any, get_args

import pytest
from msgspec.structs import replace

from clean_room_agent.artifacts.context import RefinementRequest
from clean_room_agent.artifacts.outcomes import AttemptOutcome, Drawn
from clean_room_agent.execute.implement import WHOLE_SYMBOLS
from clean_room_agent.orchestrator.recovery import (
    GUESS,
    RULES,
    Advice,
    AttemptSeen,
    Situation,
    advised_by_rules,
    decide,
    doctor_to_ask,
    likeness,
    normalised,
)
from clean_room_agent.orchestrator.run_config import Category, RecoveryConfig, Rule

CONFIG = RecoveryConfig()
ALWAYS = RecoveryConfig(doctor="always", high_risk=())
TOLD = Advice(decision="retry_with_fix", by="model")
STRONG = Advice(decision="retry_with_fix", by="model big", strong=True)
INFRASTRUCTURE = Advice(decision="retry_with_fix", by=RULES, infrastructure=True)
MISSING = RefinementRequest(reason="r", missing_files=("a.py",))
ERROR = "AssertionError: Lists differ: [7, 1, 1] != [3, 3, 3]"
REDRAW = RecoveryConfig(redraw=2)


def seen(
    outcome: AttemptOutcome, fingerprint: str = "", missing: RefinementRequest | None = None
) -> AttemptSeen:
    return AttemptSeen(outcome=outcome, fingerprint=fingerprint, missing=missing)


CUT = replace(seen(AttemptOutcome.TRUNCATED), category="truncated")
CUT_AGAIN = replace(CUT, drawn=Drawn(more_room=True))
ENDLESS = replace(seen(AttemptOutcome.UNREADABLE, "x"), category="endless")
LACKING = seen(AttemptOutcome.INSUFFICIENT_CONTEXT, "x", MISSING)
FAILED = seen(AttemptOutcome.TESTS_FAILED, "x")
SAID = replace(FAILED, message=ERROR)
SAID_OTHERWISE = replace(SAID, fingerprint="y")
UNDEFINED = replace(FAILED, category="name", message="NameError: name 'rest' is not defined")
UNDEFINED_OTHERWISE = replace(UNDEFINED, fingerprint="y")
BROKEN = replace(FAILED, category="infrastructure", outcome=AttemptOutcome.INFRASTRUCTURE)
RED = replace(SAID, red=("tests/test_a.py::test_one: lists differ",))
RED_AGAIN = replace(RED, fingerprint="y")


def at(*attempts: AttemptSeen, **facts: Any) -> Situation:
    fields: dict[str, Any] = {"max_attempts": 3, "config": CONFIG, **facts}
    return Situation(attempts=attempts, **fields)


def kind(*attempts: AttemptSeen, **facts: Any) -> str:
    return decide(at(*attempts, **facts)).kind


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        (at(LACKING, refinements_left=1), "refine"),
        (at(LACKING, refinements_left=0), "retry"),
        (at(LACKING, max_attempts=1, refinements_left=1), "skip"),
        (at(seen(AttemptOutcome.INSUFFICIENT_CONTEXT), refinements_left=1), "retry"),
        (at(FAILED), "retry"),
        (at(FAILED, max_attempts=1), "skip"),
        (at(FAILED, budget_spent="9 calls"), "stop"),
        (at(CUT, divisible=True), "retry"),
        (at(CUT, CUT_AGAIN, divisible=True), "reduce_scope"),
        (at(CUT, CUT_AGAIN), "retry"),
        (at(FAILED, divisible=True, budget_share=0.95), "reduce_scope"),
        (at(FAILED, budget_share=0.95), "retry"),
        (at(RED, RED_AGAIN, unshown=MISSING, refinements_left=1, replans_left=1), "refine"),
        (at(RED, RED_AGAIN, unshown=MISSING, refinements_left=1, max_attempts=2), "skip"),
        (at(RED, RED_AGAIN, unshown=MISSING, replans_left=0), "change_strategy"),
        (at(RED, RED_AGAIN, refinements_left=1), "change_strategy"),
        (at(RED, SAID_OTHERWISE, unshown=MISSING, refinements_left=1), "retry"),
        (at(SAID, SAID_OTHERWISE, replans_left=1), "replan"),
        (at(SAID, SAID_OTHERWISE, replans_left=0), "retry"),
        (at(SAID, SAID_OTHERWISE, replans_left=1, kept=True), "retry"),
        (at(UNDEFINED), "retry"),
        (at(UNDEFINED, UNDEFINED_OTHERWISE), "diagnose"),
        (at(BROKEN), "diagnose"),
        (at(FAILED, SAID_OTHERWISE, strong_doctor="big"), "diagnose"),
        (at(FAILED, SAID_OTHERWISE, max_attempts=2, strong_doctor="big"), "skip"),
        (at(FAILED, FAILED), "change_strategy"),
        (at(ENDLESS, replans_left=1, depended_on=True), "skip"),
        (at(ENDLESS, stronger=("big",)), "escalate"),
        (at(FAILED, max_attempts=1, stronger=("big",), replans_left=1), "escalate"),
        (at(FAILED, max_attempts=1, replans_left=1), "replan"),
        (at(FAILED, max_attempts=1, depended_on=True), "needs_human"),
        (at(FAILED, max_attempts=1, depended_on=True, kept=True), "skip"),
    ],
)
def test_the_first_row_that_matches_decides(situation: Situation, expected: str) -> None:
    assert decide(situation).kind == expected


@pytest.mark.parametrize(
    ("advice", "step", "expected"),
    [
        (Advice(decision="retry_with_fix", by="model", hint="h"), {}, "retry"),
        (Advice(decision="replan", by="model"), {"replans_left": 1}, "replan"),
        (Advice(decision="replan", by="model"), {}, "retry"),
        (
            Advice(decision="retry_with_fix", by="model", category="schema_mismatch"),
            {"replans_left": 1},
            "replan",
        ),
        (Advice(decision="skip_step", by="model"), {}, "skip"),
        (Advice(decision="skip_step", by="model"), {"depended_on": True}, "retry"),
        (Advice(decision="fatal_error", by="model", hint="h"), {}, "needs_human"),
        (Advice(decision="rollback_provider", by="model"), {"stronger": ("big",)}, "escalate"),
        (Advice(decision="rollback_provider", by="model"), {}, "retry"),
    ],
)
def test_what_the_doctor_says_is_done_where_it_can_be(
    advice: Advice, step: dict[str, Any], expected: str
) -> None:
    action = decide(at(FAILED, SAID_OTHERWISE, advice=advice, strong_doctor="big", **step))
    assert action.kind == expected
    assert (action.hint or action.question).removeprefix(GUESS) == (
        advice.hint if expected in {"retry", "needs_human"} else ""
    )


@pytest.mark.parametrize(("by", "hint"), [(RULES, "h"), ("model", f"{GUESS}h"), ("model big", f"{GUESS}h")])
def test_what_a_model_advises_is_marked_as_a_guess(by: str, hint: str) -> None:
    advice = Advice(decision="retry_with_fix", by=by, hint="h")
    assert decide(at(FAILED, SAID_OTHERWISE, advice=advice)).hint == hint


def test_a_rule_that_is_switched_off_never_decides() -> None:
    situations = {
        "refine": (at(LACKING, refinements_left=1), at(RED, RED_AGAIN, unshown=MISSING, refinements_left=1)),
        "reduce_scope": (at(CUT, CUT_AGAIN, divisible=True),),
        "replan": (at(SAID, SAID_OTHERWISE, replans_left=1), at(FAILED, max_attempts=1, replans_left=1)),
        "diagnose": (at(UNDEFINED, UNDEFINED_OTHERWISE),),
        "retry": (at(FAILED), at(FAILED, FAILED), at(SAID, config=REDRAW)),
        "escalate": (at(FAILED, max_attempts=1, stronger=("big",)),),
    }
    assert tuple(situations) == get_args(Rule)
    for name, several in situations.items():
        left: tuple[Rule, ...] = tuple(rule for rule in get_args(Rule) if rule != name)
        for situation in several:
            off = decide(replace(situation, config=replace(situation.config, rules=left)))
            assert off != decide(situation), name


@pytest.mark.parametrize(
    "other",
    [
        replace(SAID, message="AssertionError: no"),
        replace(SAID, category="import"),
        replace(SAID, message="TypeError: split() takes 2 positional arguments but 3 were given"),
    ],
    ids=["short", "another kind", "another message"],
)
def test_only_failures_alike_show_a_flaw_of_the_plan(other: AttemptSeen) -> None:
    assert kind(other, SAID_OTHERWISE, replans_left=1) != "replan"


def test_what_failed_before_the_context_was_refined_is_not_held_against_the_plan() -> None:
    assert kind(SAID, replace(SAID_OTHERWISE, refined=True), replans_left=1) == "retry"


@pytest.mark.parametrize("category", ["format", "truncated", "endless", "untouched", "infrastructure"])
def test_answers_that_were_never_judged_say_nothing_of_the_plan(category: str) -> None:
    one = replace(SAID, category=category)
    assert kind(one, replace(one, fingerprint="y"), replans_left=1) != "replan"


def test_a_round_from_the_unchanged_prompt_counts_as_one_attempt_and_comes_before_the_facts() -> None:
    first = decide(at(SAID, config=REDRAW))
    assert (first.kind, first.vary, first.unchanged) == ("retry", True, True)
    one = replace(SAID_OTHERWISE, drawn=first.drawn())
    second = decide(at(SAID, one, config=REDRAW, replans_left=1))
    assert second.rule == "drawn from the unchanged prompt: 2 of 2"
    two = replace(one, fingerprint="z")
    after = at(SAID, one, two, config=REDRAW, replans_left=1)
    assert (after.attempts_left, decide(after).unchanged) == (1, False)
    assert decide(after).kind != "replan"
    told = replace(SAID, fingerprint="w")
    assert decide(at(SAID, one, two, told, config=REDRAW)).unchanged is False


def test_candidates_of_the_first_round_were_drawn_from_the_unchanged_prompt_too() -> None:
    assert decide(at(replace(SAID, candidates=2), config=REDRAW)).rule == (
        "drawn from the unchanged prompt: 2 of 2"
    )
    assert not decide(at(replace(SAID, candidates=3), config=REDRAW)).unchanged
    assert at(replace(SAID, candidates=3)).attempts_left == 2


@pytest.mark.parametrize(
    "standstill",
    [
        {"tree": "t"},
        {"red": ("test_a: boom",)},
        {"already_applied": True},
    ],
)
def test_without_progress_the_strategy_changes_first_the_draw_then_the_form(
    standstill: dict[str, object],
) -> None:
    one = replace(FAILED, **standstill)
    other = replace(one, fingerprint="y")
    first = decide(at(one, other, max_attempts=5))
    assert (first.kind, first.vary, first.form) == ("change_strategy", True, "")
    third = replace(one, fingerprint="z", drawn=first.drawn())
    assert decide(at(one, other, third, max_attempts=5)).form == "whole_symbol"


def test_each_stronger_model_is_asked_in_turn() -> None:
    assert decide(at(FAILED, max_attempts=1, stronger=("big", "huge"))).model == "big"
    tried = replace(FAILED, drawn=Drawn(model="big"))
    assert decide(at(FAILED, tried, max_attempts=1, stronger=("big", "huge"))).model == "huge"
    assert kind(FAILED, tried, max_attempts=1, stronger=("big",)) == "skip"


def test_after_an_answer_was_cut_off_all_later_ones_get_more_room() -> None:
    assert decide(at(CUT)).more_room
    assert decide(at(CUT, FAILED)).more_room
    assert not decide(at(FAILED)).more_room
    refined = decide(at(CUT, LACKING, refinements_left=1))
    assert (refined.kind, refined.more_room) == ("refine", True)


@pytest.mark.parametrize(
    ("category", "message", "again", "hint"),
    [
        (
            "name",
            "NameError: name 'rest' is not defined",
            False,
            "rest is not defined where your edit uses it: define it or import it there.",
        ),
        (
            "import",
            "ModuleNotFoundError: No module named 'numpy'",
            False,
            "There is no module numpy here: do without it.",
        ),
        ("patch", "edit 1 (till/money.py): NO_MATCH", True, WHOLE_SYMBOLS),
        ("patch", "edit 1 (till/money.py): NO_MATCH", False, None),
        ("logic", "AssertionError: 5 != 6", True, None),
        ("name", "AttributeError: no", False, None),
    ],
)
def test_rules_turn_a_known_cause_into_a_hint(
    category: Category, message: str, again: bool, hint: str | None
) -> None:
    one = replace(FAILED, category=category, message=message)
    advice = advised_by_rules(at(one, one) if again else at(one))
    assert (advice.hint if advice else None) == hint
    assert advice is None or (advice.decision, advice.by) == ("retry_with_fix", RULES)


def test_a_test_command_that_gives_no_result_is_tried_again_and_then_a_persons_business() -> None:
    assert advised_by_rules(at(BROKEN)) == INFRASTRUCTURE
    for later in (at(BROKEN, BROKEN), at(BROKEN, advised_in_run=(INFRASTRUCTURE,) * 3)):
        advice = advised_by_rules(later)
        assert advice is not None
        assert (advice.decision, advice.hint[:16]) == ("fatal_error", "the test command")


@pytest.mark.parametrize(
    ("attempts", "share", "told", "config", "asked"),
    [
        (2, 0.0, (), CONFIG, "big"),
        (2, 0.0, (), RecoveryConfig(doctor="never"), None),
        (2, 0.0, (), ALWAYS, ""),
        (2, 0.0, (), RecoveryConfig(doctor="always"), "big"),
        (4, 0.0, (), ALWAYS, "big"),
        (2, 0.8, (), ALWAYS, "big"),
        (3, 0.0, (Advice(decision="replan", by="model", confidence=0.6),), ALWAYS, "big"),
        (3, 0.0, (TOLD,), ALWAYS, ""),
        (4, 0.0, (STRONG,), ALWAYS, ""),
        (4, 0.0, (STRONG,), CONFIG, None),
        (4, 0.0, (TOLD, STRONG), ALWAYS, None),
        (4, 0.0, (Advice(decision="replan", by=RULES),) * 2, ALWAYS, "big"),
    ],
)
def test_the_cheap_model_is_asked_first_and_the_strong_one_once_a_step(
    attempts: int, share: float, told: tuple[Advice, ...], config: RecoveryConfig, asked: str | None
) -> None:
    facts: dict[str, Any] = {"advised": told, "advised_in_run": told, "budget_share": share, "config": config}
    assert doctor_to_ask(at(*[FAILED] * attempts, strong_doctor="big", **facts)) == asked


def test_by_default_only_a_stronger_model_is_asked_and_a_runs_limits_hold_over_its_steps() -> None:
    assert doctor_to_ask(at(FAILED, FAILED)) is None
    many = at(FAILED, FAILED, advised_in_run=(TOLD,) * 10, strong_doctor="big", config=ALWAYS)
    assert doctor_to_ask(many) is None
    strong = at(*[FAILED] * 4, advised_in_run=(STRONG,) * 5, strong_doctor="big", config=ALWAYS)
    assert doctor_to_ask(strong) == ""


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("NameError: name 'share' is not defined", "NameError: name <value> is not defined"),
        ('expected "a \\"b\\"" here', "expected <value> here"),
        ("it doesn't fit, and can't", "it doesn't fit, and can't"),
        ('File "till/money.py", line 7, in split', "File <value>, <line>, in split"),
        ("till/money.py:12:3: error", "<path><line>: error"),
        ("<Share object at 0x7f3a12> differs", "<Share object at <address>> differs"),
        ("began 2026-01-02T10:11:12.5 and took 3.25 s", "began <time> and took <time>"),
        ("AssertionError: 99 != 100", "AssertionError: 99 != 100"),
        ("  many\n\twords ", "many words"),
    ],
)
def test_what_differs_from_run_to_run_becomes_a_placeholder(message: str, expected: str) -> None:
    assert normalised(message) == expected


def test_messages_are_alike_whatever_they_quote() -> None:
    first = "ImportError: cannot import name 'split' from 'till.money' (/tmp/one/till/money.py)"
    other = "ImportError: cannot import name 'negate' from 'till.receipt' (/tmp/two/till/receipt.py)"
    assert likeness(first, other) == 1.0
    assert likeness(first, "AssertionError: Lists differ: [7, 1, 1] != [3, 3, 3]") < 0.5
    assert likeness("AssertionError: 99 != 100 in total", "AssertionError: 98 != 100 in total") > 0.9


def test_attempts_of_a_stronger_model_do_not_count_as_the_coders() -> None:
    stronger = replace(FAILED, drawn=Drawn(model="coder:32b"))
    assert (at(FAILED).attempts_left, at(FAILED, stronger).attempts_left) == (2, 2)


def test_an_answer_without_text_is_no_repeat() -> None:
    assert decide(at(replace(CUT, fingerprint=""), replace(CUT, fingerprint=""))).kind == "retry"

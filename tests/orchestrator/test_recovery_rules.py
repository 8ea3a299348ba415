from typing import Any, get_args

import pytest
from msgspec.structs import replace

from clean_room_agent.artifacts.context import RefinementRequest
from clean_room_agent.artifacts.outcomes import Action, AttemptOutcome, Drawn
from clean_room_agent.execute.implement import WHOLE_SYMBOLS
from clean_room_agent.orchestrator.config import Category, RecoveryConfig, Rule
from clean_room_agent.orchestrator.recovery_facts import (
    RULES,
    Advice,
    AttemptSeen,
    DoctorSeen,
    RunSeen,
    Situation,
    StepSeen,
)
from clean_room_agent.orchestrator.recovery_rules import (
    GUESS,
    TABLE,
    decide,
    is_repeat,
    known_cause,
    whom_to_ask,
)

CONFIG = RecoveryConfig()
ALWAYS = RecoveryConfig(doctor="always", high_risk=())
TOLD = Advice(decision="retry_with_fix", by="model")
STRONG = Advice(decision="retry_with_fix", by="model big", strong=True)
INFRASTRUCTURE = Advice(decision="retry_with_fix", by=RULES, infrastructure=True)
MISSING = RefinementRequest(reason="r", missing_files=("a.py",))
ERROR = "AssertionError: Lists differ: [7, 1, 1] != [3, 3, 3]"
CUT = AttemptSeen(outcome=AttemptOutcome.TRUNCATED, fingerprint="", category="truncated")
CUT_AGAIN = replace(CUT, drawn=Drawn(more_room=True))
ENDLESS = AttemptSeen(outcome=AttemptOutcome.UNREADABLE, fingerprint="x", category="endless")
REDRAW = RecoveryConfig(redraw=2)


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
    advice = known_cause(category, message, DoctorSeen(), CONFIG, again=again)
    assert (advice.hint if advice else None) == hint
    assert advice is None or (advice.decision, advice.by) == ("retry_with_fix", RULES)


def test_a_test_command_that_gives_no_result_is_tried_again_and_then_a_persons_business() -> None:
    first = known_cause("infrastructure", "", DoctorSeen(), CONFIG, again=False)
    assert first == INFRASTRUCTURE
    later = known_cause("infrastructure", "", DoctorSeen(), CONFIG, again=True)
    assert later is not None
    assert (later.decision, later.hint[:16]) == ("fatal_error", "the test command")
    often = DoctorSeen(run=(INFRASTRUCTURE,) * 3)
    spent = known_cause("infrastructure", "", often, CONFIG, again=False)
    assert spent is not None
    assert spent.decision == "fatal_error"


def test_by_default_only_a_stronger_model_is_asked() -> None:
    assert whom_to_ask("logic", 2, 0.0, DoctorSeen(), CONFIG) is None
    assert whom_to_ask("logic", 2, 0.0, DoctorSeen(strong="big"), CONFIG) == "big"
    assert whom_to_ask("logic", 2, 0.0, DoctorSeen(strong="big"), RecoveryConfig(doctor="never")) is None


@pytest.mark.parametrize(
    ("category", "attempts", "share", "told", "config", "asked"),
    [
        ("logic", 2, 0.0, (), ALWAYS, ""),
        ("logic", 2, 0.0, (), RecoveryConfig(doctor="always"), "big"),
        ("logic", 4, 0.0, (), ALWAYS, "big"),
        ("logic", 2, 0.8, (), ALWAYS, "big"),
        ("logic", 3, 0.0, (Advice(decision="replan", by="model", confidence=0.6),), ALWAYS, "big"),
        ("logic", 3, 0.0, (TOLD,), ALWAYS, ""),
        ("logic", 4, 0.0, (STRONG,), ALWAYS, ""),
        ("logic", 4, 0.0, (STRONG,), CONFIG, None),
        ("logic", 4, 0.0, (TOLD, STRONG), ALWAYS, None),
        ("logic", 4, 0.0, (Advice(decision="replan", by=RULES),) * 2, ALWAYS, "big"),
    ],
)
def test_the_cheap_model_is_asked_first_and_the_strong_one_once_a_step(
    category: Category,
    attempts: int,
    share: float,
    told: tuple[Advice, ...],
    config: RecoveryConfig,
    asked: str | None,
) -> None:
    doctor = DoctorSeen(step=told, run=told, strong="big")
    assert whom_to_ask(category, attempts, share, doctor, config) == asked


def test_a_runs_limits_hold_over_its_steps() -> None:
    assert whom_to_ask("logic", 2, 0.0, DoctorSeen(run=(TOLD,) * 10, strong="big"), ALWAYS) is None
    assert whom_to_ask("logic", 4, 0.0, DoctorSeen(run=(STRONG,) * 5, strong="big"), ALWAYS) == ""


def seen(
    outcome: AttemptOutcome, fingerprint: str = "", missing: RefinementRequest | None = None
) -> AttemptSeen:
    return AttemptSeen(outcome=outcome, fingerprint=fingerprint, missing=missing)


LACKING = seen(AttemptOutcome.INSUFFICIENT_CONTEXT, "x", MISSING)
FAILED = seen(AttemptOutcome.TESTS_FAILED, "x")
SAID = replace(FAILED, message=ERROR)
SAID_OTHERWISE = replace(SAID, fingerprint="y")
UNDEFINED = replace(FAILED, category="name", message="NameError: name 'rest' is not defined")
UNDEFINED_OTHERWISE = replace(UNDEFINED, fingerprint="y")
BROKEN = replace(FAILED, category="infrastructure", outcome=AttemptOutcome.INFRASTRUCTURE)
RED = replace(SAID, red=("tests/test_a.py::test_one: lists differ",))
RED_AGAIN = replace(RED, fingerprint="y")
STEP = StepSeen(attempts=(FAILED,), max_attempts=3)


def at(
    *attempts: AttemptSeen, run: RunSeen | None = None, config: RecoveryConfig = CONFIG, **step: Any
) -> Situation:
    changed = replace(STEP, attempts=attempts, **step)
    return Situation(step=changed, run=run or RunSeen(), config=config)


def kind(*attempts: AttemptSeen, **step: Any) -> str:
    return decide(at(*attempts, **step)).kind


def without(*rules: str, redraw: int = 0) -> RecoveryConfig:
    left: tuple[Rule, ...] = tuple(rule for rule in get_args(Rule) if rule not in rules)
    return RecoveryConfig(rules=left, redraw=redraw)


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        (at(LACKING, refinements_left=1), "refine"),
        (at(LACKING, refinements_left=0), "retry"),
        (at(LACKING, max_attempts=1, refinements_left=1), "skip"),
        (at(seen(AttemptOutcome.INSUFFICIENT_CONTEXT), refinements_left=1), "retry"),
        (at(FAILED), "retry"),
        (at(FAILED, max_attempts=1), "skip"),
        (at(FAILED, run=RunSeen(budget_spent="9 calls")), "stop"),
        (at(CUT, divisible=True), "retry"),
        (at(CUT, CUT_AGAIN, divisible=True), "reduce_scope"),
        (at(CUT, CUT_AGAIN), "retry"),
        (at(FAILED, divisible=True, run=RunSeen(budget_share=0.95)), "reduce_scope"),
        (at(FAILED, run=RunSeen(budget_share=0.95)), "retry"),
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
        (at(FAILED, SAID_OTHERWISE, doctor=DoctorSeen(strong="big")), "diagnose"),
        (at(FAILED, SAID_OTHERWISE, max_attempts=2, doctor=DoctorSeen(strong="big")), "skip"),
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
    action = decide(at(FAILED, SAID_OTHERWISE, doctor=DoctorSeen(advice=advice, strong="big"), **step))
    assert action.kind == expected
    assert (action.hint or action.question).removeprefix(GUESS) == (
        advice.hint if expected in {"retry", "needs_human"} else ""
    )


@pytest.mark.parametrize(("by", "hint"), [(RULES, "h"), ("model", f"{GUESS}h"), ("model big", f"{GUESS}h")])
def test_what_a_model_advises_is_marked_as_a_guess(by: str, hint: str) -> None:
    advice = Advice(decision="retry_with_fix", by=by, hint="h")
    assert decide(at(FAILED, SAID_OTHERWISE, doctor=DoctorSeen(advice=advice))).hint == hint


def test_a_row_that_is_switched_off_never_decides() -> None:
    situations = {
        "refine": at(LACKING, refinements_left=1),
        "reduce_scope": at(CUT, CUT_AGAIN, divisible=True),
        "endless": at(ENDLESS),
        "redraw": at(SAID, config=REDRAW),
        "widen": at(RED, RED_AGAIN, unshown=MISSING, refinements_left=1),
        "replan": at(SAID, SAID_OTHERWISE, replans_left=1),
        "diagnose": at(UNDEFINED, UNDEFINED_OTHERWISE),
        "change_strategy": at(FAILED, FAILED),
        "retry": at(FAILED),
        "escalate": at(FAILED, max_attempts=1, stronger=("big",)),
        "replan_last": at(FAILED, max_attempts=1, replans_left=1),
        "needs_human": at(FAILED, max_attempts=1, depended_on=True),
    }
    assert list(situations) == [name for name, _ in TABLE]
    for name, situation in situations.items():
        off = decide(replace(situation, config=without(name, redraw=situation.config.redraw)))
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


def test_a_fatal_kind_of_failure_has_the_part_planned_again_at_once() -> None:
    assert kind(replace(FAILED, category="schema_mismatch"), replans_left=1) == "replan"


def test_a_round_from_the_unchanged_prompt_counts_as_one_attempt_and_comes_before_the_facts() -> None:
    first = decide(at(SAID, config=REDRAW))
    assert (first.kind, first.vary, first.unchanged) == ("retry", True, True)
    one = replace(SAID_OTHERWISE, drawn=first.drawn())
    second = decide(at(SAID, one, config=REDRAW, replans_left=1))
    assert second.rule == "drawn from the unchanged prompt: 2 of 2"
    two = replace(one, fingerprint="z")
    after = at(SAID, one, two, config=REDRAW, replans_left=1)
    assert (after.step.attempts_left, decide(after).unchanged) == (1, False)
    assert decide(after).kind != "replan"
    told = replace(SAID, fingerprint="w")
    assert decide(at(SAID, one, two, told, config=REDRAW)).unchanged is False


def test_candidates_of_the_first_round_were_drawn_from_the_unchanged_prompt_too() -> None:
    assert decide(at(replace(SAID, candidates=2), config=REDRAW)).rule == (
        "drawn from the unchanged prompt: 2 of 2"
    )
    assert not decide(at(replace(SAID, candidates=3), config=REDRAW)).unchanged
    assert at(replace(SAID, candidates=3)).step.attempts_left == 2


@pytest.mark.parametrize("category", ["name", "import", "syntax", "patch", "format", "untouched"])
def test_what_has_a_known_cause_is_told_at_once(category: str) -> None:
    first = replace(SAID, category=category)
    assert not decide(at(first, config=REDRAW)).unchanged


def test_an_answer_given_before_is_drawn_differently() -> None:
    assert decide(at(FAILED, FAILED)).vary
    assert not decide(at(FAILED)).vary


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


def test_answers_without_text_are_not_repeats() -> None:
    assert not is_repeat([CUT, CUT])


def test_what_is_asked_next_is_what_the_attempt_is_known_by() -> None:
    action = Action(kind="escalate", rule="r", vary=True, more_room=True, form="whole_symbol", model="big")
    assert action.drawn() == Drawn(varied=True, more_room=True, form="whole_symbol", model="big")

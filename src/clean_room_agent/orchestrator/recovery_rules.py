"""Decides what to do after a failed attempt: a table of rules, of which the first that matches wins, and diagnoses for
known causes. Pure functions.
"""

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from clean_room_agent.artifacts.outcomes import ENDS_RUN, Action, ActionKind, AttemptOutcome, Form
from clean_room_agent.execute.implement import WHOLE_SYMBOLS
from clean_room_agent.orchestrator.config import Category, RecoveryConfig, Rule
from clean_room_agent.orchestrator.recovery_facts import (
    RULES,
    Advice,
    AttemptSeen,
    DoctorSeen,
    Situation,
    likeness,
)

NAMED = (
    (
        re.compile(r"\bname '(\w+)' is not defined|\b([A-Za-z_$][\w$]*) is not defined"),
        "{} is not defined where your edit uses it: define it or import it there.",
    ),
    (
        re.compile(r"No module named '([\w.]+)'|Cannot find module '([^'\n]+)'"),
        "There is no module {} here: do without it.",
    ),
    (
        re.compile(r"cannot import name '(\w+)'"),
        "{} cannot be imported from there: define it there, or take what is there.",
    ),
)
MISPLACED = re.compile(r"\b(?:NO_MATCH|AMBIGUOUS)\b")
NO_FLAW: frozenset[Category] = frozenset({"format", "truncated", "endless", "untouched", "infrastructure"})
"""Failures that say nothing about the plan, since none of their edits was judged."""
UNEXPLAINED: frozenset[Category] = frozenset({"logic", "timeout"})
"""Failures that another sample fixes as often as their message does; a wrong name, import, syntax or edit is reported
at once.
"""
GUESS = "A guess, which may be wrong: "
Row = Callable[[Situation], Action | None]


def known_cause(
    category: Category, message: str, doctor: DoctorSeen, config: RecoveryConfig, *, again: bool
) -> Advice | None:
    """The rules' advice about a failure (`again`: of the same category as before); None if they have none."""
    if category == "infrastructure":
        advised = sum(one.infrastructure for one in doctor.run)
        if not again and advised < config.infrastructure_per_run:
            return Advice(decision="retry_with_fix", by=RULES, infrastructure=True)
        hint = "the test command gives no result, with or without the edits: what does it need?"
        return Advice(decision="fatal_error", by=RULES, hint=hint, infrastructure=True)
    if category == "patch" and again and MISPLACED.search(message):
        return Advice(decision="retry_with_fix", by=RULES, hint=WHOLE_SYMBOLS)
    for pattern, words in NAMED if category in {"name", "import"} else ():
        found = pattern.search(message)
        if found:
            name = next(group for group in found.groups() if group)
            return Advice(decision="retry_with_fix", by=RULES, hint=words.format(name))
    return None


def whom_to_ask(
    category: Category, attempts: int, budget_share: float, doctor: DoctorSeen, config: RecoveryConfig
) -> str | None:
    """Tag of the model to ask, "" for the reasoning model; None if none may be asked."""
    asked = [one for one in doctor.step if one.by != RULES]
    asked_in_run = [one for one in doctor.run if one.by != RULES]
    if len(asked) >= config.diagnoses_per_step or len(asked_in_run) >= config.diagnoses_per_run:
        return None
    if config.doctor == "never":
        return None
    cheap = config.doctor == "always"
    may_escalate = (
        doctor.strong
        and not any(one.strong for one in asked)
        and sum(one.strong for one in asked_in_run) < config.strong_diagnoses_per_run
    )
    grave = (
        category in config.high_risk
        or attempts >= config.strong_after
        or budget_share >= config.strong_from
        or any(one.confidence < config.doubt for one in asked)
    )
    if may_escalate and (grave or not cheap):
        return doctor.strong
    return "" if cheap else None


def decide(at: Situation) -> Action:
    """The action after the newest of a step's failed attempts."""
    if at.run.budget_spent:
        return Action(kind="stop", rule=f"budget spent: {at.run.budget_spent}")
    for name, row in TABLE:
        action = row(at) if name in at.config.rules else None
        if action is not None:
            break
    else:
        action = Action(kind="skip", rule="attempts are used up")
    if at.step.hinted and action.kind in ENDS_RUN:
        return Action(kind="retry", rule="the user has added a hint", more_room=at.step.more_room)
    return action


def _refine(at: Situation) -> Action | None:
    lacking = (
        at.step.newest.outcome is AttemptOutcome.INSUFFICIENT_CONTEXT and at.step.newest.missing is not None
    )
    if not lacking or at.step.refinements_left <= 0 or at.step.attempts_left <= 0:
        return None
    return Action(
        kind="refine",
        rule="insufficient_context with evidence",
        more_room=at.step.more_room,
        missing=at.step.newest.missing,
    )


def _reduce_scope(at: Situation) -> Action | None:
    if not at.step.divisible or at.step.kept:
        return None
    newest = at.step.newest
    if newest.outcome is AttemptOutcome.TRUNCATED and newest.drawn.more_room:
        return Action(kind="reduce_scope", rule="the answer was cut off again, with more room for it")
    if at.run.budget_share >= at.config.nearly_spent:
        return Action(kind="reduce_scope", rule=f"{at.run.budget_share:.0%} of a budget of the run is spent")
    return None


def _endless(at: Situation) -> Action | None:
    """A model that cannot end an answer, asked twice, is not asked again about this step."""
    if at.step.newest.category != "endless":
        return None
    rule = "answers without an end"
    stronger = _escalate(at)
    return replace(stronger, rule=f"{rule}, {stronger.rule}") if stronger else Action(kind="skip", rule=rule)


def _redraw(at: Situation) -> Action | None:
    first, *later = at.step.attempts
    drawn = sum(seen.candidates for seen in at.step.attempts) - 1
    if drawn >= at.config.redraw or first.category not in UNEXPLAINED:
        return None
    if not all(seen.drawn.unchanged for seen in later) or (not later and at.step.attempts_left <= 0):
        return None
    return Action(
        kind="retry",
        rule=f"drawn from the unchanged prompt: {drawn + 1} of {at.config.redraw}",
        vary=True,
        unchanged=True,
    )


def _widen(at: Situation) -> Action | None:
    """Show files whole if an attempt fails in the same way again: what has to be changed may not be visible, because a
    small model left it out, for example.
    """
    step = at.step
    if step.unshown is None or step.refinements_left <= 0 or step.attempts_left <= 0:
        return None
    why = _standstill(step.attempts, at.config.no_progress)
    if not why or step.newest.category in NO_FLAW:
        return None
    return Action(
        kind="refine",
        rule=f"{why}: the step's files are shown whole",
        more_room=step.more_room,
        missing=step.unshown,
    )


def _replan(at: Situation) -> Action | None:
    newest = at.step.newest
    if at.step.replans_left <= 0 or at.step.kept or newest.drawn.unchanged:
        return None
    if newest.category in at.config.fatal_categories:
        return Action(kind="replan", rule=f"a failure of the kind {newest.category}")
    alike = _likeness_of_newest(at)
    if alike < at.config.likeness:
        return None
    return Action(
        kind="replan", rule=f"an approach flaw: two {newest.category} failures are {alike:.0%} alike"
    )


def _likeness_of_newest(at: Situation) -> float:
    """The similarity of the newest two failures; 0 if they cannot be compared."""
    *earlier, newest = at.step.attempts
    before = earlier[-1] if earlier and not newest.refined else None
    if before is None or newest.category in NO_FLAW or before.category != newest.category:
        return 0.0
    if min(len(before.message), len(newest.message)) < at.config.min_message:
        return 0.0
    return likeness(before.message, newest.message)


def _diagnose(at: Situation) -> Action | None:
    advice = at.step.doctor.advice
    if advice is not None:
        return _follow(at, advice)
    if len(at.step.attempts) == 1 and at.step.newest.category != "infrastructure":
        return None
    if at.step.attempts_left <= 0 or (advised_by_rules(at) is None and doctor_to_ask(at) is None):
        return None
    return Action(
        kind="diagnose", rule=f"{len(at.step.attempts)} failed, the last by {at.step.newest.category}"
    )


def _follow(at: Situation, advice: Advice) -> Action | None:
    """The doctor's advice as an action, if it is possible; a hint goes with the next attempt."""
    rule = f"the doctor ({advice.by}): {advice.decision}"
    wants_plan = advice.decision == "replan" or advice.category in at.config.fatal_categories
    if wants_plan and at.step.replans_left > 0 and not at.step.kept:
        return Action(kind="replan", rule=rule)
    if advice.decision == "skip_step" and not at.step.depended_on:
        return Action(kind="skip", rule=rule)
    if advice.decision == "fatal_error":
        kind: ActionKind = "needs_human" if "needs_human" in at.config.rules else "skip"
        return Action(kind=kind, rule=rule, question=advice.hint or "what can be done about it?")
    if advice.decision == "rollback_provider":
        stronger = _escalate(at)
        return None if stronger is None else replace(stronger, rule=rule)
    return None


def advised_by_rules(at: Situation) -> Advice | None:
    """The rules' advice about the newest attempt; None if they have none."""
    newest = at.step.newest
    again = any(seen.category == newest.category for seen in at.step.attempts[:-1])
    return known_cause(newest.category, newest.message, at.step.doctor, at.config, again=again)


def doctor_to_ask(at: Situation) -> str | None:
    """Tag of the model to ask about the newest attempt, "" for the reasoning model; None for nobody."""
    step = at.step
    return whom_to_ask(step.newest.category, len(step.attempts), at.run.budget_share, step.doctor, at.config)


def _change_strategy(at: Situation) -> Action | None:
    why = _standstill(at.step.attempts, at.config.no_progress)
    if not why or at.step.attempts_left <= 0:
        return None
    drawn = [seen.drawn for seen in at.step.attempts]
    form: Form = "whole_symbol" if any(one.varied for one in drawn) else ""
    return Action(
        kind="change_strategy",
        rule=f"{why}: {'whole symbols' if form else 'draw another'}",
        vary=True,
        more_room=at.step.more_room,
        form=form,
        hint=_hint(at),
    )


def _standstill(attempts: Sequence[AttemptSeen], wanted: int) -> str:
    """What the newest attempts have in common that shows a lack of progress; "" if nothing."""
    if is_repeat(attempts):
        return "the same answer again"
    newest = attempts[-wanted:]
    if len(newest) < wanted:
        return ""
    first = newest[0]
    if first.tree and all(seen.tree == first.tree for seen in newest):
        return "the same tree again"
    if all(seen.already_applied for seen in newest):
        return "the edits stood there before, again"
    if first.red and all(seen.red == first.red for seen in newest):
        return "the same tests fail in the same way"
    return ""


def _retry(at: Situation) -> Action | None:
    left = at.step.attempts_left
    if left <= 0:
        return None
    if at.step.newest.outcome is AttemptOutcome.TRUNCATED:
        return Action(kind="retry", rule="the answer was cut off: more room for it", more_room=True)
    advice = at.step.doctor.advice
    doctor = f"; the doctor ({advice.by}) has a hint" if advice and advice.hint else ""
    return Action(
        kind="retry",
        rule=f"attempts left: {left}{doctor}",
        vary=_unread(at.step.newest),
        more_room=at.step.more_room,
        hint=_hint(at),
    )


def _hint(at: Situation) -> str:
    """The advice for the next prompt; what a model says there is marked as a guess."""
    advice = at.step.doctor.advice
    if advice is None or not advice.hint:
        return ""
    return advice.hint if advice.by == RULES else f"{GUESS}{advice.hint}"


def _unread(seen: AttemptSeen) -> bool:
    return seen.outcome in {AttemptOutcome.UNREADABLE, AttemptOutcome.NO_EDITS}


def _escalate(at: Situation) -> Action | None:
    for tag in at.step.stronger:
        if sum(seen.drawn.model == tag for seen in at.step.attempts) < at.config.escalation_attempts:
            return Action(
                kind="escalate", rule=f"a stronger model: {tag}", model=tag, more_room=at.step.more_room
            )
    return None


def _replan_last(at: Situation) -> Action | None:
    if at.step.replans_left <= 0 or at.step.kept:
        return None
    return Action(kind="replan", rule="attempts are used up: the part is planned again")


def _needs_human(at: Situation) -> Action | None:
    if not at.step.depended_on or at.step.kept:
        return None
    return Action(
        kind="needs_human",
        rule="nothing else is left, and other steps need this one",
        question="what does this step have to do differently? Other steps need it",
    )


TABLE: tuple[tuple[Rule, Row], ...] = (
    ("refine", _refine),
    ("reduce_scope", _reduce_scope),
    ("endless", _endless),
    ("redraw", _redraw),
    ("widen", _widen),
    ("replan", _replan),
    ("diagnose", _diagnose),
    ("change_strategy", _change_strategy),
    ("retry", _retry),
    ("escalate", _escalate),
    ("replan_last", _replan_last),
    ("needs_human", _needs_human),
)
"""The rules between `stop` and `skip`, in order."""


def is_repeat(attempts: Sequence[AttemptSeen]) -> bool:
    """Whether the newest answer is the same as an earlier one of this step."""
    newest = attempts[-1].fingerprint
    return bool(newest) and any(seen.fingerprint == newest for seen in attempts[:-1])

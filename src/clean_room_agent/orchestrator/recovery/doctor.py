"""Diagnoses by rule where the cause is known, and names the model to ask where it is not. Pure functions."""

import re

from clean_room_agent.orchestrator.config import RecoveryConfig
from clean_room_agent.orchestrator.failures import Category
from clean_room_agent.orchestrator.recovery.situation import RULES, WHOLE_SYMBOLS, Advice, DoctorSeen

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


def known_cause(
    category: Category, message: str, doctor: DoctorSeen, config: RecoveryConfig, *, again: bool
) -> Advice | None:
    """What the rules say of a failure, `again` one of the same category; None where they have nothing to say."""
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
    """Tag of the model to ask, "" for the reasoning model; None where nobody may be asked."""
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

"""Decides what follows a failed attempt: six rules, of which the first that matches wins. Pure: no model is asked here.

A decision is made from facts: what kind of failure it was, whether two errors are the same, what was tried. Messages are
compared without what differs between runs:

    "E  File 'till/money.py', line 7: name 'share' is not defined"
    "E  File 'till/receipt.py', line 12: name 'rest' is not defined"

are equal once paths, lines and quoted values are replaced by placeholders.
"""

import difflib
import re
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import RefinementRequest
from clean_room_agent.artifacts.outcomes import ENDS_RUN, Action, AttemptOutcome, DoctorDecision, Drawn, Form
from clean_room_agent.execute.implement import WHOLE_SYMBOLS
from clean_room_agent.orchestrator.run_config import Category, RecoveryConfig, Rule

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
BY_OUTCOME: dict[AttemptOutcome, Category] = {
    AttemptOutcome.TRUNCATED: "truncated",
    AttemptOutcome.UNREADABLE: "format",
    AttemptOutcome.NO_EDITS: "format",
    AttemptOutcome.TIMED_OUT: "timeout",
    AttemptOutcome.INFRASTRUCTURE: "infrastructure",
}
BY_MESSAGE: tuple[tuple[Category, re.Pattern[str]], ...] = (
    ("syntax", re.compile(r"\b(?:SyntaxError|IndentationError|TabError)\b|\berror TS1\d{3}\b")),
    (
        "import",
        re.compile(r"\b(?:ImportError|ModuleNotFoundError)\b|Cannot find module|ERR_MODULE_NOT_FOUND"),
    ),
    ("name", re.compile(r"\b(?:NameError|UnboundLocalError|AttributeError|ReferenceError)\b")),
)
"""The first whose pattern occurs anywhere in the messages counts."""
MOST_COMPARED = 500
"""Characters of a message that are compared: the cost grows with their square."""
PLACEHOLDERS = (
    (re.compile(r"""(?<!\w)'(?:[^'\\\n]|\\.)*'(?!\w)|"(?:[^"\\\n]|\\.)*"|`[^`\n]*`"""), "<value>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (re.compile(r"\b(?:\d{4}-\d\d-\d\d[T ])?\d{1,2}:\d\d:\d\d(?:\.\d+)?\b|\b\d{4}-\d\d-\d\d\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds?|minutes?)\b"), "<time>"),
    (re.compile(r"(?:[\w.@~+-]*/)+[\w.@+-]+|\b[\w-]+\.(?:pyi?|[cm]?[jt]sx?)\b"), "<path>"),
    (re.compile(r"\blines? \d+(?:-\d+)?|(?<=>):\d+(?::\d+)?"), "<line>"),
)
"""The order matters: a quoted path is a value."""
MISPLACED = re.compile(r"\b(?:NO_MATCH|AMBIGUOUS)\b")
NO_FLAW: frozenset[Category] = frozenset({"format", "truncated", "endless", "untouched", "infrastructure"})
"""Failures that say nothing about the plan, since none of their edits was judged."""
UNEXPLAINED: frozenset[Category] = frozenset({"logic", "timeout"})
"""Failures that another sample fixes as often as their message does; a wrong name, import, syntax or edit is reported
at once.
"""
GUESS = "A guess, which may be wrong: "
RULES = "rules"
"""The source of advice if the rules know the cause."""


def category_of(outcome: AttemptOutcome, messages: Sequence[str], *, tested: bool) -> Category:
    """The kind of a failed attempt; `messages` are those of its failing tests, if it was `tested`."""
    known = BY_OUTCOME.get(outcome)
    if known is not None:
        return known
    if not tested:
        return "patch"
    text = "\n".join(messages)
    return next((category for category, pattern in BY_MESSAGE if pattern.search(text)), "logic")


def normalised(message: str) -> str:
    """The message in one line, with placeholders for quoted values, addresses, times, paths and line numbers."""
    for pattern, placeholder in PLACEHOLDERS:
        message = pattern.sub(placeholder, message)
    return " ".join(message.split())


def likeness(first: str, second: str) -> float:
    """How similar the two messages are after normalisation: 0 to 1 (1 for equal ones)."""
    one, other = normalised(first)[:MOST_COMPARED], normalised(second)[:MOST_COMPARED]
    if one == other:
        return 1.0
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


class AttemptSeen(Struct, frozen=True, kw_only=True):
    """What the decision takes into account about one attempt."""

    outcome: AttemptOutcome
    fingerprint: str
    """Of the answer's text, to recognise an answer that was given before."""
    missing: RefinementRequest | None = None
    category: Category = "logic"
    message: str = ""
    """What failed: the message of the tests or of the refusal."""
    tree: str = ""
    """Equal for attempts with the same tree; "" if nothing was applied."""
    red: tuple[str, ...] = ()
    """Each red test with its normalised message; sorted."""
    already_applied: bool = False
    """Whether an edit's replacement was already there."""
    drawn: Drawn = Drawn()
    refined: bool = False
    """Whether retrieval added something to its context that an earlier attempt had lacked."""
    candidates: int = 1
    """Answers sampled from its prompt, of which this is the best."""


class Advice(Struct, frozen=True, kw_only=True):
    """What the doctor says about a step's newest attempt."""

    decision: DoctorDecision
    by: str
    """`rules`, or "model", with its tag if it is not the reasoning model."""
    hint: str = ""
    """For the coder; for a person if the error is fatal."""
    category: Category | None = None
    """The category that a model names; None leaves it as it was."""
    confidence: float = 1.0
    strong: bool = False
    """Whether a stronger model said so."""
    infrastructure: bool = False
    """Whether it is about the test command."""


class Situation(Struct, frozen=True, kw_only=True):
    """Everything that a decision takes into account, which is also what the record keeps."""

    attempts: tuple[AttemptSeen, ...]
    """Failed ones at the step, oldest first; not empty."""
    max_attempts: int
    """Of the coder; each hint that was added since the first attempt allows as many more, unless the part can be replanned."""
    refinements_left: int = 0
    unshown: RefinementRequest | None = None
    """The step's files that its context shows only in part, unless they were asked for before."""
    divisible: bool = False
    """Whether the step names several files or symbols, so that a smaller one can be done first."""
    depended_on: bool = False
    """Whether another step, or another part, needs it."""
    kept: bool = False
    """Whether there is an attempt that may stay but turned no test green; the step is then not given up."""
    replans_left: int = 0
    """How often its part may still be replanned, by the limits of the part and of the run."""
    hinted: bool = False
    """Whether the user has added a hint since the newest attempt, which only the next one would be shown."""
    stronger: tuple[str, ...] = ()
    """Tags of stronger models that can be asked, in order; the first may have been asked, if it has attempts left."""
    advice: Advice | None = None
    """The doctor's about the newest attempt; None while there is none."""
    advised: tuple[Advice, ...] = ()
    """The doctor's about earlier attempts at the step."""
    advised_in_run: tuple[Advice, ...] = ()
    """All of the doctor's in the run so far, including the step's."""
    strong_doctor: str = ""
    """Tag of the stronger model that can be asked why; "" for none."""
    budget_spent: str = ""
    """Which budget of the run is used up; "" while none is."""
    budget_share: float = 0.0
    """Of the budget that is most used up."""
    config: RecoveryConfig

    @property
    def newest(self) -> AttemptSeen:
        """The last attempt."""
        return self.attempts[-1]

    @property
    def is_endless(self) -> bool:
        """Whether the model cannot end an answer, asked twice; it is not asked again about this step."""
        return self.newest.category == "endless"

    @property
    def attempts_left(self) -> int:
        """Of the coder; a round of answers from the unchanged prompt counts as one."""
        own = [seen for seen in self.attempts if not seen.drawn.model]
        single = sum(not seen.drawn.unchanged for seen in own)
        left = self.max_attempts - single - any(seen.drawn.unchanged for seen in own)
        return 0 if self.is_endless else left

    @property
    def more_room(self) -> bool:
        """Whether an answer of the step was cut off, so that each later one gets more of the window."""
        return any(seen.outcome is AttemptOutcome.TRUNCATED for seen in self.attempts)


def decide(at: Situation) -> Action:
    """The action after the newest of a step's failed attempts."""
    if at.budget_spent:
        return Action(kind="stop", rule=f"budget spent: {at.budget_spent}")
    rows = (row(at) for name, row in TABLE if name in at.config.rules)
    action = next((action for action in rows if action is not None), None) or _give_up(at)
    if at.hinted and action.kind in ENDS_RUN:
        action = Action(kind="retry", rule="the user has added a hint")
    return replace(action, more_room=at.more_room)


def _give_up(at: Situation) -> Action:
    if at.is_endless:
        return Action(kind="skip", rule="answers without an end")
    if at.depended_on and not at.kept:
        return Action(
            kind="needs_human",
            rule="nothing else is left, and other steps need this one",
            question="what does this step have to do differently? Other steps need it",
        )
    return Action(kind="skip", rule="attempts are used up")


def _refine(at: Situation) -> Action | None:
    missing = at.newest.missing if at.newest.outcome is AttemptOutcome.INSUFFICIENT_CONTEXT else None
    if missing is None or at.refinements_left <= 0 or at.attempts_left <= 0:
        return None
    return Action(kind="refine", rule="insufficient_context with evidence", missing=missing)


def _show_whole_files(at: Situation) -> Action | None:
    """Show files whole if an attempt fails in the same way again: what has to be changed may not be visible, because a
    small model left it out, for example.
    """
    why = _lack_of_progress(at)
    if at.unshown is None or at.refinements_left <= 0 or at.attempts_left <= 0:
        return None
    if not why or at.newest.category in NO_FLAW:
        return None
    return Action(kind="refine", rule=f"{why}: the step's files are shown whole", missing=at.unshown)


def _reduce_scope(at: Situation) -> Action | None:
    if not at.divisible or at.kept:
        return None
    if at.newest.outcome is AttemptOutcome.TRUNCATED and at.newest.drawn.more_room:
        return Action(kind="reduce_scope", rule="the answer was cut off again, with more room for it")
    if at.budget_share >= at.config.nearly_spent:
        return Action(kind="reduce_scope", rule=f"{at.budget_share:.0%} of a budget of the run is spent")
    return None


def _redraw_unchanged(at: Situation) -> Action | None:
    first, *later = at.attempts
    drawn = sum(seen.candidates for seen in at.attempts) - 1
    if drawn >= at.config.redraw or first.category not in UNEXPLAINED:
        return None
    if not all(seen.drawn.unchanged for seen in later) or (not later and at.attempts_left <= 0):
        return None
    return Action(
        kind="retry",
        rule=f"drawn from the unchanged prompt: {drawn + 1} of {at.config.redraw}",
        vary=True,
        unchanged=True,
    )


def _replan(at: Situation) -> Action | None:
    newest = at.newest
    if at.replans_left <= 0 or at.kept or newest.drawn.unchanged:
        return None
    if newest.category in at.config.fatal_categories:
        return Action(kind="replan", rule=f"a failure of the kind {newest.category}")
    alike = _likeness_of_newest(at)
    if alike < at.config.likeness:
        return None
    return Action(
        kind="replan", rule=f"an approach flaw: two {newest.category} failures are {alike:.0%} alike"
    )


def _replan_last(at: Situation) -> Action | None:
    if at.replans_left <= 0 or at.kept or at.is_endless:
        return None
    return Action(kind="replan", rule="attempts are used up: the part is planned again")


def _likeness_of_newest(at: Situation) -> float:
    """The similarity of the newest two failures; 0 if they cannot be compared."""
    *earlier, newest = at.attempts
    before = earlier[-1] if earlier and not newest.refined else None
    if before is None or newest.category in NO_FLAW or before.category != newest.category:
        return 0.0
    if min(len(before.message), len(newest.message)) < at.config.min_message:
        return 0.0
    return likeness(before.message, newest.message)


def _retry(at: Situation) -> Action | None:
    """The next attempt, with the doctor's hint; without progress it is sampled differently, then asked for in another form."""
    if at.attempts_left <= 0:
        return None
    advice, hint, why = at.advice, "", _lack_of_progress(at)
    if advice is not None and advice.hint:
        hint = advice.hint if advice.by == RULES else f"{GUESS}{advice.hint}"
    if why:
        form: Form = "whole_symbol" if any(seen.drawn.varied for seen in at.attempts) else ""
        rule = f"{why}: {'whole symbols' if form else 'draw another'}"
        return Action(kind="change_strategy", rule=rule, vary=True, form=form, hint=hint)
    if at.newest.outcome is AttemptOutcome.TRUNCATED:
        return Action(kind="retry", rule="the answer was cut off: more room for it")
    by = f"; the doctor ({advice.by}) has a hint" if advice and hint else ""
    unread = at.newest.outcome in {AttemptOutcome.UNREADABLE, AttemptOutcome.NO_EDITS}
    return Action(kind="retry", rule=f"attempts left: {at.attempts_left}{by}", vary=unread, hint=hint)


def _lack_of_progress(at: Situation) -> str:
    """What the newest attempts have in common that shows a lack of progress; "" if nothing."""
    *earlier, newest = at.attempts
    if newest.fingerprint and any(seen.fingerprint == newest.fingerprint for seen in earlier):
        return "the same answer again"
    recent = at.attempts[-at.config.no_progress :]
    if len(recent) < at.config.no_progress:
        return ""
    if newest.tree and all(seen.tree == newest.tree for seen in recent):
        return "the same tree again"
    if all(seen.already_applied for seen in recent):
        return "the edits stood there before, again"
    if newest.red and all(seen.red == newest.red for seen in recent):
        return "the same tests fail in the same way"
    return ""


def _escalate(at: Situation) -> Action | None:
    for tag in at.stronger:
        if sum(seen.drawn.model == tag for seen in at.attempts) < at.config.escalation_attempts:
            return Action(kind="escalate", rule=f"a stronger model: {tag}", model=tag)
    return None


def _diagnose(at: Situation) -> Action | None:
    """Ask the doctor, or do what it said, if that is possible; its hint goes with the next attempt."""
    advice = at.advice
    if advice is None:
        first = len(at.attempts) == 1 and at.newest.category != "infrastructure"
        if first or at.attempts_left <= 0 or (advised_by_rules(at) is None and doctor_to_ask(at) is None):
            return None
        return Action(kind="diagnose", rule=f"{len(at.attempts)} failed, the last by {at.newest.category}")
    rule = f"the doctor ({advice.by}): {advice.decision}"
    wants_plan = advice.decision == "replan" or advice.category in at.config.fatal_categories
    if wants_plan and at.replans_left > 0 and not at.kept:
        return Action(kind="replan", rule=rule)
    if advice.decision == "skip_step" and not at.depended_on:
        return Action(kind="skip", rule=rule)
    if advice.decision == "fatal_error":
        return Action(kind="needs_human", rule=rule, question=advice.hint or "what can be done about it?")
    stronger = _escalate(at) if advice.decision == "rollback_provider" else None
    return stronger and replace(stronger, rule=rule)


def advised_by_rules(at: Situation) -> Advice | None:
    """What the rules know about the newest failure; None if a model would have to say it."""
    category, message = at.newest.category, at.newest.message
    again = any(seen.category == category for seen in at.attempts[:-1])
    if category == "infrastructure":
        advised = sum(one.infrastructure for one in at.advised_in_run)
        if not again and advised < at.config.infrastructure_per_run:
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


def doctor_to_ask(at: Situation) -> str | None:
    """Tag of the model to ask about the newest attempt, "" for the reasoning model; None if none may be asked."""
    config = at.config
    asked = [one for one in at.advised if one.by != RULES]
    asked_in_run = [one for one in at.advised_in_run if one.by != RULES]
    spent = len(asked) >= config.diagnoses_per_step or len(asked_in_run) >= config.diagnoses_per_run
    if spent or config.doctor == "never":
        return None
    may_escalate = (
        at.strong_doctor
        and not any(one.strong for one in asked)
        and sum(one.strong for one in asked_in_run) < config.strong_diagnoses_per_run
    )
    grave = (
        at.newest.category in config.high_risk
        or len(at.attempts) >= config.strong_after
        or at.budget_share >= config.strong_from
        or any(one.confidence < config.doubt for one in asked)
    )
    if may_escalate and (grave or config.doctor == "stronger"):
        return at.strong_doctor
    return "" if config.doctor == "always" else None


TABLE: tuple[tuple[Rule, Callable[[Situation], Action | None]], ...] = (
    ("refine", _refine),
    ("reduce_scope", _reduce_scope),
    ("retry", _redraw_unchanged),
    ("refine", _show_whole_files),
    ("replan", _replan),
    ("diagnose", _diagnose),
    ("retry", _retry),
    ("escalate", _escalate),
    ("replan", _replan_last),
)
"""In order, between `stop` and giving up. Three rules have two conditions, one to be tried before others and one after."""

"""The facts by which the recovery rules decide what follows a failed attempt: what kind of failure it was, whether two
errors are the same, what was tried. No model is asked.

Messages are compared without what differs between runs:

    "E  File 'till/money.py', line 7: name 'share' is not defined"
    "E  File 'till/receipt.py', line 12: name 'rest' is not defined"

are equal once paths, lines and quoted values are replaced by placeholders.
"""

import difflib
import re
from collections.abc import Sequence

from msgspec import Struct, field

from clean_room_agent.artifacts.context import RefinementRequest
from clean_room_agent.artifacts.outcomes import AttemptOutcome, DoctorDecision, Drawn
from clean_room_agent.orchestrator.config import Category, RecoveryConfig

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
    (
        re.compile(r"\b(?:\d{4}-\d\d-\d\d[T ])?\d{1,2}:\d\d:\d\d(?:\.\d+)?\b|\b\d{4}-\d\d-\d\d\b"),
        "<time>",
    ),
    (re.compile(r"\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds?|minutes?)\b"), "<time>"),
    (re.compile(r"(?:[\w.@~+-]*/)+[\w.@+-]+|\b[\w-]+\.(?:pyi?|[cm]?[jt]sx?)\b"), "<path>"),
    (re.compile(r"\blines? \d+(?:-\d+)?|(?<=>):\d+(?::\d+)?"), "<line>"),
)
"""The order matters: a quoted path is a value."""
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


class DoctorSeen(Struct, frozen=True, kw_only=True):
    """What the decision takes into account about the doctor."""

    step: tuple[Advice, ...] = ()
    """The advice about earlier attempts at the step."""
    run: tuple[Advice, ...] = ()
    """All advice in the run so far, including the step's."""
    advice: Advice | None = None
    """The advice about the newest attempt; None while there is none."""
    strong: str = ""
    """Tag of the stronger model that can be asked; "" for none."""


class StepSeen(Struct, frozen=True, kw_only=True):
    """What the decision takes into account about the step."""

    attempts: tuple[AttemptSeen, ...]
    """Failed ones, oldest first; not empty."""
    max_attempts: int
    """Of the coder; each hint that was added since the first attempt allows as many more, unless the part can be replanned."""
    refinements_left: int = 0
    unshown: RefinementRequest | None = None
    """Its files that its context shows only in part, unless they were asked for before."""
    divisible: bool = False
    """Whether it names several files or symbols, so that a smaller step can be done first."""
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

    doctor: DoctorSeen = field(default_factory=DoctorSeen)

    @property
    def newest(self) -> AttemptSeen:
        """The last attempt."""
        return self.attempts[-1]

    @property
    def attempts_left(self) -> int:
        """Of the coder; a round of answers from the unchanged prompt counts as one."""
        own = [seen for seen in self.attempts if not seen.drawn.model]
        single = sum(not seen.drawn.unchanged for seen in own)
        return self.max_attempts - single - any(seen.drawn.unchanged for seen in own)

    @property
    def more_room(self) -> bool:
        """Whether an answer of the step was cut off, so that each later one gets more of the window."""
        return any(seen.outcome is AttemptOutcome.TRUNCATED for seen in self.attempts)


class RunSeen(Struct, frozen=True, kw_only=True):
    """What the decision takes into account about the run."""

    budget_spent: str = ""
    """Which budget is used up; "" while none is."""
    budget_share: float = 0.0
    """Of the budget that is most used up."""


class Situation(Struct, frozen=True, kw_only=True):
    """Everything that a decision takes into account, which is also what the record keeps."""

    step: StepSeen
    run: RunSeen
    config: RecoveryConfig

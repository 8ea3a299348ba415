"""The gate: is an adapter better than its base on the same held-out questions? Pure: answers in, a finding out.

What must hold, all of it:

| check | rule |
|---|---|
| examples | 200 or more; with fewer the adapter may only shadow its base |
| better | exact McNemar over the answers that flipped, p < .05 after Holm's correction across candidates, for the better |
| every task | the lower bound of the gain is above 0 when whole tasks are resampled (their examples are correlated) |
| skill | verdicts: the candidate's AUC is above the base's |
| readable | at most one percentage point fewer readable answers |
| latency | at most 1.2 times the base's median, as a run would wait: an unreadable answer costs its repair, too |
| other prompts | none of those that the same adapter serves is significantly worse |

**Verdicts.** A model that merely says yes more often looks better on any set in which yes is frequent. So each arm gets
the threshold that suits it best on the validation split, and balanced accuracy at that threshold counts: a shift of all
answers then changes nothing. Example: base scores .2 .3 .4 and candidate .6 .7 .8 for the truths no, no, yes. Both arms
put their threshold between the second and the third score, nothing flips, and the finding is a tie.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from clean_room_agent.artifacts.names import counted
from clean_room_agent.json_values import to_plain
from clean_room_agent.training.statistics import (
    LEVEL,
    RESAMPLES,
    ClusterSums,
    Interval,
    auc,
    balanced_accuracy,
    cluster_bootstrap,
    detectable_effect,
    holm,
    mcnemar,
    own_threshold,
)

MIN_EXAMPLES = 200
READABLE_MARGIN = 0.01
LATENCY_RATIO = 1.2
USUAL_FLIPS = 0.2
"""The share of answers that an adapter usually flips, assumed before anything is known about this one."""
SEED = 20260101

Status = Literal["passed", "failed", "tie", "shadow"]
"""tie: no answer flipped; shadow: too few examples to say."""


class Scored(Struct, frozen=True, kw_only=True):
    """One arm's answer to one question."""

    value: float = 0.0
    """The metric of the prompt, 0 to 1. For a verdict it follows from `yes` and the arm's threshold."""
    yes: float | None = None
    """The probability of the first word; None if the prompt asks for no verdict, or the answer was unreadable."""
    readable: bool = True
    latency_ms: float = 0.0


class AnswerPair(Struct, frozen=True, kw_only=True):
    """One held-out question with both answers."""

    key: str
    task: str
    """The task that the question belongs to: questions of one task are correlated."""
    base: Scored
    candidate: Scored
    truth: bool | None = None
    """For a verdict: whether the first word is right."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """By which flips are reported: repository, language, size of the change."""

    @property
    def gain(self) -> float:
        """What the candidate's answer is worth more."""
        return self.candidate.value - self.base.value


class Check(Struct, frozen=True):
    """One rule, whether it holds, and its figures in words."""

    name: str
    holds: bool
    says: str


class Verdicts(Struct, frozen=True, kw_only=True):
    """How well each arm tells the two classes apart."""

    base_auc: float
    candidate_auc: float
    base_threshold: float
    candidate_threshold: float
    base_balanced: float
    candidate_balanced: float


class Flip(Struct, frozen=True, kw_only=True):
    """A question that one arm answered better than the other."""

    key: str
    task: str
    better: bool


class Figures(Struct, frozen=True, kw_only=True):
    """The numbers of a comparison."""

    examples: int
    tasks: int
    base_mean: float
    candidate_mean: float
    gain: Interval
    """Of the mean value; for verdicts, of balanced accuracy."""
    p: float
    adjusted_p: float
    """After Holm's correction across candidates."""
    detectable: float
    """The smallest gain that so many examples show in 80 % of the cases."""


class GateFinding(Struct, frozen=True, kw_only=True):
    """The gate's decision, with everything that it is based on."""

    status: Status
    checks: tuple[Check, ...]
    figures: Figures
    flips: tuple[Flip, ...]
    flips_by: Mapping[str, Mapping[str, tuple[int, int]]]
    """Group -> its value -> (better, worse)."""
    verdicts: Verdicts | None = None

    @property
    def passed(self) -> bool:
        """Whether the adapter may be deployed."""
        return self.status == "passed"

    def as_object(self) -> dict[str, Any]:
        """The finding as the record and `--json` have it, with its figures on the same level as the rest."""
        found: dict[str, Any] = to_plain(self)
        return {**found.pop("figures"), **found}


def judge_candidate(
    pairs: Sequence[AnswerPair],
    *,
    validation: Sequence[AnswerPair] = (),
    others: Mapping[str, Sequence[AnswerPair]] | None = None,
    rivals: Sequence[float] = (),
    resamples: int = RESAMPLES,
) -> GateFinding:
    """The finding for one candidate.

    Args:
        pairs: the test split.
        validation: where each arm's threshold is set; needed for verdicts.
        others: pairs of other prompts that the same adapter serves, by prompt; of verdicts, `at_own_thresholds`.
        rivals: p-values of other candidates on the same test split.
        resamples: of the bootstrap.

    Raises:
        ValueError: there are no pairs, or verdicts without a validation split that holds both classes.
    """
    if not pairs:
        raise ValueError("nothing was compared")
    verdicts: Verdicts | None = None
    if pairs[0].truth is not None:
        pairs, verdicts = at_own_thresholds(pairs, validation)
    wins, losses = _count_flips(pairs)
    p = mcnemar(wins, losses)
    adjusted = holm([p, *rivals])[0]
    gain = cluster_bootstrap(
        _task_clusters(pairs), balanced=verdicts is not None, seed=SEED, resamples=resamples
    )
    flips = tuple(Flip(key=each.key, task=each.task, better=each.gain > 0) for each in pairs if each.gain)
    checks = (
        Check("examples", len(pairs) >= MIN_EXAMPLES, f"{len(pairs)} of the {MIN_EXAMPLES} that are needed"),
        Check(
            "better",
            wins > losses and adjusted < LEVEL,
            f"{counted(wins, 'answer')} better, {losses} worse; p = {p:.4f}"
            + (f", {adjusted:.4f} across candidates" if adjusted != p else ""),
        ),
        Check(
            "every task",
            gain.lower > 0,
            f"gain {gain.value:+.3f}, between {gain.lower:+.3f} and {gain.upper:+.3f} when tasks are drawn again",
        ),
        *([_skill_check(verdicts)] if verdicts else []),
        _readable_check(pairs),
        _latency_check(pairs),
        *(_not_worse(name, each) for name, each in sorted((others or {}).items())),
    )
    return GateFinding(
        status=_gate_status(checks, flips),
        checks=checks,
        figures=Figures(
            examples=len(pairs),
            tasks=len({each.task for each in pairs}),
            base_mean=sum(each.base.value for each in pairs) / len(pairs),
            candidate_mean=sum(each.candidate.value for each in pairs) / len(pairs),
            gain=gain,
            p=p,
            adjusted_p=adjusted,
            detectable=detectable_effect(len(pairs), len(flips) / len(pairs) or USUAL_FLIPS),
        ),
        flips=flips,
        flips_by=_by_group(pairs),
        verdicts=verdicts,
    )


WORDS: Mapping[Status, str] = {
    "passed": "is better than its base",
    "failed": "did not pass the gate",
    "tie": "answers as its base does",
    "shadow": "cannot be judged on so few examples",
}


def finding_lines(tag: str, found: Mapping[str, Any]) -> list[str]:
    """The finding about the adapter with this tag in lines for people; `found` is as `as_object` gives it."""
    examples, tasks = counted(found["examples"], "example"), counted(found["tasks"], "task")
    lines = [f"{tag} {WORDS[found['status']]}: {examples} of {tasks}"]
    lines += [
        f"  {'ok' if check['holds'] else 'NO':<3} {check['name']}: {check['says']}"
        for check in found["checks"]
    ]
    lines.append(f"  a gain of {found['detectable']:.1%} would show in 80 % of the cases")
    for name, values in found["flips_by"].items():
        for value, (better, worse) in values.items():
            lines.append(f"      {name} {value}: {better} better, {worse} worse")
    return lines


def before_spending(examples: int) -> str:
    """What an evaluation with so many examples could show, in words."""
    if examples < MIN_EXAMPLES:
        return (
            f"{examples} held-out examples: {MIN_EXAMPLES - examples} are missing for a verdict; "
            "the adapter can only shadow its base"
        )
    effect = detectable_effect(examples, USUAL_FLIPS)
    return (
        f"{examples} held-out examples show a gain of {effect:.1%} or more in 80 % of the cases, "
        f"if {USUAL_FLIPS:.0%} of the answers flip"
    )


def _gate_status(checks: Sequence[Check], flips: Sequence[Flip]) -> Status:
    if not checks[0].holds:
        return "shadow"
    if not flips:
        return "tie"
    return "passed" if all(check.holds for check in checks) else "failed"


def at_own_thresholds(
    pairs: Sequence[AnswerPair], validation: Sequence[AnswerPair]
) -> tuple[tuple[AnswerPair, ...], Verdicts]:
    """The verdicts with their values: right or wrong at the threshold that suits each arm best on the validation split.

    Raises:
        ValueError: a split lacks one of the two answers.
    """
    truths = [bool(each.truth) for each in pairs]
    for name, split in (("validation", validation), ("test", pairs)):
        if len({each.truth for each in split}) < 2:
            raise ValueError(f"the {name} split lacks one of the two answers")
    arms = []
    for name in ("base", "candidate"):
        threshold = own_threshold(_arm_scores(validation, name), [bool(each.truth) for each in validation])
        scores = _arm_scores(pairs, name)
        arms.append((scores, threshold, auc(scores, truths), balanced_accuracy(scores, truths, threshold)))
    (base, base_at, base_auc, base_balanced), (other, other_at, other_auc, other_balanced) = arms
    scored = tuple(
        replace(
            each,
            base=_rescored_answer(each.base, (base[place] >= base_at) == truths[place]),
            candidate=_rescored_answer(each.candidate, (other[place] >= other_at) == truths[place]),
        )
        for place, each in enumerate(pairs)
    )
    return scored, Verdicts(
        base_auc=base_auc,
        candidate_auc=other_auc,
        base_threshold=base_at,
        candidate_threshold=other_at,
        base_balanced=base_balanced,
        candidate_balanced=other_balanced,
    )


def _arm_scores(pairs: Sequence[AnswerPair], arm: str) -> list[float]:
    """The scores of one arm; an unreadable answer gets the worst score."""
    answers = [(each.truth, (each.base if arm == "base" else each.candidate).yes) for each in pairs]
    return [float(not truth) if yes is None else yes for truth, yes in answers]


def _rescored_answer(answer: Scored, right: bool) -> Scored:
    return replace(answer, value=float(right and answer.yes is not None))


def _count_flips(pairs: Sequence[AnswerPair]) -> tuple[int, int]:
    """How many answers became better, and worse."""
    return sum(each.gain > 0 for each in pairs), sum(each.gain < 0 for each in pairs)


def _task_clusters(pairs: Sequence[AnswerPair]) -> list[ClusterSums]:
    sums: dict[str, list[float]] = {}
    for each in pairs:
        known = sums.setdefault(each.task, [0, 0, 0.0, 0.0])
        column = 1 if each.truth is False else 0
        known[column] += 1
        known[column + 2] += each.gain
    return [ClusterSums(int(a), int(b), c, d) for _, (a, b, c, d) in sorted(sums.items())]


def _skill_check(verdicts: Verdicts) -> Check:
    return Check(
        "skill",
        verdicts.candidate_auc > verdicts.base_auc,
        f"AUC {verdicts.base_auc:.3f} -> {verdicts.candidate_auc:.3f}, balanced accuracy "
        f"{verdicts.base_balanced:.3f} -> {verdicts.candidate_balanced:.3f} at own thresholds "
        f"({verdicts.base_threshold:.3f}, {verdicts.candidate_threshold:.3f})",
    )


def _readable_check(pairs: Sequence[AnswerPair]) -> Check:
    base = sum(each.base.readable for each in pairs) / len(pairs)
    candidate = sum(each.candidate.readable for each in pairs) / len(pairs)
    return Check(
        "readable", candidate >= base - READABLE_MARGIN, f"{base:.1%} -> {candidate:.1%} of the answers"
    )


def _latency_check(pairs: Sequence[AnswerPair]) -> Check:
    base = median(each.base.latency_ms for each in pairs)
    candidate = median(each.candidate.latency_ms for each in pairs)
    return Check("latency", candidate <= LATENCY_RATIO * base, f"median {base:.0f} -> {candidate:.0f} ms")


def _not_worse(name: str, pairs: Sequence[AnswerPair]) -> Check:
    wins, losses = _count_flips(pairs)
    p = mcnemar(wins, losses)
    says = f"{counted(wins, 'answer')} better, {losses} worse; p = {p:.4f}"
    return Check(f"other prompt {name}", wins >= losses or p >= LEVEL, says)


def _by_group(pairs: Sequence[AnswerPair]) -> Mapping[str, Mapping[str, tuple[int, int]]]:
    flips: defaultdict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
    for each in pairs:
        if each.gain:
            for name, value in each.groups.items():
                flips[name][value, each.gain > 0] += 1
    return {
        name: {
            value: (known[value, True], known[value, False])
            for value in sorted({value for value, _ in known})
        }
        for name, known in sorted(flips.items())
    }

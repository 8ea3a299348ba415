"""Charges each failed task to the stage that lost it, and computes what a perfect stage would gain.

**The waterfall.** The stages in the order of a run, and what must hold of every file that the accepted change needed and
that existed before:

| stage | holds when |
|---|---|
| `retrieval` | the file was judged, or included without asking; a rank below those that are judged does not count |
| `scope` | some pass included it |
| `precision` | some piece of it is primary, and where changed definitions were judged, one of these |
| `budget` | a primary piece of it was in a package, not dropped for want of tokens |
| `planning` | a step names it, or a person gave the plan |
| `format` | of each step that failed, some edit was applied |
| `implement` | no step failed, and the whole passed |

A failed task is charged to the first stage that does not hold, which made success impossible. Whether the stages after
it would have held is unknown. A task without a known accepted change (it was never solved, with the same words, in the
same repository) is not charged, and neither is one that failed only because of infrastructure, or one of which no test shows
whether it is done.

**Headroom.** Replace one stage's recorded output by the accepted change's, and take the later stages from the record:
if a later stage has judged these very files, its recorded verdict counts; if it never saw them, the rate at which it
holds over the whole record counts. So `at_most` counts the failed tasks that no recorded verdict of a later stage would
still lose, and `expected` sums the products of the rates. Earlier stages no longer matter, since the stage's output is
given. No model is asked, and nothing is assumed about a later stage's answer to a prompt that it was never shown:
`cra replay --model` asks for that.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from clean_room_agent.artifacts.outcomes import AttemptOutcome, PassType, RunStatus
from clean_room_agent.db.raw.analysis import EndedPass, JudgedItem
from clean_room_agent.training.gold import GoldFile
from clean_room_agent.training.logs import NOT_JUDGED, PLANNING, TaskLog

Stage = Literal["retrieval", "scope", "precision", "budget", "planning", "format", "implement"]
STAGES: tuple[Stage, ...] = ("retrieval", "scope", "precision", "budget", "planning", "format", "implement")
"""In the order of a run."""
Unattributed = Literal[
    "no accepted change is known",
    "infrastructure",
    "ended before its stages were through",
    "no test shows whether it is done",
]


class Charge(Struct, frozen=True, kw_only=True):
    """One failed task and what made its success impossible."""

    task_id: str
    stage: Stage
    prompt: str
    """The prompt whose answer was wrong; "" if the program was to blame (retrieval, a score threshold, the budget)."""
    call_ids: tuple[int, ...]
    """The calls with the wrong answers."""


class Headroom(Struct, frozen=True, kw_only=True):
    """What a perfect stage would gain among the failed tasks whose accepted change is known."""

    at_most: int
    expected: float


class Waterfall(Struct, frozen=True, kw_only=True):
    """The ended runs of a record, and where the failed ones were lost."""

    tasks: int
    solved: int
    unproven: int
    """Those of which no test shows whether they are solved."""
    charges: tuple[Charge, ...]
    """One for each failed task that can be charged, oldest first."""
    unattributed: Mapping[Unattributed, int]
    required_recall: float | None
    """Mean share of the required files that came into scope, over tasks whose accepted change is known."""
    context_recall: float | None
    """Mean share, over failed tasks, of the files that the solved run showed in addition to those it changed."""
    headroom: Mapping[Stage, Headroom]

    @property
    def by_stage(self) -> Mapping[Stage, int]:
        """Failed tasks by the stage they are charged to, with an entry for every stage."""
        counts = Counter(charge.stage for charge in self.charges)
        return {stage: counts[stage] for stage in STAGES}

    @property
    def by_prompt(self) -> Mapping[str, int]:
        """Failed tasks by the prompt they are charged to, most first, without those for which no prompt is to blame."""
        return dict(Counter(charge.prompt for charge in self.charges if charge.prompt).most_common())


class _Checked(Struct, frozen=True, kw_only=True):
    """Whether each stage held; None if it was never tried. `found` are the required files that came into scope."""

    task: TaskLog
    held: Mapping[Stage, bool | None]
    found: int
    required: int


def waterfall_of(tasks: Iterable[TaskLog]) -> Waterfall:
    """The waterfall of these runs, with the headroom of each stage."""
    total = solved = unproven = 0
    unattributed: Counter[Unattributed] = Counter()
    charges: list[Charge] = []
    checked: list[_Checked] = []
    failed: list[_Checked] = []
    shown: dict[tuple[str, str], frozenset[str]] = {}
    for task in tasks:
        total += 1
        solved += task.solved
        if task.solved:
            shown[task.run.repo_path, task.run.description] = _context_files(task)
        if task.run.status is RunStatus.UNPROVEN:
            unproven += 1
            unattributed["no test shows whether it is done"] += 1
            continue
        if task.gold is None:
            unattributed["no accepted change is known"] += 1
            continue
        verdict = _check(task)
        checked.append(verdict)
        if task.solved:
            continue
        charge = _charge(verdict)
        if isinstance(charge, Charge):
            charges.append(charge)
            failed.append(verdict)
        else:
            unattributed[charge] += 1
    recalls = [each.found / each.required for each in checked if each.required]
    contexts = [
        len(wanted & _context_files(each.task)) / len(wanted)
        for each in failed
        if (wanted := shown.get((each.task.run.repo_path, each.task.run.description), frozenset()))
    ]
    return Waterfall(
        tasks=total,
        solved=solved,
        unproven=unproven,
        charges=tuple(charges),
        unattributed=dict(sorted(unattributed.items())),
        required_recall=_mean(recalls),
        context_recall=_mean(contexts),
        headroom=_headroom(checked, failed),
    )


def recalls_all(task: TaskLog) -> bool:
    """Whether every file that the accepted change needed came into scope: what makes a solved task a good example."""
    if task.gold is None:
        return False
    verdict = _check(task)
    return verdict.found == verdict.required


def _check(task: TaskLog) -> _Checked:
    assert task.gold is not None
    required = task.gold.required
    pairs = [(file, task.items_of(file.path)) for file in required]
    steps = task.files_named(PassType.PART_PLAN, PassType.ADJUST)
    given = not any(each.pass_type in PLANNING for each in task.passes)  # a person's plan is no model's fault
    held: dict[Stage, bool | None] = {
        "retrieval": _all([_retrieved(items) for _, items in pairs]),
        "scope": _all([_in_scope(items) for _, items in pairs]),
        "precision": _all([_is_primary(file, items) for file, items in pairs]),
        "budget": _all([_is_packed(file, items) for file, items in pairs]),
    }
    ready = all(held[stage] for stage in ("retrieval", "scope", "precision", "budget"))
    planned = given or all(file.path in steps for file in required)
    held["planning"] = planned if ready or planned else None
    held["format"], held["implement"] = _edits(task) if held["planning"] else (None, None)
    return _Checked(
        task=task,
        held=held,
        found=sum(bool(_in_scope(items)) for _, items in pairs),
        required=len(required),
    )


def _all(verdicts: list[bool | None]) -> bool | None:
    """False if one is; otherwise None if one is unknown; otherwise True."""
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _retrieved(items: tuple[JudgedItem, ...]) -> bool:
    return any(item.included or (item.call_id is not None and item.stage not in NOT_JUDGED) for item in items)


def _in_scope(items: tuple[JudgedItem, ...]) -> bool | None:
    return any(item.included for item in items) if _retrieved(items) else None


def _is_primary(file: GoldFile, items: tuple[JudgedItem, ...]) -> bool | None:
    if not _in_scope(items):
        return None
    primary = [item for item in items if item.included and item.detail == "primary"]
    changed = [item for item in items if item.symbol is not None and file.touches(item.symbol)]
    if changed and not any(item in primary for item in changed):
        return any(item.symbol is None for item in primary)
    return bool(primary)


def _is_packed(file: GoldFile, items: tuple[JudgedItem, ...]) -> bool | None:
    if not _is_primary(file, items):
        return None
    packed = [item for item in items if item.stage == "assembly" and item.detail == "primary"]
    return not packed or any(item.included for item in packed)


def _edits(task: TaskLog) -> tuple[bool | None, bool | None]:
    """Whether format and implementation held, for the steps that failed, or for the whole if none did."""
    if task.solved:
        return True, True
    failing = [each for each in task.passes if each.pass_type is PassType.IMPLEMENT and not each.success]
    tried = [each for each in failing if _outcomes(task, each)]
    if failing and not tried:
        return None, None
    if any(not any(applied for _, applied in _outcomes(task, each)) for each in tried):
        return False, None
    return True, False


def _outcomes(task: TaskLog, each: EndedPass) -> list[tuple[AttemptOutcome, bool]]:
    """The pass's attempts that a model is to blame for."""
    return [
        (attempt.outcome, attempt.applied)
        for attempt in task.attempts
        if attempt.pass_id == each.pass_id and attempt.outcome is not AttemptOutcome.INFRASTRUCTURE
    ]


def _charge(verdict: _Checked) -> Charge | Unattributed:
    stage = next((each for each in STAGES if verdict.held[each] is False), None)
    task = verdict.task
    if stage is None:
        broken = any(attempt.outcome is AttemptOutcome.INFRASTRUCTURE for attempt in task.attempts)
        return "infrastructure" if broken else "ended before its stages were through"
    prompt, calls = _blame(task, stage)
    return Charge(task_id=task.run.task_id, stage=stage, prompt=prompt, call_ids=calls)


def _blame(task: TaskLog, stage: Stage) -> tuple[str, tuple[int, ...]]:
    """The prompt that is to blame, and its calls."""
    assert task.gold is not None
    if stage in {"format", "implement"}:
        failing = {each.pass_id for each in task.passes if not each.success}
        bad = stage == "implement"
        calls = [
            each.call_id
            for each in task.attempts
            if each.pass_id in failing and each.call_id and each.applied == bad
        ]
        return "implement", tuple(dict.fromkeys(calls))
    if stage == "planning":
        unnamed = [f.path for f in task.gold.required if f.path not in task.files_named(PassType.META_PLAN)]
        return ("meta_plan" if unnamed else "part_plan"), ()
    if stage in {"scope", "precision"}:
        wrong = [
            item for file in task.gold.required for item in _wrong(file, task.items_of(file.path), stage)
        ]
        asked = [item for item in wrong if item.call_id is not None]
        prompt = Counter(item.prompt for item in asked).most_common(1)[0][0] if asked else ""
        calls = [item.call_id for item in asked if item.call_id is not None and item.prompt == prompt]
        return prompt, tuple(dict.fromkeys(calls))
    return "", ()


def _wrong(file: GoldFile, items: tuple[JudgedItem, ...], stage: Stage) -> list[JudgedItem]:
    """The decisions that wrongly left out the file or its changed pieces."""
    if stage == "scope":
        return [item for item in items if _in_scope(items) is False and not item.included]
    if _is_primary(file, items) is not False:
        return []
    low = [item for item in items if item.symbol is not None and item.stage not in NOT_JUDGED]
    return [item for item in low if file.touches(item.symbol or "")] or low


def _context_files(task: TaskLog) -> frozenset[str]:
    """The files that the run's packages for writing showed and the accepted change left as they were."""
    edited = {file.path for file in task.gold.files} if task.gold else set()
    passes = {each.pass_id for each in task.passes if each.pass_type is PassType.IMPLEMENT}
    return frozenset(
        item.path
        for item in task.items
        if item.stage == "assembly" and item.included and item.pass_id in passes and item.path not in edited
    )


def _headroom(checked: list[_Checked], failed: list[_Checked]) -> Mapping[Stage, Headroom]:
    rates = {stage: _rate(stage, checked) for stage in STAGES}
    found = {}
    for number, stage in enumerate(STAGES):
        at_most, expected = 0, 0.0
        for each in failed:
            later = [(name, each.held[name]) for name in STAGES[number + 1 :]]
            # What fails only because its input was wrong was never tried: see `_check`, which leaves it unknown.
            if not any(held is False for _, held in later):
                at_most += 1
                expected += _product(rates[name] for name, held in later if held is None)
        found[stage] = Headroom(at_most=at_most, expected=expected)
    return found


def _rate(stage: Stage, checked: list[_Checked]) -> float:
    """How often the stage held when it was tried; 0 if it never was."""
    tried = [each.held[stage] for each in checked if each.held[stage] is not None]
    return sum(map(bool, tried)) / len(tried) if tried else 0.0


def _product(rates: Iterable[float]) -> float:
    result = 1.0
    for rate in rates:
        result *= rate
    return result


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None

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
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Literal

from msgspec import Struct

from clean_room_agent.artifacts.outcomes import AttemptOutcome, PassType, RunStatus
from clean_room_agent.db.raw.analysis import JudgedItem
from clean_room_agent.training.gold import AcceptedChange, AcceptedFile
from clean_room_agent.training.logs import NOT_JUDGED, PLANNING, TaskLog

Stage = Literal["retrieval", "scope", "precision", "budget", "planning", "format", "implement"]
STAGES: tuple[Stage, ...] = ("retrieval", "scope", "precision", "budget", "planning", "format", "implement")
"""In the order of a run."""
OF_FILES: tuple[Stage, ...] = ("retrieval", "scope", "precision", "budget")
"""Those that choose the context, for each file."""
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
        checked.append(_check_task(task, task.gold))
        if task.solved:
            continue
        stage = next((each for each in STAGES if checked[-1].held[each] is False), None)
        if stage is not None:
            prompt, calls = _prompt_to_blame(task, task.gold, stage)
            call_ids = tuple(dict.fromkeys(calls))
            charges.append(Charge(task_id=task.run.task_id, stage=stage, prompt=prompt, call_ids=call_ids))
            failed.append(checked[-1])
        elif any(attempt.outcome is AttemptOutcome.INFRASTRUCTURE for attempt in task.attempts):
            unattributed["infrastructure"] += 1
        else:
            unattributed["ended before its stages were through"] += 1
    contexts = [
        len(wanted & _context_files(each.task)) / len(wanted)
        for each in failed
        if (wanted := shown.get((each.task.run.repo_path, each.task.run.description)))
    ]
    return Waterfall(
        tasks=total,
        solved=solved,
        unproven=unproven,
        charges=tuple(charges),
        unattributed=dict(sorted(unattributed.items())),
        required_recall=_mean([each.found / each.required for each in checked if each.required]),
        context_recall=_mean(contexts),
        headroom=_headroom(checked, failed),
    )


def recalls_all(task: TaskLog) -> bool:
    """Whether every file that the accepted change needed came into scope: what makes a solved task a good example."""
    if task.gold is None:
        return False
    verdict = _check_task(task, task.gold)
    return verdict.found == verdict.required


def _check_task(task: TaskLog, gold: AcceptedChange) -> _Checked:
    files = [_held_for(file, task.items_of(file.path)) for file in gold.required]
    held: dict[Stage, bool | None] = {}
    for stage in OF_FILES:
        verdicts = [each.get(stage) for each in files]
        held[stage] = False if False in verdicts else None if None in verdicts else True
    steps = task.files_named(PassType.PART_PLAN, PassType.ADJUST)
    given = not any(each.pass_type in PLANNING for each in task.passes)  # a person's plan is no model's fault
    planned = given or all(file.path in steps for file in gold.required)
    held["planning"] = planned if planned or all(held[stage] for stage in OF_FILES) else None
    held["format"], held["implement"] = _edits_held(task) if held["planning"] else (None, None)
    found = sum(bool(each.get("scope")) for each in files)
    return _Checked(task=task, held=held, found=found, required=len(files))


def _held_for(file: AcceptedFile, items: tuple[JudgedItem, ...]) -> dict[Stage, bool]:
    """Whether each of the stages that choose context held for the file, up to the first that did not."""
    judged = [item for item in items if item.call_id is not None and item.stage not in NOT_JUDGED]
    included = [item for item in items if item.included]
    held: dict[Stage, bool] = {"retrieval": bool(included or judged)}
    if held["retrieval"]:
        held["scope"] = bool(included)
    if included:
        primary = [item for item in included if item.detail == "primary"]
        changed = [item for item in items if item.symbol is not None and file.touches(item.symbol)]
        missed = bool(changed) and not any(item in primary for item in changed)
        held["precision"] = any(item.symbol is None for item in primary) if missed else bool(primary)
    if held.get("precision"):
        packed = [item for item in items if item.stage == "assembly" and item.detail == "primary"]
        held["budget"] = not packed or any(item.included for item in packed)
    return held


def _edits_held(task: TaskLog) -> tuple[bool | None, bool | None]:
    """Whether format and implementation held, for the steps that failed, or for the whole if none did."""
    if task.solved:
        return True, True
    steps = (each for each in task.passes if each.pass_type is PassType.IMPLEMENT)
    failing = [each.pass_id for each in steps if not each.success]
    applied: dict[str, bool] = {}
    for attempt in task.attempts:  # those that a model is to blame for
        if attempt.pass_id in failing and attempt.outcome is not AttemptOutcome.INFRASTRUCTURE:
            applied[attempt.pass_id] = applied.get(attempt.pass_id, False) or attempt.applied
    if failing and not applied:
        return None, None
    return (True, False) if all(applied.values()) else (False, None)


def _prompt_to_blame(task: TaskLog, gold: AcceptedChange, stage: Stage) -> tuple[str, list[int]]:
    """The prompt that is to blame, and its calls."""
    if stage in {"format", "implement"}:
        failing = {each.pass_id for each in task.passes if not each.success}
        return "implement", [
            each.call_id
            for each in task.attempts
            if each.pass_id in failing and each.call_id and each.applied == (stage == "implement")
        ]
    if stage == "planning":
        named = task.files_named(PassType.META_PLAN)
        return ("part_plan" if all(file.path in named for file in gold.required) else "meta_plan"), []
    if stage in {"scope", "precision"}:
        wrong = [
            item for file in gold.required for item in _wrong_decisions(file, task.items_of(file.path), stage)
        ]
        asked = [item for item in wrong if item.call_id is not None]
        prompt = Counter(item.prompt for item in asked).most_common(1)[0][0] if asked else ""
        return prompt, [item.call_id for item in asked if item.call_id and item.prompt == prompt]
    return "", []


def _wrong_decisions(file: AcceptedFile, items: tuple[JudgedItem, ...], stage: Stage) -> list[JudgedItem]:
    """The decisions that wrongly left out the file or its changed pieces."""
    if _held_for(file, items).get(stage) is not False:
        return []
    if stage == "scope":
        return [item for item in items if not item.included]
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
    rates: dict[Stage, float] = {}
    """How often the stage held when it was tried; 0 if it never was."""
    for stage in STAGES:
        tried = [bool(each.held[stage]) for each in checked if each.held[stage] is not None]
        rates[stage] = _mean(tried) or 0.0
    found = {}
    for number, stage in enumerate(STAGES):
        # What fails only because its input was wrong was never tried: see `_check_task`, which leaves it unknown.
        later = [{name: each.held[name] for name in STAGES[number + 1 :]} for each in failed]
        won = [each for each in later if False not in each.values()]
        chances = [prod(rates[name] for name, held in each.items() if held is None) for each in won]
        found[stage] = Headroom(at_most=len(won), expected=sum(chances))
    return found


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None

"""Validates plans: corrects what is unambiguous, and describes the other faults in words that the plan's author can act
on.

Names of files are completed from the tree, never by similarity: `money.py` is `till/money.py` if no other file has that
name. A path that could mean two files, and a new file with a new name, stay as they were written; where a person may have
mistyped one, they are asked.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import zip_longest
from typing import TypeVar

from clean_room_agent.artifacts.names import is_plan_id
from clean_room_agent.artifacts.plans import (
    FileRole,
    MetaPlan,
    Part,
    PartPlan,
    PlanAdjustment,
    PlanArtifact,
    PlanStep,
    TargetFile,
)
from clean_room_agent.execute.edits.rules import Places, is_control_path, path_fault

EntryT = TypeVar("EntryT", Part, PlanStep)
WORD = re.compile(r"[^\W\d_]+|\d+")
LONGER_WORD = 4
"""Letters of a word in which a slip of the fingers can be told from another name."""
ALIKE = 0.8
"""Likeness of two such words from which on one may be the other, mistyped: `mony` and `money`."""


MAX_WORDS = 400
"""Characters of a task that describe it in a part or a step; every prompt shows the whole task as well."""


def corrected_steps(
    steps: Sequence[PlanStep], paths: Collection[str]
) -> tuple[tuple[PlanStep, ...], tuple[str, ...]]:
    """The steps in the same order with unambiguous corrections, given the `paths` in the tree; and a note on each
    change.

    A file to modify or delete that neither exists nor is created by any of the steps is the one that `only_match` finds;
    a file to create that exists before the first step is to be modified, unless one of the steps deletes it.
    """
    roles = {(target.path, target.role) for step in steps for target in step.target_files}
    created = {path for path, role in roles if role == "create"}
    deleted = {path for path, role in roles if role == "delete"}
    notes: list[str] = []

    def corrected(target: TargetFile) -> TargetFile:
        path, role = target.path, target.role
        if role == "create" and path in paths and path not in deleted:
            notes.append(f"{path} exists: to be modified, not created")
            return target.model_copy(update={"role": "modify"})
        if role == "create" or path in paths or path in created:
            return target
        found = only_match(path, paths)
        if not found:
            return target
        notes.append(f"{path} does not exist and can only be {found}")
        return target.model_copy(update={"path": found})

    def files(step: PlanStep) -> tuple[TargetFile, ...]:
        return tuple(dict.fromkeys(corrected(target) for target in step.target_files))

    done = tuple(step.model_copy(update={"target_files": files(step)}) for step in steps)
    return done, tuple(dict.fromkeys(notes))


def corrected_needs(entries: Sequence[EntryT]) -> tuple[tuple[EntryT, ...], tuple[str, ...]]:
    """The parts or steps without duplicates and without dependencies on themselves; a single one has no dependencies at
    all.
    """
    notes: list[str] = []
    once = tuple(dict.fromkeys(entries))
    if len(once) < len(entries):
        notes.append(
            f"written twice: {', '.join(sorted({one.id for one in entries if entries.count(one) > 1}))}"
        )
    kept: list[EntryT] = []
    for one in once:
        needs = () if len(once) == 1 else tuple(name for name in one.depends_on if name != one.id)
        if needs != one.depends_on:
            left = ", ".join(name for name in one.depends_on if name not in needs)
            notes.append(
                f"{one.id} stands alone and needs nothing: {left}"
                if len(once) == 1
                else f"{one.id} does not need itself"
            )
        kept.append(one.model_copy(update={"depends_on": needs}))
    return tuple(kept), tuple(notes)


def only_match(path: str, paths: Collection[str]) -> str:
    """The only one of `paths` that ends with `path`, or else has the same file name; "" if there is none, or several."""
    meant, wanted = ending_with(path, paths), _with_slashes(path)
    if meant or path_fault(wanted):
        return meant
    return _only_ending_with(paths, f"/{wanted.rpartition('/')[2]}")


def ending_with(path: str, paths: Collection[str]) -> str:
    """The only one of `paths` that equals `path` apart from folders or a slash in front; "" if none, or several."""
    wanted = _with_slashes(path)
    if wanted.startswith("/"):
        return wanted[1:] if wanted[1:] in paths else ""
    if path_fault(wanted):
        return ""
    return wanted if wanted in paths else _only_ending_with(paths, f"/{wanted}")


def mistyped(path: str, paths: Collection[str]) -> str:
    """The one of `paths` that a person who wrote `path` may have meant, best first; "" if there is none.

    They differ in folders in front, in case, in what stands between words, or in a few letters of one longer word:
    `till/mony.py` may be `till/money.py`, but `test_b.py` is not `test_a.py`, nor `v2.py` `v1.py`.
    """
    meant = ending_with(path, paths)
    if path in paths or meant or path_fault(_with_slashes(path)):
        return "" if path in paths else meant
    wanted, inner = _with_slashes(path), _with_slashes(path).partition("/")[2]
    while "/" in inner:
        if inner in paths:
            return inner
        inner = inner.partition("/")[2]
    alike = ((_path_likeness(wanted, known), known) for known in paths)
    likeness, known = max(alike, default=(0.0, ""))
    return known if likeness else ""


def _path_likeness(one: str, other: str) -> float:
    """How alike two paths are, 0 to 1; 0 if they differ in more than letters of one word."""
    pairs = list(zip_longest(WORD.findall(one.lower()), WORD.findall(other.lower()), fillvalue=""))
    unlike = [pair for pair in pairs if pair[0] != pair[1]]
    if len(unlike) > 1 or any(
        not word.isalpha() or len(word) < LONGER_WORD for pair in unlike for word in pair
    ):
        return 0.0
    if not unlike or sorted(unlike[0][0]) == sorted(unlike[0][1]):  # letters in another order
        return 1.0
    ratio = SequenceMatcher(None, *unlike[0], autojunk=False).ratio()
    return ratio if ratio >= ALIKE else 0.0


def filled_role(path: str, paths: Collection[str]) -> FileRole:
    """What is done with a file that a plan merely names: modified if it exists, else created."""
    return "modify" if path in paths else "create"


def _with_slashes(path: str) -> str:
    return path.strip().replace("\\", "/")


def _only_ending_with(paths: Collection[str], ending: str) -> str:
    found = [known for known in paths if f"/{known}".endswith(ending)]
    return found[0] if len(found) == 1 else ""


def shortened(task: str) -> str:
    """The task's words, or only their beginning if there are many."""
    words = task.strip()
    if len(words) <= MAX_WORDS:
        return words
    return f"{words[:MAX_WORDS].rsplit(maxsplit=1)[0]} ..."


def meta_plan_faults(plan: MetaPlan, *, max_parts: int) -> tuple[str, ...]:
    """The faults of a plan's parts, in order; empty for a plan that can be followed."""
    faults = _count_faults(len(plan.parts), max_parts, "part")
    faults += _id_faults([part.id for part in plan.parts], "part")
    faults += _dependency_faults({part.id: part.depends_on for part in plan.parts}, "part")
    for part in plan.parts:
        if not part.description.strip():
            faults.append(f"part {part.id} has no description")
        faults += [f"part {part.id}: {fault}" for fault in _path_faults(part.affected_files)]
    return tuple(faults)


def part_plan_faults(plan: PartPlan, *, paths: Collection[str], max_steps: int) -> tuple[str, ...]:
    """The faults of a part's steps, in order. `paths` are the files in the tree now, best as `Places`."""
    return tuple(_count_faults(len(plan.steps), max_steps, "step") + _steps_faults(plan.steps, paths))


def part_plan_doubts(plan: PartPlan, part: Part, *, exists: Callable[[str], bool]) -> tuple[str, ...]:
    """Doubts about a plan that may still be intended, raised only once: none of its steps touches a file that the part
    names.
    """
    own = [path for path in part.affected_files if exists(path)]
    touched = {target.path for step in plan.steps for target in step.target_files}
    if not own or not touched.isdisjoint(own):
        return ()
    return (f"no step changes {' or '.join(own)}, which this part is about",)


def adjustment_faults(
    plan: PlanAdjustment,
    *,
    completed: tuple[PlanStep, ...],
    failed: tuple[PlanStep, ...],
    paths: Collection[str],
    max_steps: int,
) -> tuple[str, ...]:
    """The faults of revised steps. None may have the id of a step that is done or failed, or need one that failed."""
    faults = []
    if len(plan.revised_steps) > max_steps:
        faults.append(f"at most {max_steps} steps are allowed, not {len(plan.revised_steps)}")
    done = {step.id for step in completed}
    lost = {step.id for step in failed} - done
    for step in plan.revised_steps:
        if step.id in done:
            faults.append(f"step {step.id} is done and cannot be changed; leave it out or use another id")
        if step.id in lost:
            faults.append(f"step {step.id} failed; leave it out or use another id")
        faults += [f"step {step.id} needs {name}, which failed" for name in step.depends_on if name in lost]
    return tuple(faults + _steps_faults(plan.revised_steps, paths, known=done | lost))


def artifact_faults(plan: PlanArtifact) -> tuple[str, ...]:
    """The faults of a plan file, each beginning with the field."""
    faults = [] if plan.affected_files else ["affected_files: at least one file is needed"]
    paths = [file.path for file in plan.affected_files]
    faults += [f"affected_files: {path} stands twice" for path in _repeated_names(paths)]
    faults += [f"affected_files: {fault}" for fault in _path_faults(paths)]
    return tuple(faults + (_followed_faults(plan) if plan.as_steps else []))


def in_order(needs: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """The names such that each comes after those it needs, as near to the order given as can be; unknown needs are ignored.

    An order that serves already stays as it is: a, b (needs a), c stays a, b, c.

    Raises:
        CycleError: some names need one another.
    """
    place = {name: number for number, name in enumerate(needs)}
    sorter = TopologicalSorter(
        {name: [need for need in needed if need in place] for name, needed in needs.items()}
    )
    sorter.prepare()
    order: list[str] = []
    ready: list[tuple[int, str]] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heappush(ready, (place[name], name))
        _, first = heappop(ready)
        order.append(first)
        sorter.done(first)
    return tuple(order)


def _followed_faults(plan: PlanArtifact) -> list[str]:
    """What keeps a plan from being followed step by step."""
    parts = plan.meta_plan.parts
    faults = [f"meta_plan: {fault}" for fault in meta_plan_faults(plan.meta_plan, max_parts=len(parts))]
    if sorted(part.id for part in parts) != sorted(entry.part_id for entry in plan.part_plans):
        faults.append("part_plans: each part of meta_plan needs one, and no other is of use")
    for entry in plan.part_plans:
        found = _count_faults(len(entry.steps), len(entry.steps), "step") + _written_faults(entry.steps)
        faults += [f"part_plans: {entry.part_id}: {fault}" for fault in found]
    targets = {
        target.path for entry in plan.part_plans for step in entry.steps for target in step.target_files
    }
    if targets != {file.path for file in plan.affected_files}:
        faults.append("affected_files: with as_steps these are the target_files of the steps, and no others")
    return faults


def _steps_faults(
    steps: tuple[PlanStep, ...], paths: Collection[str], *, known: Iterable[str] = ()
) -> list[str]:
    """The faults of the steps in themselves; if there are none, where they do not find the files as they expect them."""
    written = _written_faults(steps, known=known)
    return written or [fault for fault, _ in _step_by_step(steps, Places.of(paths))]


def _written_faults(steps: tuple[PlanStep, ...], *, known: Iterable[str] = ()) -> list[str]:
    faults = _id_faults([step.id for step in steps], "step")
    faults += _dependency_faults({step.id: step.depends_on for step in steps}, "step", known=known)
    for step in steps:
        if not step.description.strip():
            faults.append(f"step {step.id} has no description")
        if not step.target_files:
            faults.append(f"step {step.id} names no file to change")
        paths = [target.path for target in step.target_files]
        faults += [f"step {step.id} names {path} twice" for path in _repeated_names(paths)]
        faults += [f"step {step.id}: {fault}" for fault in _path_faults(paths)]
    return faults


def place_faults(steps: tuple[PlanStep, ...], places: Places) -> list[str]:
    """The targets that are no files and cannot become any, or should be there and are not, after the steps before."""
    return [fault for fault, kind in _step_by_step(steps, places) if kind != "there"]


def _step_by_step(steps: tuple[PlanStep, ...], places: Places) -> Iterator[tuple[str, str]]:
    """Faults, each with its kind: something is in the way (`obstacle`), a file is `there` already, or `missing`."""
    by_id = {step.id: step for step in steps}
    now: dict[str, bool] = {}
    for name in in_order({step.id: step.depends_on for step in steps}):
        targets = by_id[name].target_files
        going = {target.path for target in targets if target.role == "delete"}
        for target in targets:
            path, role = target.path, target.role
            made = {known for known, there in now.items() if there}
            obstacle = places.obstacle(path, made=made - going, gone=(now.keys() - made) | going)
            there = now.get(path, path in places)
            if obstacle:
                yield f"step {name} is to {role} {path}, but {obstacle}", "obstacle"
            elif role == "create" and there:
                yield f"step {name} creates {path}, which exists; its role must be modify", "there"
            elif role != "create" and not there:
                meant = mistyped(path, places)
                told = f"; did you mean {meant}?" if meant else ""
                yield f"step {name} is to {role} {path}, which does not exist{told}", "missing"
            now[path] = role != "delete"


def _count_faults(count: int, limit: int, noun: str) -> list[str]:
    if count == 0:
        return [f"at least one {noun} is needed"]
    return [f"at most {limit} {noun}s are allowed, not {count}"] if count > limit else []


def _id_faults(ids: list[str], noun: str) -> list[str]:
    faults = [
        f"{noun} id {name!r} must be 1 to 32 of a-z, 0-9, _ and -" for name in ids if not is_plan_id(name)
    ]
    return faults + [f"{noun} id {name} is used twice" for name in _repeated_names(ids)]


def _dependency_faults(
    needs: Mapping[str, tuple[str, ...]], noun: str, *, known: Iterable[str] = ()
) -> list[str]:
    outside = set(known)
    faults = [
        f"{noun} {name} needs {need}, which is not in the plan"
        for name, needed in needs.items()
        for need in needed
        if need not in needs and need not in outside
    ]
    try:
        in_order(needs)
    except CycleError as exc:
        faults.append(f"these {noun}s need one another: {', '.join(sorted(set(exc.args[1])))}")
    return faults


def _path_faults(paths: Iterable[str]) -> list[str]:
    faults = []
    for path in paths:
        fault = path_fault(path)
        if is_control_path(path):
            faults.append(f"{path} steers git or cra and is never edited")
        elif fault:
            faults.append(f"{path!r}: {fault}")
    return faults


def _repeated_names(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]

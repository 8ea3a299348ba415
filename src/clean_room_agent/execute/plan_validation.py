"""Validating plans: what is wrong with one, in words that whoever wrote it can act on."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush

from clean_room_agent.artifacts.names import is_plan_id
from clean_room_agent.artifacts.plans import MetaPlan, Part, PartPlan, PlanAdjustment, PlanArtifact, PlanStep
from clean_room_agent.execute.edits.rules import is_control_path, path_fault


def meta_plan_faults(plan: MetaPlan, *, max_parts: int) -> tuple[str, ...]:
    """The faults of a plan's parts, in order; none for a plan that can be followed."""
    faults = _count_faults(len(plan.parts), max_parts, "part")
    faults += _id_faults([part.id for part in plan.parts], "part")
    faults += _dependency_faults({part.id: part.depends_on for part in plan.parts}, "part")
    for part in plan.parts:
        if not part.description.strip():
            faults.append(f"part {part.id} has no description")
        faults += [f"part {part.id}: {fault}" for fault in _path_faults(part.affected_files)]
    return tuple(faults)


def part_plan_faults(plan: PartPlan, *, exists: Callable[[str], bool], max_steps: int) -> tuple[str, ...]:
    """The faults of a part's steps, in order. `exists` says whether a file is in the tree now."""
    return tuple(_count_faults(len(plan.steps), max_steps, "step") + _steps_faults(plan.steps, exists))


def part_plan_doubts(plan: PartPlan, part: Part, *, exists: Callable[[str], bool]) -> tuple[str, ...]:
    """What is said once against a plan that may be meant as it is: none of its steps touches a file that the part names."""
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
    exists: Callable[[str], bool],
    max_steps: int,
) -> tuple[str, ...]:
    """The faults of revised steps; none may take the name of a step that is done or failed, or need one that failed."""
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
    return tuple(faults + _steps_faults(plan.revised_steps, exists, known=done | lost))


def artifact_faults(plan: PlanArtifact) -> tuple[str, ...]:
    """The faults of a plan file, each beginning with the field."""
    faults = [] if plan.affected_files else ["affected_files: at least one file is needed"]
    paths = [file.path for file in plan.affected_files]
    faults += [f"affected_files: {path} stands twice" for path in _repeated(paths)]
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
    steps: tuple[PlanStep, ...], exists: Callable[[str], bool], *, known: Iterable[str] = ()
) -> list[str]:
    return _written_faults(steps, known=known) or _existence_faults(steps, exists)


def _written_faults(steps: tuple[PlanStep, ...], *, known: Iterable[str] = ()) -> list[str]:
    faults = _id_faults([step.id for step in steps], "step")
    faults += _dependency_faults({step.id: step.depends_on for step in steps}, "step", known=known)
    for step in steps:
        if not step.description.strip():
            faults.append(f"step {step.id} has no description")
        if not step.target_files:
            faults.append(f"step {step.id} names no file to change")
        paths = [target.path for target in step.target_files]
        faults += [f"step {step.id} names {path} twice" for path in _repeated(paths)]
        faults += [f"step {step.id}: {fault}" for fault in _path_faults(paths)]
    return faults


def _existence_faults(steps: tuple[PlanStep, ...], exists: Callable[[str], bool]) -> list[str]:
    """Whether each step finds the files as it expects them, after the steps before it."""
    by_id = {step.id: step for step in steps}
    now: dict[str, bool] = {}
    faults = []
    for name in in_order({step.id: step.depends_on for step in steps}):
        for target in by_id[name].target_files:
            there = now.get(target.path, exists(target.path))
            if target.role == "create" and there:
                faults.append(f"step {name} creates {target.path}, which exists; its role must be modify")
            if target.role != "create" and not there:
                faults.append(f"step {name} is to {target.role} {target.path}, which does not exist")
            now[target.path] = target.role != "delete"
    return faults


def _count_faults(count: int, limit: int, noun: str) -> list[str]:
    if count == 0:
        return [f"at least one {noun} is needed"]
    return [f"at most {limit} {noun}s are allowed, not {count}"] if count > limit else []


def _id_faults(ids: list[str], noun: str) -> list[str]:
    faults = [
        f"{noun} id {name!r} must be 1 to 32 of a-z, 0-9, _ and -" for name in ids if not is_plan_id(name)
    ]
    return faults + [f"{noun} id {name} is used twice" for name in _repeated(ids)]


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


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]

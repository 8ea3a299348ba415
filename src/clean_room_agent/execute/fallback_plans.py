"""Makes the plans that are followed if a model gave no valid one: the task as one part, a part as one step."""

from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from clean_room_agent.artifacts.context import ContextPackage, Detail
from clean_room_agent.artifacts.plans import MetaPlan, Part, PartPlan, PlanStep, TargetFile
from clean_room_agent.execute.edits.rules import Places, is_control_path
from clean_room_agent.execute.plan_validation import ending_with, filled_role
from clean_room_agent.paths import is_test_configuration, is_test_path, matches_glob

WHOLE = "whole"
"""Names the one part, and the one step."""
MAX_FILES = 3
"""Taken from what is in scope: all of them go into the coder's context before anything else does."""
MAX_WORDS = 400
"""Characters of a task that describe it in a part or a step; every prompt shows the whole task as well."""
RANKS: dict[Detail, int] = {"primary": 0, "supporting": 1, "type_context": 2}


def files_in_scope(
    context: ContextPackage, *, protected: Iterable[str], scripts: Collection[str]
) -> tuple[str, ...]:
    """The files of a context that a change may touch, best first: named before found, shown whole before outlined.

    Files that decide whether tests pass (`scripts` are those that the test commands run) are included only if the task
    names them.
    """
    patterns = tuple(protected)

    def allowed(path: str) -> bool:
        if is_control_path(path) or matches_glob(path, patterns):
            return False
        decides = is_test_path(path) or is_test_configuration(path) or path in scripts
        return not decides or path in context.task

    items = sorted(
        (item for item in context.items if item.section == "code"),
        key=lambda item: (item.tier, RANKS[item.detail], -item.score, item.path),
    )
    found = (*(item.path for item in items), *(item.path for item in context.dropped))
    return tuple(path for path in dict.fromkeys(found) if allowed(path))


def whole_task(task: str, files: Iterable[str], why: str) -> MetaPlan:
    """A plan with one part: the task's words and the first of `files`. Its rationale is `why` there is no other plan."""
    words = shortened(task)
    part = Part(id=WHOLE, description=words, affected_files=tuple(files)[:MAX_FILES])
    return MetaPlan(task_summary=words, parts=(part,), rationale=why)


def whole_part(part: Part, task: str, scope: Iterable[str], paths: Collection[str]) -> PartPlan | None:
    """A plan with one step: the part's words and the files that it names, else the first of `scope`; None if there are
    none.

    A named file that is not among `paths`, those in the tree, is taken for the only one that ends in that name.
    Otherwise it is created, if the tree has a file with the same suffix; but not a test file that the task does not
    name, nor a name without a suffix. A path where no file can be is left out.
    """
    places = Places.of(paths)
    kinds = {PurePosixPath(path).suffix for path in paths} - {""}
    meant = (path if path in paths else ending_with(path, paths) or path for path in part.affected_files)
    named = dict.fromkeys(
        path
        for path in meant
        if (path in paths and not places.outside(path))
        or (
            PurePosixPath(path).suffix in kinds
            and (path in task or not is_test_path(path))
            and not places.obstacle(path)
        )
    )
    files = tuple(named or dict.fromkeys(tuple(scope)[:MAX_FILES]))
    if not files:
        return None
    words = part.description.strip()
    step = PlanStep(
        id=WHOLE,
        description=words if len(files) == 1 else f"{words}\nChange only those of the files that need it.",
        target_files=tuple(TargetFile(path=path, role=filled_role(path, paths)) for path in files),
        any_of_files=True,
    )
    return PartPlan(part_id=part.id, task_summary=words, steps=(step,))


def shortened(task: str) -> str:
    """The task's words, or only their beginning if there are many."""
    words = task.strip()
    if len(words) <= MAX_WORDS:
        return words
    return f"{words[:MAX_WORDS].rsplit(maxsplit=1)[0]} ..."

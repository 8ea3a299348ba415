"""Correcting what a plan says wrongly and can mean in one way only, before it is validated.

Of files the tree decides, never likeness: `money.py` is `till/money.py` where no other file is called so. A path that could mean
two files, and a file to be created whose name is new, stay as they were written.
"""

from collections.abc import Collection, Sequence
from typing import TypeVar

from clean_room_agent.artifacts.plans import FileRole, Part, PlanStep, TargetFile
from clean_room_agent.execute.edits.rules import path_fault

EntryT = TypeVar("EntryT", Part, PlanStep)


def corrected_steps(
    steps: Sequence[PlanStep], paths: Collection[str]
) -> tuple[tuple[PlanStep, ...], tuple[str, ...]]:
    """The steps as they can only be meant where `paths` are in the tree, in the same order; and a note on each change.

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
    """The parts or steps, each once, without needs of themselves, and of anything where one stands alone."""
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
    """The one of `paths` that ends with `path`, else the one with its file name; "" where there is none, or several.

    An absolute path, and one that leads upwards, are no other file's.
    """
    return ending_with(path, paths) or ("" if path_fault(_plain(path)) else _one(paths, _named(path)))


def ending_with(path: str, paths: Collection[str]) -> str:
    """The one of `paths` that is `path` but for the folders or the slash before it; "" where there is none, or several."""
    wanted = _plain(path)
    if wanted.startswith("/"):
        return wanted[1:] if wanted[1:] in paths else ""
    if path_fault(wanted):
        return ""
    return wanted if wanted in paths else _one(paths, f"/{wanted}")


def filled_role(path: str, paths: Collection[str]) -> FileRole:
    """What is done with a file of which nothing is said but its path: modified where it exists, else created."""
    return "modify" if path in paths else "create"


def _plain(path: str) -> str:
    return path.strip().replace("\\", "/")


def _named(path: str) -> str:
    return f"/{_plain(path).rpartition('/')[2]}"


def _one(paths: Collection[str], ending: str) -> str:
    found = [known for known in paths if f"/{known}".endswith(ending)]
    return found[0] if len(found) == 1 else ""

"""The made-up tasks by which a model is measured, each with its check; a third of each kind is never used to choose."""

import random
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from clean_room_agent.artifacts.goals import GoalSource, GoalTest
from clean_room_agent.config import parse_toml
from clean_room_agent.execute.forms.place import Assignment, Place
from clean_room_agent.orchestrator.direct.questions import Target

SEED = 41
"""Of the order in which they are asked."""
HELD = 3
"""Every third task of a kind, in that order, is never used to choose."""
FILE = "made_up.py"
"""The file in which a function is said to stand."""
TaskT = TypeVar("TaskT")


class Named(Protocol):
    """A task with a name of its own."""

    @property
    def name(self) -> str:
        """Tells it apart."""


class FunctionTask(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A function with a wrong line, or one that is still to be written."""

    name: str
    code: str
    wrong: str = ""
    """The line that is wrong; "" if the body is still to be written."""
    right: str
    """The line in its place, or the body."""
    got: str
    """What the first call gives now."""
    calls: tuple[tuple[str, str], ...]
    """Calls with what each should give; the first is what the task tells."""

    @property
    def text(self) -> str:
        """The file."""
        return self.code.lstrip("\n")

    @property
    def mended(self) -> str:
        """The file as it should be."""
        if self.wrong:
            return self.text.replace(self.wrong, self.right)
        return self.text.replace("    raise NotImplementedError\n", self.right.lstrip("\n"))

    @property
    def target(self) -> Target:
        """The function as a place whose wrong line is known."""
        lines = self.text.rstrip("\n").split("\n")
        line = lines.index(self.wrong) + 1 if self.wrong else len(lines)
        place = Place(path=FILE, name=self.name, first_line=1, last_line=len(lines), lines=(line,))
        return Target(place=place, text=self.text)

    @property
    def assignment(self) -> Assignment:
        """What is asked for."""
        call, wanted = self.calls[0]
        words = f"{call} gives {self.got}, but it should give {wanted}"
        goal = GoalTest(
            name=f"test_{self.name}", source=GoalSource.STATED, call=call, wanted=wanted, got=self.got
        )
        return Assignment(task=words, goals=(goal,))

    @property
    def check(self) -> str:
        """A program that ends with an error unless each call gives what it should; the file's text stands before it."""
        return "".join(f"assert ({call}) == ({wanted})\n" for call, wanted in self.calls)


class JudgedFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file as a judge is shown it."""

    path: str
    text: str
    needed: bool


class QuestionTask(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task, with files that it needs and others."""

    task: str
    files: tuple[JudgedFile, ...]

    @property
    def name(self) -> str:
        """Tells it apart."""
        return self.files[0].path


class PlannedText(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file."""

    path: str
    text: str


class PlanTask(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task that needs changes of some of the files."""

    task: str
    right: tuple[str, ...]
    files: tuple[PlannedText, ...]

    @property
    def name(self) -> str:
        """Tells it apart."""
        return self.right[0]


class MadeUpTasks(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of them, each kind in the order in which it is asked."""

    functions: tuple[FunctionTask, ...]
    questions: tuple[QuestionTask, ...]
    plans: tuple[PlanTask, ...]

    @property
    def to_mend(self) -> tuple[FunctionTask, ...]:
        """The functions that have a wrong line."""
        return tuple(task for task in self.functions if task.wrong)

    def is_held(self, name: str) -> bool:
        """Whether the task of this name is never used to choose."""
        kinds: tuple[tuple[Named, ...], ...] = (self.functions, self.questions, self.plans)
        return any(task.name == name for kind in kinds for task in kind[HELD - 1 :: HELD])


@cache
def made_up_tasks() -> MadeUpTasks:
    """The tasks that the package ships."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    tasks = msgspec.convert(parse_toml(text), MadeUpTasks)
    return MadeUpTasks(
        functions=_shuffled_tasks(tasks.functions),
        questions=_shuffled_tasks(tasks.questions),
        plans=_shuffled_tasks(tasks.plans),
    )


def _shuffled_tasks(tasks: tuple[TaskT, ...]) -> tuple[TaskT, ...]:
    return tuple(random.Random(SEED).sample(tasks, len(tasks)))  # noqa: S311 - an order, the same each time

"""What an answer is worth to the task, 0 to 1, by prompt. Verdicts are not here: the gate scores them by probabilities.

Never the loss, and never how many answers can be read: in a trial both improved while no answer hit the right file.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.artifacts.package import BudgetAccount, ContextPackage
from clean_room_agent.artifacts.plans import FileRole, TargetFile
from clean_room_agent.errors import CraError
from clean_room_agent.execute.edits.apply import apply_edits, paths_named
from clean_room_agent.execute.edits.rules import EditRules
from clean_room_agent.execute.prompts.answers import AdjustmentAnswer, MetaPlanAnswer, PartPlanAnswer
from clean_room_agent.git.history import has_commit, read_blob
from clean_room_agent.git.repository import Repository, open_repository
from clean_room_agent.syntax import parses_cleanly
from clean_room_agent.textfile import decode
from clean_room_agent.training.dataset import Row


class Metric(Protocol):
    """Scores the answers of one prompt."""

    def fault(self, row: Row, wanted: Any) -> str:
        """Why no answer to this row can be scored; "" where it can."""

    def score(self, row: Row, wanted: Any, answer: Any) -> float:
        """What the answer is worth."""


class NamesFound:
    """The share of the files and definitions of the right analysis that the answer names."""

    def fault(self, row: Row, wanted: Any) -> str:  # noqa: ARG002 - as the protocol says
        """As the protocol says."""
        return "" if wanted.areas or wanted.symbols else "its right answer names nothing"

    def score(self, row: Row, wanted: Any, answer: Any) -> float:  # noqa: ARG002
        """The recall of names."""
        return _recall([*wanted.areas, *wanted.symbols], [*answer.areas, *answer.symbols])


class FilesNamed:
    """The share of the files of the right plan that the answer's plan names."""

    def fault(self, row: Row, wanted: Any) -> str:  # noqa: ARG002
        """As the protocol says."""
        return "" if _files(wanted) else "its right answer names no file"

    def score(self, row: Row, wanted: Any, answer: Any) -> float:  # noqa: ARG002
        """The recall of files."""
        return _recall(_files(wanted), _files(answer))


class EditsApply:
    """1 where the edits apply to the files that the prompt was made from and what comes of them parses, else 0."""

    def fault(self, row: Row, wanted: Any) -> str:
        """The files must be there, and the right answer must be worth 1."""
        if self._repository(row) is None:
            return "the files that its prompt was made from are not here"
        return "" if self.score(row, wanted, wanted) else "its right answer does not apply"

    def score(self, row: Row, wanted: tuple[PatchEdit, ...], answer: tuple[PatchEdit, ...]) -> float:
        """Whether they apply within the files that the right answer edits, and parse."""
        repository = self._repository(row)
        assert repository is not None
        roles: dict[str, FileRole] = {
            edit.file_path: edit.kind if edit.kind in {"create", "delete"} else "modify" for edit in wanted
        }
        targets = tuple(TargetFile(path=path, role=role) for path, role in roles.items())
        texts = {}
        for path in paths_named(answer):
            blob = read_blob(repository, row.origin.commit, path)
            if blob is not None:
                texts[path] = decode(blob).text
        nothing = ContextPackage(pass_id="", task="", items=(), budget=NO_BUDGET)
        applied = apply_edits(answer, texts, nothing, EditRules(targets=targets))
        parses = (
            parses_cleanly(text.encode(), path) is not False
            for path, text in applied.texts.items()
            if text is not None
        )
        return float(applied.result.success and all(parses))

    def _repository(self, row: Row) -> Repository | None:
        found = _opened(row.origin.repo)
        return found if found and row.origin.commit and has_commit(found, row.origin.commit) else None


@cache
def _opened(repo: str) -> Repository | None:
    try:
        return open_repository(Path(repo))
    except CraError:
        return None


def _files(plan: MetaPlanAnswer | PartPlanAnswer | AdjustmentAnswer) -> tuple[str, ...]:
    if isinstance(plan, MetaPlanAnswer):
        return tuple(path for part in plan.parts for path in part.files)
    return tuple(file.path for step in plan.steps for file in step.files)


def _recall(wanted: Iterable[str], named: Iterable[str]) -> float:
    due = set(wanted)
    return len(due & set(named)) / len(due)


NO_BUDGET = BudgetAccount(context_window=0, reserved_tokens=0, used_tokens=0)
METRICS: Mapping[str, Metric] = {
    "task_analysis": NamesFound(),
    "meta_plan": FilesNamed(),
    "part_plan": FilesNamed(),
    "adjustment": FilesNamed(),
    "implement": EditsApply(),
}

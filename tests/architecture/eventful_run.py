"""A solve in which much happens: a dirty tree, an unreadable plan, a first attempt that the tests refuse."""

import contextlib
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from testing import repositories
from testing.runs.solving import Project, Script, Told, make_project, text_of
from testing.servers.ollama_script import Answerer, ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.calls import CALLS
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN
from clean_room_agent.workspace import Workspace

UNREADABLE = "Let me think about the parts of this task."
WRONG_EDIT = """\
<edit file="till/money.py">
<search>
    share = cents // people
    return [share] * people
</search>
<replacement>
    share = cents // people
    return [share] * (people - 1) + [cents]
</replacement>
</edit>
"""


class Eventful(Struct, frozen=True, kw_only=True):
    """The run, and what the model's side saw of it."""

    project: Project
    told: Told
    calls: tuple[ChatCall, ...]
    answers: tuple[str, ...]
    """In the order of `calls`."""
    late: tuple[str, ...]
    """Prompts that were not in the record when the next one was asked."""


class Witness(Struct):
    """An answerer that looks into the record before each answer, and may mark what it answers."""

    inner: Answerer
    raw: Path
    marks: bool
    asked: list[ChatCall] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)

    def __call__(self, call: ChatCall) -> str:
        with contextlib.closing(connect_file("raw", self.raw, read_only=True)) as conn:
            kept = {(row.request.prompt, row.answer.response) for row in CALLS.select(conn, "ORDER BY id")}
        known = zip(self.asked, self.answers, strict=True)
        self.late += [earlier.title for earlier, text in known if (earlier.prompt, text) not in kept]
        text = text_of(self.inner(call))
        if self.marks:
            # Before the answer proper, where every reader skips it: it can only come back if answers are pasted whole.
            text = f"{mark(len(self.asked))}\n{text}"
        self.asked.append(call)
        self.answers.append(text)
        return text


def mark(number: int) -> str:
    """A word that stands in one answer alone."""
    return f"Marked-{number:03}-so."


def make_dirty(project: Project) -> None:
    """The user's tree holds a stash, a staged change, an unstaged one and an untracked file."""
    top = project.top
    receipt = (top / "till/receipt.py").read_text(encoding="utf-8")
    repositories.write(top, {"till/receipt.py": f"{receipt}\n\nWIDTH = 40\n"})
    repositories.git(top, "stash")
    repositories.write(top, {"till/receipt.py": f"{receipt}\n\nWIDTH = 60\n"})
    repositories.git(top, "add", "till/receipt.py")
    repositories.write(top, {"till/receipt.py": f"{receipt}\n\nWIDTH = 80\n", "notes.txt": "mine\n"})


def eventful_run(folder: Path, *, marks: bool = False, **tables: Mapping[str, Any]) -> Eventful:
    """The run, in a repository below `folder`; `tables` are laid over the configuration."""
    project = make_project(folder)
    make_dirty(project)
    spoiled = {META_PLAN.title: [UNREADABLE], IMPLEMENT.title: [WRONG_EDIT]}
    raw = Workspace(repo=project.top).raw
    witness = Witness(inner=Script(project.oracle, spoiled), raw=raw, marks=marks)
    with OllamaServer(witness) as server:
        told = project.solve(server, **tables)
    return Eventful(
        project=project,
        told=told,
        calls=tuple(witness.asked),
        answers=tuple(witness.answers),
        late=tuple(itertools.chain(witness.late)),
    )

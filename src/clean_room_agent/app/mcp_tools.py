"""The tools of `cra mcp`: each is a `cra` command in a separate process."""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Struct
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from clean_room_agent import proc
from clean_room_agent.artifacts.names import NEWEST_RUN, short_id
from clean_room_agent.cancellation import stopped_by
from clean_room_agent.errors import CommandError
from clean_room_agent.safe_open import OPEN_ALREADY

PATIENCE = 30.0
"""Seconds in which a cancelled command may complete a change in progress."""
MAX_TEXT = 100_000
"""Bytes of an argument; the kernel takes 128 KiB."""
PROGRAM = (sys.executable, "-P", "-m", "clean_room_agent")
"""`-P`, because it is started in the user's repository, whose modules must not be loaded."""


def readable(text: str) -> str:
    """`text` with `?` for what no encoding has: lone surrogates, which stand for bytes of names that are not UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _argument(text: str) -> str:
    if "\0" in text:
        raise ValueError("it cannot contain a NUL character")
    if len(text.encode()) > MAX_TEXT:
        raise ValueError(f"it cannot have more than {MAX_TEXT:,} bytes")
    return text


def _path(text: str) -> str:
    if text.startswith(OPEN_ALREADY):
        raise ValueError("it has to be a file: what the command has open is nothing of the client's")
    return text


Text = Annotated[str, Field(min_length=1), AfterValidator(_argument)]


class Arguments(BaseModel):
    """The arguments of a tool."""

    model_config = ConfigDict(extra="forbid")
    word: ClassVar[str]
    """The command of `cra`."""
    operand: ClassVar[str] = "task"
    """The only argument that is not a flag."""
    reports: ClassVar[bool] = False
    """Whether the command reports events."""

    def flags(self) -> Iterator[str]:
        """The arguments of the command, without `--repo` and `--`; values are joined to their flags by `=`."""
        yield "--json"

    def command(self, repo: Path, events: int | None = None) -> tuple[str, ...]:
        """The command line, in which no text of the client can be taken for a flag; with the open file that its events go
        to: on its output, text of the repository could look like one.
        """
        operand = getattr(self, self.operand) or ""
        told = () if events is None else (f"--events=/dev/fd/{events}",)
        flags = (*told, *self.flags())
        return (*PROGRAM, self.word, f"--repo={repo}", *flags, "--", *((operand,) if operand else ()))


class RetrieveArguments(Arguments):
    """`cra retrieve`."""

    word = "retrieve"
    task: Text = Field(description="What to do, in words.")
    use_model: bool = Field(default=True, description="False: rank without a model; needs no model server.")

    def flags(self) -> Iterator[str]:
        """Ask for the context in the form of a prompt."""
        yield "--format=markdown"
        if not self.use_model:
            yield "--no-model"


class JudgedArguments(Arguments):
    """How a task is judged, and where it is."""

    checks: list[Text] = Field(
        default=[],
        description="Statements that fail now and must hold at the end (`assert f(1) == 2`), or `sh:` and a command.",
    )
    tests: list[Text] = Field(
        default=[], description="Tests that fail now and must pass at the end, as their runner names them."
    )
    files: list[Text] = Field(default=[], description="The only files to change, besides tests.")

    def flags(self) -> Iterator[str]:
        """Pass them on."""
        yield "--json"
        for flag, values in (("--check", self.checks), ("--test", self.tests), ("--file", self.files)):
            for value in values:
                yield f"{flag}={value}"


class PlanArguments(JudgedArguments):
    """`cra plan`."""

    word = "plan"
    reports = True
    task: Text = Field(description="What to do, in words.")


class SolveArguments(JudgedArguments):
    """`cra solve`."""

    word = "solve"
    reports = True
    task: Text | None = Field(default=None, description="What to do, in words; not with `resume`.")
    plan_file: Annotated[Text, AfterValidator(_path)] | None = Field(
        default=None,
        description="A reviewed plan to follow: what the tool `plan` returned, saved to this file.",
    )
    resume: Text | None = Field(
        default=None,
        description="Continue a run that was cancelled or is partial: the beginning of its id, or @ for the newest.",
    )
    hint: Text | None = Field(
        default=None, description="With `resume`: something to tell every pass from here on."
    )
    apply: bool = Field(
        default=False,
        description="Also apply the result to the user's working tree, unless something fails in it.",
    )

    def flags(self) -> Iterator[str]:
        """Ask for the outcome as JSON."""
        yield from super().flags()
        for flag, value in (("--plan", self.plan_file), ("--resume", self.resume), ("--hint", self.hint)):
            if value is not None:
                yield f"{flag}={value}"
        if self.apply:
            yield "--apply"


class WhyArguments(Arguments):
    """`cra show --why`."""

    word, operand = "show", "run"
    path: Text = Field(description="A file of the repository, relative to its top.")
    line: int | None = Field(
        default=None, ge=1, description="A line of the result, from 1: which call wrote it?"
    )
    run: Text = Field(
        default=NEWEST_RUN,
        description="The beginning of a run's id; @ for the newest, @~1 for the one before.",
    )

    def flags(self) -> Iterator[str]:
        """Name the file and line in question."""
        yield from ("--json", f"--why={self.path}" + ("" if self.line is None else f":{self.line}"))


class Tool(Struct, frozen=True, kw_only=True):
    """A tool as a client lists it."""

    arguments: type[Arguments]
    title: str
    description: str
    changes: bool = False
    """Whether it changes anything besides its record."""


TOOLS: dict[str, Tool] = {
    "retrieve": Tool(
        arguments=RetrieveArguments,
        title="Find the code that a task needs",
        description="The code of this repository that a task needs: in full what is to be changed, as signatures what "
        "it uses; chosen by small local models file by file. Needs no model with use_model=false.",
    ),
    "plan": Tool(
        arguments=PlanArguments,
        title="Plan a task",
        description="A plan for a task, as JSON: the steps and the files that each changes. Changes nothing. "
        "Save it to a file to have `solve` follow it.",
    ),
    "solve": Tool(
        arguments=SolveArguments,
        title="Solve a task",
        description="Solves a task with local models: the result is a branch cra/<id> on which the repository's tests "
        "pass, and a diff. Takes minutes. The working tree stays as it is unless `apply` is set. `status` says how "
        "it ended: `complete` if a test that failed before shows it (named in `evidence`), `unproven` if nothing fails and "
        "nothing shows it (pass `checks`); `resume` continues a cancelled or partial run.",
        changes=True,
    ),
    "why": Tool(
        arguments=WhyArguments,
        title="Why is this file or line as it is?",
        description="Why a file was shown to the models, or changed, in a run of `solve`, and by which call a line of its "
        "result was written.",
    ),
}


class Outcome(Struct, frozen=True, kw_only=True):
    """How a command ended."""

    text: str
    document: Mapping[str, Any] | None
    """Its output, if that is a JSON object."""
    failed: bool


def run_command(
    arguments: Arguments, repo: Path, stop: threading.Event, note: Callable[[str], None]
) -> Outcome | None:
    """Run the command, passing each event to `note`, and return its answer; None if `stop` was set, which interrupts
    it.

    Raises:
        CommandError: it cannot be started.
    """
    answer: list[bytes] = []
    code, errors = 0, ""
    try:
        with stopped_by(stop):
            channel = os.pipe() if arguments.reports else None
            command = arguments.command(repo, channel and channel[1])
            lines = proc.stream(command, cwd=repo, patience=PATIENCE, channel=channel, out=answer.append)
            for line in lines:
                event = _object(line.decode())  # none, if the command was killed while it wrote
                if event is not None and (text := event_text(event)):
                    note(text)
    except KeyboardInterrupt:
        return None
    except CommandError as error:
        if error.returncode is None:
            raise
        code, errors = error.returncode, error.stderr.decode(errors="replace")
    return outcome_of(b"".join(answer).decode(errors="replace").removesuffix("\n"), code, errors)


def outcome_of(text: str, code: int, errors: str) -> Outcome:
    """A command's answer. An unfinished run is an answer, too; for an error, its message and remedy."""
    document = _object(text)
    if document is not None and "error" in document:
        told = "\n-> ".join(filter(None, (document["error"], document["hint"])))
        return Outcome(text=told, document=document, failed=True)
    if code and document is None:
        message = errors[max(errors.rfind("error: "), 0) :].strip()
        return Outcome(text=message or f"it ended with exit code {code}", document=None, failed=True)
    return Outcome(text=text, document=document, failed=False)


def event_text(event: Mapping[str, Any]) -> str:
    """An event of a run in a few words; "" for events that mean nothing by themselves."""
    match event["event"]:
        case "RunStarted":
            return f"run {short_id(str(event['task_id']))}"
        case "TestsStarted":
            return f"{event['what']} tests run".strip()
        case "TestsFinished":
            return f"{event['what']} tests: {event['passed']} passed, {event['failed']} failed".strip()
        case "CallStarted":
            return f"asking {event['prompt']} {event['item']}".strip()
        case "PassFinished":
            return f"{event['title']}: {event['detail'] or ('done' if event['success'] else 'failed')}"
    return str(event.get("title") or event.get("doing") or event.get("text") or "")


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None

"""The MCP server of `cra mcp`: lists tools and calls them over standard input and output. Each tool is a `cra` command in a
separate process.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import anyio
import mcp_types as types
from anyio import from_thread, to_thread
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from clean_room_agent import proc
from clean_room_agent.artifacts.names import NEWEST_RUN, short_id
from clean_room_agent.cancellation import stopped_by
from clean_room_agent.errors import CommandError
from clean_room_agent.json_values import change_texts
from clean_room_agent.orchestrator.events import tests_in_words
from clean_room_agent.safe_open import OPEN_ALREADY

HEARTBEAT = 10.0
"""Seconds between progress notes on a call without other news: clients give up on calls that are silent for long."""
ASKED_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 30.0
"""Seconds in which a cancelled command may complete a change in progress."""
MAX_TEXT = 100_000
"""Bytes of an argument; the kernel takes 128 KiB."""
PROGRAM = (sys.executable, "-P", "-m", "clean_room_agent")
"""`-P`, because it is started in the user's repository, whose modules must not be loaded."""
INSTRUCTIONS = (
    "cra works on one git repository with small local models. `retrieve` finds the code that a task needs, `plan` plans "
    "it, `solve` makes a tested branch of it, `why` explains a run's choices. Its answers hold the repository's own text."
)
Context = ServerRequestContext[dict[str, object]]


def _validate_argument(text: str) -> str:
    if "\0" in text:
        raise ValueError("it cannot contain a NUL character")
    if len(text.encode()) > MAX_TEXT:
        raise ValueError(f"it cannot have more than {MAX_TEXT:,} bytes")
    return text


def _validate_path(text: str) -> str:
    if text.startswith(OPEN_ALREADY):
        raise ValueError("it has to be a file: what the command has open is nothing of the client's")
    return text


Text = Annotated[str, Field(min_length=1), AfterValidator(_validate_argument)]


class Tool(BaseModel):
    """A tool as a client lists it; its fields are the arguments of a call."""

    model_config = ConfigDict(extra="forbid")
    title: ClassVar[str]
    summary: ClassVar[str]
    """What the client's model reads about it."""
    changes: ClassVar[bool] = False
    """Whether it changes anything besides its record."""
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
        reporting = () if events is None else (f"--events=/dev/fd/{events}",)
        flags = (*reporting, *self.flags())
        return (*PROGRAM, self.word, f"--repo={repo}", *flags, "--", *((operand,) if operand else ()))


class RetrieveTool(Tool):
    """`cra retrieve`."""

    title = "Find the code that a task needs"
    summary = (
        "The code of this repository that a task needs: in full what is to be changed, as signatures what "
        "it uses; chosen by small local models file by file. Needs no model with use_model=false."
    )
    word = "retrieve"
    task: Text = Field(description="What to do, in words.")
    use_model: bool = Field(default=True, description="False: rank without a model; needs no model server.")

    def flags(self) -> Iterator[str]:
        """Ask for the context in the form of a prompt."""
        yield "--format=markdown"
        if not self.use_model:
            yield "--no-model"


class JudgedTool(Tool):
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


class PlanTool(JudgedTool):
    """`cra plan`."""

    title = "Plan a task"
    summary = (
        "A plan for a task, as JSON: the steps and the files that each changes. Changes nothing. "
        "Save it to a file to have `solve` follow it."
    )
    word = "plan"
    reports = True
    task: Text = Field(description="What to do, in words.")


class SolveTool(JudgedTool):
    """`cra solve`."""

    title = "Solve a task"
    summary = (
        "Solves a task with local models: the result is a branch cra/<id> on which the repository's tests "
        "pass, and a diff. Takes minutes. The working tree stays as it is unless `apply` is set. `status` says how "
        "it ended: `complete` if a test that failed before shows it (named in `evidence`), `unproven` if nothing fails and "
        "nothing shows it (pass `checks`); `resume` continues a cancelled or partial run."
    )
    changes = True
    word = "solve"
    reports = True
    task: Text | None = Field(default=None, description="What to do, in words; not with `resume`.")
    plan_file: Annotated[Text, AfterValidator(_validate_path)] | None = Field(
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


class WhyTool(Tool):
    """`cra show --why`."""

    title = "Why is this file or line as it is?"
    summary = (
        "Why a file was shown to the models, or changed, in a run of `solve`, and by which call a line of its "
        "result was written."
    )
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


TOOLS: Mapping[str, type[Tool]] = {
    "retrieve": RetrieveTool,
    "plan": PlanTool,
    "solve": SolveTool,
    "why": WhyTool,
}


def run_command(
    tool: Tool, repo: Path, stop: threading.Event, note: Callable[[str], None]
) -> types.CallToolResult:
    """Run the command, passing each event to `note`, and return its answer; `stop` interrupts it.

    Raises:
        CommandError: it cannot be started.
    """
    answer: list[bytes] = []
    code, errors = 0, ""
    try:
        with stopped_by(stop):
            channel = os.pipe() if tool.reports else None
            command = tool.command(repo, channel and channel[1])
            lines = proc.stream(command, cwd=repo, patience=PATIENCE, channel=channel, out=answer.append)
            for line in lines:
                event = _parse_object(line.decode())  # none, if the command was killed while it wrote
                if event is not None and (text := event_text(event)):
                    note(text)
    except KeyboardInterrupt:
        return _tool_result("interrupted\n-> continue with resume=@", failed=True)
    except CommandError as error:
        if error.returncode is None:
            raise
        code, errors = error.returncode, error.stderr.decode(errors="replace")
    return result_of(b"".join(answer).decode(errors="replace").removesuffix("\n"), code, errors)


def result_of(text: str, code: int, errors: str) -> types.CallToolResult:
    """A command's answer. An unfinished run is an answer, too; for an error, its message and remedy."""
    document = _parse_object(text)
    if document is not None and "error" in document:
        message = "\n-> ".join(filter(None, (document["error"], document["hint"])))
        return _tool_result(message, document, failed=True)
    if code and document is None:
        message = errors[max(errors.rfind("error: "), 0) :].strip()
        return _tool_result(message or f"it ended with exit code {code}", failed=True)
    return _tool_result(text, document)


def _tool_result(
    text: str, document: dict[str, Any] | None = None, *, failed: bool = False
) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=readable(text))],
        structured_content=None if document is None else change_texts(document, readable),
        is_error=failed,
    )


def readable(text: str) -> str:
    """`text` with `?` for what no encoding has: lone surrogates, which stand for bytes of names that are not UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def event_text(event: Mapping[str, Any]) -> str:
    """An event of a run in a few words; "" for events that mean nothing by themselves."""
    match event["event"]:
        case "RunStarted":
            return f"run {short_id(str(event['task_id']))}"
        case "TestsStarted":
            return tests_in_words(event["what"])
        case "TestsFinished":
            return f"{tests_in_words(event['what'])}: {event['passed']} passed, {event['failed']} failed"
        case "CallStarted":
            return f"asking {event['prompt']} {event['item']}".strip()
        case "PassFinished":
            return f"{event['title']}: {event['detail'] or ('done' if event['success'] else 'failed')}"
    return str(event.get("title") or event.get("doing") or event.get("text") or "")


def _parse_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


async def serve(repo: Path, version: str) -> None:
    """Serve until the client disconnects and all its commands have ended."""
    calls = Calls(repo)
    server = make_server(calls, version)

    # Only `\n` ends a line: any other line break may stand within a request.
    client = os.fdopen(0, encoding="utf-8", errors="replace", newline="\n", closefd=False)
    try:
        async with (
            anyio.create_task_group() as group,
            stdio_server(stdin=anyio.wrap_file(client)) as (reading, writing),
        ):
            group.start_soon(_end_when_asked, calls)
            await server.run(reading, writing, server.create_initialization_options())
            group.cancel_scope.cancel()
    except* BrokenPipeError:
        pass  # so has who read our answers


def make_server(calls: "Calls", version: str) -> Server[dict[str, object]]:
    """A server with the tools, not connected to a client yet."""
    server: Server[dict[str, object]] = Server(
        "cra",
        version=version,
        title="Clean Room Agent",
        instructions=INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=calls.call,
    )
    server.middleware.clear()  # the package would hand each call to a telemetry exporter where one is installed
    return server


async def _list_tools(
    _context: Context, _params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            types.Tool(
                name=name,
                title=tool.title,
                description=tool.summary,
                input_schema=tool.model_json_schema(),
                annotations=types.ToolAnnotations(
                    read_only_hint=not tool.changes, destructive_hint=False, open_world_hint=False
                ),
            )
            for name, tool in TOOLS.items()
        ]
    )


class Calls:
    """The calls in progress, each a command in a separate process."""

    def __init__(self, repo: Path) -> None:
        self._repo = repo
        self._running: dict[threading.Event, anyio.Event] = {}
        """What stops a call, and what says that it has ended."""

    async def call(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Run the command and return its answer. If the call is cancelled, the command is interrupted first.

        Raises:
            MCPError: there is no such tool, or it does not take these arguments.
        """
        tool = _validated_tool(params.name, params.arguments or {})
        stop, done = threading.Event(), anyio.Event()
        results: list[types.CallToolResult] = []
        began = time.monotonic()

        async def tell(text: str) -> None:
            if not stop.is_set():
                await context.session.report_progress(time.monotonic() - began, None, readable(text))

        def run() -> types.CallToolResult:
            return run_command(tool, self._repo, stop, lambda text: from_thread.run(tell, text))

        async def work() -> None:
            try:
                with anyio.CancelScope(shield=True):
                    results.append(await to_thread.run_sync(run))
            finally:
                done.set()

        self._running[stop] = ended = anyio.Event()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(work)
                try:
                    while not done.is_set():
                        with anyio.move_on_after(HEARTBEAT):
                            await done.wait()
                        if not done.is_set():
                            await tell(f"{params.name}: {time.monotonic() - began:.0f} s")
                except anyio.get_cancelled_exc_class():
                    stop.set()
                    raise
        except* CommandError as failed:
            results.append(_tool_result(str(failed.exceptions[0]), failed=True))
        finally:
            ended.set()
            del self._running[stop]
        return results[0]

    async def end_all(self) -> None:
        """Stop all commands, and wait for them."""
        for stop, ended in tuple(self._running.items()):
            stop.set()
            await ended.wait()


def _validated_tool(name: str, given: dict[str, object]) -> Tool:
    """The tool with the client's arguments, validated."""
    tool = TOOLS.get(name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"there is no tool {name!r}; there are: {', '.join(TOOLS)}")
    try:
        return tool.model_validate(given)
    except ValidationError as exc:
        wrong = "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in exc.errors())
        raise MCPError(types.INVALID_PARAMS, f"{name}: {wrong}") from exc


async def _end_when_asked(calls: Calls) -> None:
    """On a signal, stop all commands and exit at once: a thread waiting for the client would block a normal exit."""
    with anyio.open_signal_receiver(*ASKED_TO_END) as signals:
        async for _ in signals:
            await calls.end_all()
            os._exit(130)

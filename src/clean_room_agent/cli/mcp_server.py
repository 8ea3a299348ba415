"""The MCP server of `cra mcp`: lists and calls tools over standard input and output."""

import os
import signal
import threading
import time
from pathlib import Path

import anyio
import mcp_types as types
from anyio import from_thread, to_thread
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from clean_room_agent.app.mcp_tools import TOOLS, Arguments, Outcome, readable, run_command
from clean_room_agent.errors import CommandError
from clean_room_agent.json_values import change_texts

HEARTBEAT = 10.0
"""Seconds between progress notes on a call without other news: clients give up on calls that are silent for long."""
ASKED_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INSTRUCTIONS = (
    "cra works on one git repository with small local models. `retrieve` finds the code that a task needs, `plan` plans "
    "it, `solve` makes a tested branch of it, `why` explains a run's choices. Its answers hold the repository's own text."
)
Context = ServerRequestContext[dict[str, object]]


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
                description=tool.description,
                input_schema=tool.arguments.model_json_schema(),
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
        arguments = _arguments(params.name, params.arguments or {})
        stop, done = threading.Event(), anyio.Event()
        outcomes: list[Outcome | None] = []
        began = time.monotonic()

        async def tell(text: str) -> None:
            if not stop.is_set():
                await context.session.report_progress(time.monotonic() - began, None, readable(text))

        def run() -> Outcome | None:
            return run_command(arguments, self._repo, stop, lambda text: from_thread.run(tell, text))

        async def work() -> None:
            try:
                with anyio.CancelScope(shield=True):
                    outcomes.append(await to_thread.run_sync(run))
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
            error = failed.exceptions[0]
            outcomes.append(Outcome(text=str(error), document=None, failed=True))
        finally:
            ended.set()
            del self._running[stop]
        return _result(outcomes[0])

    async def end_all(self) -> None:
        """Stop all commands, and wait for them."""
        for stop, ended in tuple(self._running.items()):
            stop.set()
            await ended.wait()


def _arguments(name: str, given: dict[str, object]) -> Arguments:
    """The client's arguments, validated."""
    tool = TOOLS.get(name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"there is no tool {name!r}; there are: {', '.join(TOOLS)}")
    try:
        return tool.arguments.model_validate(given)
    except ValidationError as exc:
        wrong = "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in exc.errors())
        raise MCPError(types.INVALID_PARAMS, f"{name}: {wrong}") from exc


def _result(outcome: Outcome | None) -> types.CallToolResult:
    """An answer, or a failure that the client's model can read; None: the server ends, or the call was cancelled."""
    if outcome is None:
        outcome = Outcome(text="interrupted\n-> continue with resume=@", document=None, failed=True)
    return types.CallToolResult(
        content=[types.TextContent(text=readable(outcome.text))],
        structured_content=None if outcome.document is None else change_texts(outcome.document, readable),
        is_error=outcome.failed,
    )


async def _end_when_asked(calls: Calls) -> None:
    """On a signal, stop all commands and exit at once: a thread waiting for the client would block a normal exit."""
    with anyio.open_signal_receiver(*ASKED_TO_END) as signals:
        async for _ in signals:
            await calls.end_all()
            os._exit(130)

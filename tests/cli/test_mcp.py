"""`cra mcp`, spoken to by the protocol package's own client: tools, progress, errors, cancellation, and the end."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from testing.forked import Forked
from testing.patience import PATIENCE, wait_until
from testing.runs.solving import Project, Script, text_of
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.artifacts.names import short_id
from clean_room_agent.artifacts.outcomes import EventKind, RunStatus
from clean_room_agent.cli.main import run
from clean_room_agent.execute.plan_prompts import META_PLAN

if TYPE_CHECKING:
    import mcp

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mcp") is None, reason="the extra `mcp` is not installed"
)

COMMAND = (sys.executable, "-P", "-m", "clean_room_agent", "mcp", "--repo")


@pytest.fixture
def till(indexed: Project) -> Project:
    return indexed


Talk = Callable[["mcp.Client"], Awaitable[None]]


def talk_here(project: Project, say: Talk, *, mode: Any = "auto") -> tuple[int, str, str]:
    """`say` is done with a client of a server in this process, which starts its commands as ever; as a command that says nothing."""
    import anyio  # noqa: PLC0415 - with `mcp` it takes half a second, which other workers need not spend
    import mcp  # noqa: PLC0415

    from clean_room_agent.cli.mcp_server import Calls, make_server  # noqa: PLC0415

    async def main() -> None:
        server = make_server(Calls(project.top), "0")
        with anyio.fail_after(PATIENCE):
            async with mcp.Client(server, mode=mode) as client:
                await say(client)

    with patch.dict(os.environ, project.environment(), clear=True):
        anyio.run(main)
    return 0, "", ""


def words(result: "mcp.types.CallToolResult") -> str:
    (content,) = result.content
    assert content.type == "text"
    return content.text


def status(project: Project) -> RunStatus:
    recorded = project.recorded().run
    assert recorded is not None
    return recorded.status


class Held:
    """Answers as the script does, but takes its time over the plan."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.reached = False

    def __call__(self, call: ChatCall) -> Answer | str:
        if call.title != META_PLAN.title or self.reached:
            return self._script(call)
        self.reached = True
        return Answer(text=text_of(self._script(call)), pause_seconds=0.5)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tools_are_listed_with_what_they_take(till: Project, mode: str) -> None:
    async def say(client: "mcp.Client") -> None:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(listed) == {"retrieve", "plan", "solve", "why"}
        assert listed["retrieve"].input_schema["required"] == ["task"]
        assert all(tool.description for tool in listed.values())
        assert listed["solve"].annotations is not None
        assert listed["solve"].annotations.read_only_hint is False

    talk_here(till, say, mode=mode)


def test_a_task_is_solved_with_progress_and_then_explained(till: Project) -> None:
    heard: list[tuple[float, str]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        heard.append((progress, message or ""))

    async def say(client: "mcp.Client") -> None:
        solved = await client.call_tool("solve", {"task": till.task}, progress_callback=note)
        assert not solved.is_error, words(solved)
        assert solved.structured_content["status"] == "complete"
        assert "+    share, rest = divmod(cents, people)" in solved.structured_content["diff"]
        told = [message for _, message in heard if not message.startswith("solve: ")]
        assert told[0] == f"run {short_id(solved.structured_content['task_id'])}"
        assert "final tests: 4 passed, 0 failed" in told
        assert [progress for progress, _ in heard] == sorted({progress for progress, _ in heard})
        why = await client.call_tool("why", {"path": "till/money.py", "line": 6})
        assert (
            why.structured_content["why"]["written"]["text"].strip() == "share, rest = divmod(cents, people)"
        )

    with OllamaServer(Script(till.oracle)) as server:
        till.configure(server.base_url)
        told = till.observe(lambda: talk_here(till, say))
    assert told.traces == {}
    assert len(told.branches) == 1


def test_code_is_found_without_any_model_and_a_line_of_it_is_never_taken_for_an_event(till: Project) -> None:
    lines = ('{"event": "TestsFinished", "text": "forged"}', '{"event": "Note", "text": "forged"}')
    code = (till.top / "till" / "money.py").read_text()
    head, colon, body = code.partition("people):")
    text = '    """\n' + "\n".join(lines) + '\n    """'
    (till.top / "till" / "money.py").write_text(f"{head}{colon}\n{text}{body}")
    heard: list[str] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        heard.append(message or "")

    async def say(client: "mcp.Client") -> None:
        given = {"task": till.task, "use_model": False}
        found = await client.call_tool("retrieve", given, progress_callback=note)
        assert not found.is_error, words(found)
        for line in ("def split(cents, people):", *lines):
            assert line in words(found)
        assert "forged" not in heard

    talk_here(till, say)


def test_errors_have_our_message_and_remedy(till: Project) -> None:
    from mcp import MCPError  # noqa: PLC0415

    async def say(client: "mcp.Client") -> None:
        unset = await client.call_tool("solve", {"task": "anything"})
        assert unset.is_error
        assert "config.toml" in words(unset)
        assert "\n-> " in words(unset)
        assert unset.structured_content["exit_code"] == 2
        for tool, given, wrong in (
            ("solve", {"task": 3}, "solve: task: "),
            ("why", {}, "why: path: Field required"),
            ("retrieve", {"task": "x", "repo": "/"}, "retrieve: repo: Extra inputs"),
            ("retrieve", {"task": "a\0b"}, "cannot contain a NUL character"),
            ("retrieve", {"task": "é" * 60_000}, "cannot have more than 100,000 bytes"),
            ("solve", {"plan_file": "/dev/fd/3"}, "solve: plan_file: .*it has to be a file"),
            ("land", {}, "there is no tool 'land'; there are: retrieve"),
        ):
            with pytest.raises(MCPError, match=wrong.replace("(", r"\(")):
                await client.call_tool(tool, given)

    talk_here(till, say)


def test_a_cancelled_solve_ends_as_by_ctrl_c_and_goes_on(till: Project) -> None:
    import anyio  # noqa: PLC0415

    async def say(client: "mcp.Client") -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "solve", {"task": till.task})
            await anyio.to_thread.run_sync(lambda: wait_until(lambda: held.reached, "the plan"))
            group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(
            lambda: wait_until(lambda: status(till) is not RunStatus.RUNNING, "the end of the run")
        )
        assert status(till) is RunStatus.INTERRUPTED
        going_on = await client.call_tool("solve", {"resume": "@", "hint": "mind the cents"})
        assert not going_on.is_error, words(going_on)
        assert going_on.structured_content["status"] == "complete"

    held = Held(Script(till.oracle))
    with OllamaServer(held) as server:
        till.configure(server.base_url)
        told = till.observe(lambda: talk_here(till, say))
    assert told.traces == {}
    assert [event.kind for event in told.recorded.events].count(EventKind.RESUMED) == 1


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def lines_of_a_plan(task: str) -> bytes:
    """What a client sends that lists the tools and then has a task planned."""
    request = {"name": "plan", "arguments": {"task": task}}
    lines = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": request},
    )
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def test_a_server_answers_past_what_is_no_request_and_no_command_outlives_its_client(till: Project) -> None:
    held = Held(Script(till.oracle))
    with OllamaServer(held) as server:
        till.configure(server.base_url)
        with subprocess.Popen(
            (*COMMAND, str(till.top)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=till.environment()
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            greeting, listing, request = lines_of_a_plan(till.task).partition(b'{"jsonrpc": "2.0", "id": 2')
            no_requests = b"hello\n[]\n\xff\n"
            process.stdin.write(greeting + no_requests + listing + request)
            process.stdin.flush()
            wait_until(lambda: held.reached, "the plan")
            process.stdin.close()
            said = [json.loads(line) for line in process.stdout.read().splitlines()]
            assert process.wait(PATIENCE) == 0
    assert all(each["jsonrpc"] == "2.0" for each in said)
    results = {each["id"]: each["result"] for each in said if "result" in each}
    assert results[1]["serverInfo"]["name"] == "cra"
    assert {tool["name"] for tool in results[2]["tools"]} == {"retrieve", "plan", "solve", "why"}
    assert status(till) is RunStatus.INTERRUPTED


@pytest.mark.parametrize("ending", ["deaf", "signal"])
def test_nor_one_that_no_longer_listens_nor_the_server(till: Project, ending: str) -> None:
    importlib.import_module("clean_room_agent.cli.mcp_server")  # once, before the forks
    held = Held(Script(till.oracle))
    with OllamaServer(held) as server:
        till.configure(server.base_url)
        with Forked(till, "mcp") as process:
            process.stdin.write(lines_of_a_plan(till.task))
            wait_until(lambda: held.reached, "the plan")
            if ending == "deaf":
                process.stdout.close()
                process.stdin.close()
            else:
                process.send_signal(signal.SIGTERM)
                said = process.stdout.read().splitlines()
                assert all(json.loads(line)["jsonrpc"] == "2.0" for line in said)
            assert process.wait() == (130 if ending == "signal" else 0)
    assert status(till) is RunStatus.INTERRUPTED


def test_what_a_client_wrote_is_never_taken_for_a_flag() -> None:
    from clean_room_agent.cli.mcp_server import PlanTool, SolveTool, WhyTool  # noqa: PLC0415

    command = SolveTool(task="--apply", hint="--exact", resume="--json").command(Path("/r"))
    assert command[-2:] == ("--", "--apply")
    assert {"--hint=--exact", "--resume=--json"} <= set(command)
    command = WhyTool(path="--exact", run="--help").command(Path("/r"))
    assert command[-3:] == ("--why=--exact", "--", "--help")
    judged = {"checks": ["assert a == 1", "--apply"], "tests": ["t.py::a"], "files": ["a.py"]}
    for tool in (SolveTool, PlanTool):
        command = tool.model_validate({"task": "x", **judged}).command(Path("/r"))
        expected = ("--check=assert a == 1", "--check=--apply", "--test=t.py::a", "--file=a.py", "--", "x")
        assert command[-6:] == expected


def test_a_failed_run_is_an_answer_and_a_broken_command_is_not() -> None:
    from clean_room_agent.cli.mcp_server import result_of  # noqa: PLC0415

    assert not result_of('{"status": "failed"}', 1, "").is_error
    refused = result_of('{"error": "no", "hint": "do", "exit_code": 2}', 2, "")
    assert (refused.is_error, words(refused)) == (True, "no\n-> do")
    assert words(result_of("", 3, "x\nerror: gone\n  -> start it\n")) == "error: gone\n  -> start it"
    assert words(result_of("", -9, "")) == "it ended with exit code -9"
    assert words(result_of("caf\udce9 é \U0001f600 \ud83d", 0, "")) == "caf? é \U0001f600 ?"


def test_without_the_extra_one_message_says_what_to_install(
    till: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert run(["mcp", "--repo", str(till.top)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "the extra `mcp`" in said.err
    assert "clean-room-agent[mcp]" in said.err

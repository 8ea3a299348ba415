"""What a person sees while a run goes on, from the terminal."""

import fcntl
import os
import pty
import struct
import termios

from msgspec import structs
from rich.text import Text
from testing.forked import Forked
from testing.runs.solving import Project, Script, serving
from testing.servers.ollama_script import Answer, ChatCall
from testing.shells import read_terminal

from clean_room_agent.execute.implement import IMPLEMENT

COLUMNS = 60


def seen(till: Project, *args: str) -> str:
    """All that a terminal of `COLUMNS` was written, without colours."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environment = till.environment() | {"TERM": "xterm"}
    del environment["COLUMNS"]
    with Forked(till, *args, terminal=dict.fromkeys(range(3), side), environment=environment) as process:
        os.close(side)
        said = read_terminal(main)
        os.close(main)
        assert process.wait() == 0, said
    return Text.from_ansi(said.replace("\r", "\n")).plain


def test_a_terminal_shows_what_is_asked_and_how_it_comes(till: Project) -> None:
    oracle = Script(till.oracle)

    def slowly(call: ChatCall) -> Answer | str:
        answer = oracle(call)
        if call.title != IMPLEMENT.title:
            return answer
        whole = Answer(text=answer) if isinstance(answer, str) else answer
        return structs.replace(whole, load_seconds=0.3, pause_seconds=0.05)

    with serving(till, slowly) as server:
        till.configure(server.base_url)
        shown = seen(till, "solve", till.task, "-v")
    assert "writing the edits · " in shown
    assert "asking implement" in shown
    assert " tokens" in shown
    assert "complete: shown by" in shown
    call = next(
        line for line in shown.splitlines() if line.lstrip().startswith("call ") and "implement" in line
    )
    assert call.startswith("      call "), call
    lines = [line.strip() for line in shown.splitlines()]
    for line in ("candidate 1:", "+++ b/till/money.py", "-    return [share] * people"):
        assert line in lines
    assert all(len(line) <= COLUMNS for line in shown.splitlines() if line.startswith("  "))


def test_a_run_goes_on_when_its_events_cannot_be_written(till: Project) -> None:
    told = till.solve_scripted(None, "--events", "/dev/full")
    assert (told.code, told.recorded.ending[0]) == (0, "complete"), told.err
    assert told.err.count("note: no more events are written: No space left on device") == 1

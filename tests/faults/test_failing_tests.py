"""Tests that fail, hang, flood, vanish or waver: nothing that they have not judged is accepted."""

import os
import re
from pathlib import Path

from testing.repositories import git, write
from testing.runs.solving import Project, edit, make_project

from clean_room_agent.execute.implement import IMPLEMENT

SPLIT = "    share = cents // people\n    return [share] * people"


def mend_with(extra: str) -> str:
    """The right edit, with one more line in the function."""
    body = (
        "    share, rest = divmod(cents, people)\n    return [share + 1] * rest + [share] * (people - rest)"
    )
    return edit(SPLIT, f"{extra}\n{body}")


def hangs(marker: Path) -> str:
    """Lines that start a child in a session of its own, and wait for ever."""
    child = f"import os, time; open({str(marker)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    return (
        "    import os, subprocess, sys, time\n"
        f"    subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True)\n"
        f"    while not os.path.exists({str(marker)!r}): time.sleep(0.01)\n"
        "    time.sleep(600)"
    )


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/status")
    return "State:\tZ" not in status.read_text() if status.exists() else True


FLOOD = (
    "    import sys\n    line = 'x' * 1023 + '\\n'\n    for _ in range(400):\n        sys.stdout.write(line * 10)\n"
    "    return []"
)


def test_a_flood_of_output_is_bounded_and_tests_that_hang_with_children_are_ended_with_all_of_them(
    till: Project, tmp_path: Path
) -> None:
    marker = tmp_path / "child"
    told = till.solve_scripted(
        {IMPLEMENT.title: [edit(SPLIT, FLOOD), mend_with(hangs(marker))]},
        testing={"timeout": 2.0, "output_bound": 20_000},
    )
    assert not is_running(int(marker.read_text()))
    assert (told.code, told.traces) == (0, {}), told.err
    assert told.recorded.outcomes[1:] == ["timed_out", "applied_and_passed"]
    flooded, hung = [row for row in told.recorded.validations if row.kind == "attempt"][:2]
    assert (flooded.timed_out, flooded.success) == (False, False)
    assert len(flooded.test_output) < 45_000
    cut = re.search(r"\[\.\.\. ([\d,]+) bytes", flooded.test_output)
    assert cut is not None, flooded.test_output[9_900:10_200]
    assert int(cut[1].replace(",", "")) > 4_000_000
    assert max(len(call.request.prompt) for call in told.recorded.calls) < 20_000
    assert (hung.timed_out, hung.success) == (True, False)
    said = "stopped after 2 s ([testing].timeout); all its processes were killed"
    assert said in told.recorded.attempts[1].error
    assert said in told.recorded.calls_of("implement")[2].request.prompt
    assert f"timed out: {said}" in told.err


def test_a_test_command_that_cannot_be_started_is_said_before_a_model_is_asked(tmp_path: Path) -> None:
    """`tests/orchestrator/test_runs/test_run_validity.py` has other commands that cannot judge."""
    command = "no-such-runner --all"
    told = make_project(tmp_path, test_command=command).solve_scripted({})
    assert (told.code, told.traces, told.branches, told.sessions) == (2, {}, (), ())
    message = f"[testing] test_command cannot be started: {command!r} exits with 127: "
    assert f"error: {message}" in told.err
    assert "no-such-runner: not found" in told.err
    assert "-> install no-such-runner, or name another command" in told.err
    assert told.recorded.ending[0] == "failed"
    assert told.recorded.ending[1].startswith(message)
    assert told.recorded.calls == ()
    assert told.recorded.tests("baseline").exit_code == 127


def test_a_generated_file_that_the_copy_lacks_is_said_before_a_model_is_asked(till: Project) -> None:
    """`tests/orchestrator/test_runs/test_missing_modules.py` has other modules that are missing."""
    write(till.top, {".gitignore": "_version.py\n", "till/__init__.py": "from till._version import v\n"})
    git(till.top, "add", "-A")
    write(till.top, {"till/_version.py": "v = 1\n"})
    told = till.solve_scripted({})
    assert (told.code, told.traces, told.recorded.calls) == (2, {}, ())
    assert "nothing can be imported: ModuleNotFoundError: No module named 'till._version'" in told.err
    assert "(till/__init__.py, line 1)" in told.err
    assert "put into .worktreeinclude, a line each: till/_version.py" in told.err

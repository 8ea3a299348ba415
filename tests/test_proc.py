import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from testing.patience import PATIENCE, stop_once_begun, wait_until

from clean_room_agent import proc
from clean_room_agent.errors import CommandError
from clean_room_agent.proc import (
    SLACK,
    Capture,
    absolute_entries,
    absolute_program,
    inherited_environment,
    outside_environment,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems have process groups only")
both_ways = pytest.mark.parametrize("contain", [True, False])

# Forks twice, leaves session, environment, folder and streams behind, and writes its number.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3):
            os.close(number)
        os.chdir("/")
        os.execve(sys.executable, [sys.executable, "-c",
            "import os,time; open(%r,'w').write(str(os.getpid())); time.sleep(600)"], {})
    os._exit(0)
os.wait()
while not os.path.exists(%r) or not open(%r).read():
    time.sleep(0.01)
"""


def state_and_parent(pid: int) -> tuple[str, int]:
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return "gone", 0
    return state, int(parent)


def is_alive(pid: int) -> bool:
    return state_and_parent(pid)[0] not in {"Z", "gone"}


def zombies() -> set[int]:
    pids = {int(path.name) for path in Path("/proc").glob("[0-9]*")}
    return {pid for pid in pids if state_and_parent(pid) == ("Z", os.getpid())}


def wait_for_death(pid: int) -> None:
    wait_until(lambda: not is_alive(pid), f"the death of {pid}")


def daemon(pid_file: Path) -> str:
    return DAEMON % (str(pid_file), str(pid_file), str(pid_file))


@both_ways
def test_both_streams_and_the_exit_code_come_back(tmp_path: Path, contain: bool) -> None:
    done = proc.run(
        ("sh", "-c", "pwd; echo err >&2; exit 3"),
        cwd=tmp_path,
        timeout=PATIENCE,
        check=False,
        contain=contain,
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, f"{tmp_path}\n".encode(), b"err\n")
    assert (done.timed_out, done.stdout_cut, done.stderr_cut) == (False, 0, 0)
    assert 0 < done.duration_s < 20


@both_ways
def test_a_failure_is_an_error_that_carries_everything(tmp_path: Path, contain: bool) -> None:
    with pytest.raises(CommandError, match="exit 3: why") as caught:
        proc.run(
            ("sh", "-c", "echo out; echo why >&2; exit 3"), cwd=tmp_path, timeout=PATIENCE, contain=contain
        )
    assert (caught.value.returncode, caught.value.stdout, caught.value.stderr) == (3, b"out\n", b"why\n")
    assert caught.value.command[0] == "sh"


@both_ways
def test_a_missing_program_or_folder_is_named(tmp_path: Path, contain: bool) -> None:
    with pytest.raises(CommandError, match="cannot start no-such-program: No such file") as caught:
        proc.run(("no-such-program",), cwd=tmp_path, timeout=PATIENCE, contain=contain)
    assert "install no-such-program" in caught.value.hint
    with pytest.raises(CommandError, match=r"no folder .*/gone"):
        proc.run(("true",), cwd=tmp_path / "gone", timeout=PATIENCE, contain=contain)


@both_ways
def test_death_by_signal_is_negative(tmp_path: Path, contain: bool) -> None:
    done = proc.run(
        ("sh", "-c", "kill -TERM $$"), cwd=tmp_path, timeout=PATIENCE, check=False, contain=contain
    )
    assert done.returncode == -signal.SIGTERM


@both_ways
def test_the_environment_is_what_is_given_and_nothing_else(tmp_path: Path, contain: bool) -> None:
    odd = os.fsdecode(b"\xe9=x\ny")
    done = proc.run(
        ("/usr/bin/env", "-0"), cwd=tmp_path, env={"A": odd, "B": ""}, timeout=PATIENCE, contain=contain
    )
    assert done.stdout == b"A=\xe9=x\ny\0B=\0"


@both_ways
def test_input_is_fed_and_absent_input_is_empty(tmp_path: Path, contain: bool) -> None:
    text = b"0123456789" * 300_000
    done = proc.run(("cat",), cwd=tmp_path, timeout=PATIENCE, input=text, bound=10_000_000, contain=contain)
    assert done.stdout == text
    assert proc.run(("cat",), cwd=tmp_path, timeout=PATIENCE, contain=contain).stdout == b""
    assert proc.run(("true",), cwd=tmp_path, timeout=PATIENCE, input=text, contain=contain).returncode == 0
    grow = ("sh", "-c", "echo more >> /proc/self/fd/0; cat")
    if sys.platform == "linux":
        assert proc.run(grow, cwd=tmp_path, timeout=PATIENCE, input=b"x", contain=contain).stdout == b"x"


def test_a_string_is_a_shell_command(tmp_path: Path) -> None:
    assert proc.run("echo a | tr a b && yes | head -n 1", cwd=tmp_path, timeout=PATIENCE).stdout == b"b\ny\n"
    assert proc.run("yes | head -n 1 >/dev/null", cwd=tmp_path, timeout=PATIENCE).stderr == b""


@both_ways
def test_gigabytes_neither_fill_memory_nor_block(tmp_path: Path, contain: bool) -> None:
    script = "printf HEAD; head -c 150000000 /dev/zero; head -c 150000000 /dev/zero >&2; printf TAIL"
    done = proc.run(("sh", "-c", script), cwd=tmp_path, timeout=PATIENCE, bound=1000, contain=contain)
    assert (len(done.stdout), done.stdout_cut) == (1000, 150_000_008 - 1000)
    assert done.stdout.startswith(b"HEAD\0")
    assert done.stdout.endswith(b"\0TAIL")
    assert done.stderr_cut == 150_000_000 - 1000
    assert b"\0\n[... 149999008 bytes left out ...]\n\0" in done.marked_streams()[0]


@both_ways
def test_a_timeout_kills_the_group_and_keeps_what_was_written(tmp_path: Path, contain: bool) -> None:
    command = ("sh", "-c", "echo $$; sleep 600 & echo $!; wait")
    done = stop_once_begun(
        lambda seconds: proc.run(command, cwd=tmp_path, timeout=seconds, check=False, contain=contain),
        lambda done: done.stdout.count(b"\n") == 2,
    )
    assert done.timed_out
    assert done.returncode == -signal.SIGKILL
    assert done.duration_s < PATIENCE
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 2
    for pid in pids:
        wait_for_death(pid)
    with pytest.raises(CommandError, match=r"stopped after 0\.1 s"):
        proc.run(("sleep", "600"), cwd=tmp_path, timeout=0.1, contain=contain)


@linux
def test_a_timeout_kills_daemons_too(tmp_path: Path) -> None:
    script = daemon(tmp_path / "pid") + "\ntime.sleep(600)"
    done = stop_once_begun(
        lambda seconds: proc.run((sys.executable, "-c", script), cwd=tmp_path, timeout=seconds, check=False),
        lambda _: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(),
    )
    assert done.timed_out
    assert not is_alive(int((tmp_path / "pid").read_text()))


@linux
def test_a_daemon_does_not_outlive_a_command_that_succeeded(tmp_path: Path) -> None:
    done = proc.run((sys.executable, "-c", daemon(tmp_path / "pid")), cwd=tmp_path, timeout=PATIENCE)
    assert done.returncode == 0
    assert not is_alive(int((tmp_path / "pid").read_text()))


@both_ways
@pytest.mark.parametrize("background", ["sleep 600", "yes"])
def test_a_child_that_holds_the_pipes_does_not_hold_us(
    tmp_path: Path, contain: bool, background: str
) -> None:
    done = proc.run(
        ("sh", "-c", f"echo done; {background} & echo $! > pid; exit 4"),
        cwd=tmp_path,
        timeout=PATIENCE,
        check=False,
        contain=contain,
    )
    assert done.returncode == 4
    assert done.stdout.startswith(b"done\n")
    assert done.duration_s < PATIENCE
    wait_for_death(int((tmp_path / "pid").read_text()))


@both_ways
def test_a_command_that_closes_its_pipes_is_waited_for(tmp_path: Path, contain: bool) -> None:
    script = "exec >&- 2>&-; sleep 0.3; exit 5"
    done = proc.run(("sh", "-c", script), cwd=tmp_path, timeout=PATIENCE, check=False, contain=contain)
    assert done.returncode == 5
    assert done.duration_s >= 0.3


@linux
def test_a_command_that_kills_its_supervisor_fails_and_dies(tmp_path: Path) -> None:
    done = proc.run("echo $$ > pid; kill -9 $PPID; sleep 600", cwd=tmp_path, timeout=PATIENCE, check=False)
    assert done.returncode != 0
    assert done.duration_s < PATIENCE
    wait_for_death(int((tmp_path / "pid").read_text()))


@linux
def test_what_runs_dies_with_the_program(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from clean_room_agent import proc;"
        f"proc.run('setsid sleep 600 & echo $! > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; wait',"
        " cwd=Path('/'), timeout=None)"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as program:
        while not (tmp_path / "pid").exists():
            assert program.poll() is None
            time.sleep(0.01)
        program.kill()
    wait_for_death(int((tmp_path / "pid").read_text()))


def test_ctrl_c_kills_the_command_and_is_passed_on(tmp_path: Path) -> None:
    def interrupt() -> None:
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        proc.run("echo $$ > pid.new; mv pid.new pid; sleep 600", cwd=tmp_path, timeout=PATIENCE)
    thread.join()
    wait_for_death(int((tmp_path / "pid").read_text()))


def test_runs_in_threads_leave_no_zombie_and_steal_no_child(tmp_path: Path) -> None:
    def one(number: int) -> bytes:
        command = f"(setsid sleep 600 &) ; echo {number}"
        return proc.run(command, cwd=tmp_path, timeout=PATIENCE).stdout

    before = zombies()
    with subprocess.Popen(["sh", "-c", "sleep 0.2; exit 7"]) as other:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(one, range(16)))
        assert other.wait() == 7
    assert answers == [b"%d\n" % number for number in range(16)]
    assert zombies() <= before


def test_a_stream_comes_in_pieces(tmp_path: Path) -> None:
    pieces = list(proc.stream(("printf", r"a\0\0bc\0d"), cwd=tmp_path, separator=b"\0"))
    assert pieces == [b"a", b"", b"bc", b"d"]
    split = "printf a-; sleep 0.2; printf %s -b-; sleep 0.2; printf -; printf c"
    assert list(proc.stream(("sh", "-c", split), cwd=tmp_path, separator=b"--")) == [b"a", b"b", b"c"]
    assert sum(1 for _ in proc.stream(("seq", "200000"), cwd=tmp_path)) == 200_000


def test_a_stream_that_fails_says_so_after_its_last_piece(tmp_path: Path) -> None:
    script = "echo one; head -c 3000000 /dev/zero >&2; echo two; echo broken >&2; exit 2"
    pieces = proc.stream(("sh", "-c", script), cwd=tmp_path)
    assert [next(pieces), next(pieces)] == [b"one", b"two"]
    with pytest.raises(CommandError, match=r"exit 2: .*broken"):
        next(pieces)


def test_leaving_a_stream_early_kills_the_program(tmp_path: Path) -> None:
    pieces = proc.stream(("sh", "-c", "echo $$; yes"), cwd=tmp_path)
    pid = int(next(iter(pieces)))
    pieces.close()
    assert not is_alive(pid)


PATIENT = """
import signal, sys, time
def end(_number, _frame):
    print("x" * 200_000, flush=True)
    open("ended", "w").close()
    sys.exit()
signal.signal(signal.SIGINT, end)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


def test_a_stream_that_is_left_with_patience_ends_as_by_ctrl_c(tmp_path: Path) -> None:
    pieces = proc.stream((sys.executable, "-c", PATIENT), cwd=tmp_path, patience=PATIENCE)
    assert next(iter(pieces)) == b"ready"
    pieces.close()
    assert (tmp_path / "ended").exists()


def test_patience_with_what_does_not_end_has_one(tmp_path: Path) -> None:
    script = "trap '' INT; echo $$; while :; do sleep 1; done"
    pieces = proc.stream(("sh", "-c", script), cwd=tmp_path, patience=0.2)
    pid = int(next(iter(pieces)))
    pieces.close()
    assert not is_alive(pid)


def test_inherited_variables_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/x")
    monkeypatch.setenv("KEPT", "1")
    environment = inherited_environment(without="GIT_")
    assert "GIT_DIR" not in environment
    assert environment["KEPT"] == "1"


@both_ways
def test_an_open_file_can_be_handed_on(tmp_path: Path, contain: bool) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"handed on")
    os.close(writing)
    code = f"import os; print(os.read({reading}, 100).decode())"
    command = (sys.executable, "-c", code)
    assert (
        proc.run(command, cwd=tmp_path, timeout=PATIENCE, contain=contain, keep=(reading,)).stdout
        == b"handed on\n"
    )
    os.close(reading)


@linux
def test_a_python_that_does_not_start_by_itself_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\necho 'libpython3.11.so.1.0: cannot open shared object file' >&2\nexit 127\n"
    )
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(CommandError, match=r"libpython3\.11\.so") as raised:
        proc.run(("true",), cwd=tmp_path, timeout=PATIENCE, check=False)
    assert str(python) in raised.value.message


def test_a_channel_is_apart_from_the_output_and_closed_at_the_end(tmp_path: Path) -> None:
    channel, out = os.pipe(), list[bytes]()
    there = f"/dev/fd/{channel[1]}"
    command = ("/bin/sh", "-c", f"echo output; echo told >{there}; echo again >{there}; echo more")
    pieces = list(proc.stream(command, cwd=tmp_path, channel=channel, out=out.append))
    assert (pieces, b"".join(out)) == ([b"told", b"again"], b"output\nmore\n")
    for end in channel:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(end)


def test_a_channel_is_closed_if_the_program_cannot_be_started(tmp_path: Path) -> None:
    channel = os.pipe()
    with pytest.raises(CommandError):
        list(proc.stream(("/nowhere",), cwd=tmp_path, channel=channel))
    for end in channel:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(end)


HOSTILE = {
    "LD_LIBRARY_PATH": "/usr/local/cuda/lib64:",
    "LD_PRELOAD": "./libevil.so",
    "LD_AUDIT": "libevil.so",
    "DYLD_INSERT_LIBRARIES": "x",
    "BASH_ENV": "start.sh",
    "ENV": "start.sh",
}
CHUNKS = st.lists(st.binary(max_size=40), max_size=30)


def plant(folder: Path, name: str, canary: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\ntouch {canary}\n")
    (folder / name).chmod(0o755)


def test_a_child_gets_nothing_that_means_here() -> None:
    given = {**HOSTILE, "PATH": ":/usr/bin:.:bin:/bin:", "HOME": "/h", "LDFLAGS": "-l", "ENVIRONMENT": "e"}
    kept = {"PATH": "/usr/bin:/bin", "HOME": "/h", "LDFLAGS": "-l", "ENVIRONMENT": "e"}
    assert outside_environment(given) == kept


@pytest.mark.parametrize("path", ["", ":", ".", "bin:./x", "~/bin"])
def test_a_path_of_relative_entries_is_empty(path: str) -> None:
    assert absolute_entries(path) == ""
    assert absolute_program("git", {"PATH": path}) == "git"


def test_a_program_is_looked_up_once(tmp_path: Path) -> None:
    plant(tmp_path / "one", "tool", tmp_path / "canary")
    path = {"PATH": f"{tmp_path}/none:{tmp_path}/one"}
    assert absolute_program("tool", path) == f"{tmp_path}/one/tool"
    plant(tmp_path / "none", "tool", tmp_path / "canary")
    assert absolute_program("tool", path) == f"{tmp_path}/one/tool"
    assert absolute_program("./tool", path) == "./tool"


@both_ways
@pytest.mark.parametrize("path", [":/usr/bin:/bin", ".:/usr/bin:/bin", "bin:/usr/bin:/bin"])
def test_no_program_of_the_folder_is_run(tmp_path: Path, path: str, *, contain: bool) -> None:
    canary = tmp_path / "canary"
    for folder in (tmp_path, tmp_path / "bin"):
        for name in ("git", "true"):
            plant(folder, name, canary)
    for command in (("git", "--version"), "true; git --version"):
        done = proc.run(command, cwd=tmp_path, env={"PATH": path}, timeout=PATIENCE, contain=contain)
        assert done.stdout.startswith(b"git version")
    assert next(iter(proc.stream(("git", "--version"), cwd=tmp_path, env={"PATH": path})))
    assert not canary.exists()


@both_ways
@pytest.mark.parametrize("inherited", [True, False])
def test_the_loader_hears_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, contain: bool, inherited: bool
) -> None:
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    env = None if inherited else dict(os.environ)
    done = proc.run(("env",), cwd=tmp_path, env=env, timeout=PATIENCE, contain=contain)
    seen = {line.partition("=")[0] for line in done.stdout.decode().splitlines()}
    assert seen.isdisjoint(HOSTILE)
    assert b"cannot be preloaded" not in done.stderr


def test_output_within_the_bound_is_whole() -> None:
    capture = Capture(10)
    for chunk in (b"0123", b"4567", b"89"):
        capture.feed(chunk)
    assert (capture.data(), capture.cut()) == (b"0123456789", 0)
    capture.feed(b"ab")
    assert (capture.data(), capture.cut()) == (b"01234789ab"[:5] + b"789ab", 2)


@given(chunks=CHUNKS, bound=st.integers(2, 50))
def test_both_ends_are_kept_and_the_rest_is_counted(chunks: list[bytes], bound: int) -> None:
    capture, whole = Capture(bound), b"".join(chunks)
    for chunk in chunks:
        capture.feed(chunk)
    half = bound // 2
    kept = whole if len(whole) <= 2 * half else whole[:half] + whole[-half:]
    assert capture.data() == kept
    assert capture.cut() == len(whole) - len(kept)


def test_a_long_stream_is_held_in_little_memory() -> None:
    capture = Capture(100)
    for _ in range(100):
        capture.feed(b"x" * 5_000)
        assert len(capture.tail) <= 2 * capture.half + SLACK
    assert capture.cut() == 500_000 - 100

import os
import signal
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from testing.patience import PATIENCE
from testing.sandboxes import installed

from clean_room_agent import proc
from clean_room_agent.errors import CommandError
from clean_room_agent.sandbox.bubblewrap import (
    Bubblewrap,
    Limits,
    LimitWatch,
    Obstacle,
    Sandbox,
    find_bubblewrap,
)
from clean_room_agent.sandbox.policy import Policy

ENV = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    (tmp_path / "tree").mkdir()
    policy = Policy(tree=tmp_path / "tree", at=tmp_path / "project", home=tmp_path / "home")
    return Sandbox(bubblewrap=installed(), policy=policy)


def pretended(folder: Path, script: str) -> Bubblewrap:
    """A program in the place of bubblewrap."""
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Bubblewrap(program=str(program), version="0.8.0")


def test_where_it_is_missing_the_remedy_is_to_install_it(tmp_path: Path) -> None:
    found = find_bubblewrap(str(tmp_path))
    assert isinstance(found, Obstacle)
    assert "install" in found.remedy


def test_one_that_is_too_old_is_told_with_its_version(tmp_path: Path) -> None:
    pretended(tmp_path, "echo bubblewrap 0.6.1")
    found = find_bubblewrap(str(tmp_path))
    assert isinstance(found, Obstacle)
    assert "0.6.1 is too old" in found.reason


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("bwrap: setting up uid map: Permission denied", "apparmor_restrict_unprivileged_userns"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "systempaths=unconfined"),
        ("bwrap: something else", 'mode = "none"'),
    ],
)
def test_a_sandbox_that_cannot_be_set_up_is_an_error_with_its_remedy(
    said: str, remedy: str, tmp_path: Path
) -> None:
    program = pretended(tmp_path, f'echo "{said}" >&2; exit 1')
    sandbox = Sandbox(bubblewrap=program, policy=Policy(tree=tmp_path, at=tmp_path, home=tmp_path))
    with pytest.raises(CommandError, match="could not be set up") as caught:
        sandbox.run("true", env=ENV, timeout=PATIENCE)
    assert remedy in caught.value.hint
    obstacle = sandbox.try_out(ENV)
    assert obstacle is not None
    assert said in obstacle.reason


@pytest.mark.parametrize("end", ["echo 'bwrap: Resource temporarily unavailable' >&2; exit 1", "kill -9 $$"])
def test_a_trial_that_told_nothing_is_no_obstacle_but_an_error(end: str, tmp_path: Path) -> None:
    policy = Policy(tree=tmp_path, at=tmp_path, home=tmp_path)
    with pytest.raises(CommandError, match="did not finish"):
        Sandbox(bubblewrap=pretended(tmp_path, end), policy=policy).try_out(ENV)


def test_streams_exit_code_and_place_come_through(sandbox: Sandbox) -> None:
    done = sandbox.run("pwd; echo err >&2; cat; exit 3", env=ENV, timeout=PATIENCE, input=b"fed")
    assert done.stdout.decode() == f"{sandbox.policy.at}\nfed"
    assert (done.stderr, done.returncode) == (b"err\n", 3)


def test_what_is_written_stands_in_the_tree(sandbox: Sandbox) -> None:
    sandbox.run(
        f"echo x > {sandbox.policy.at}/made; echo y > ~/gone; echo z > /tmp/gone", env=ENV, timeout=PATIENCE
    )
    assert (sandbox.policy.tree / "made").read_text() == "x\n"
    assert not sandbox.policy.at.exists()
    assert not sandbox.policy.home.exists()


def test_a_program_that_speaks_like_bubblewrap_is_not_taken_for_it(sandbox: Sandbox) -> None:
    done = sandbox.run("echo 'bwrap: no' >&2; exit 1", env=ENV, timeout=PATIENCE)
    assert done.returncode == 1


def test_loopback_works_inside(sandbox: Sandbox) -> None:
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); "
        "socket.create_connection(s.getsockname()); print('met')"
    )
    assert sandbox.run(("/usr/bin/python3", "-c", code), env=ENV, timeout=PATIENCE).stdout == b"met\n"


def test_a_timeout_leaves_no_process(sandbox: Sandbox) -> None:
    done = sandbox.run("setsid sh -c 'sleep 4321' & sleep 4321", env=ENV, timeout=1.0)
    assert done.timed_out
    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)]
    assert not any(b"4321" in line and b"sleep" in line for line in running)


def test_bounds_hold_and_are_told(sandbox: Sandbox) -> None:
    held = replace(sandbox, limits=Limits(memory=100 << 20))
    code = "import time; held = b'x' * (300 << 20); time.sleep(600)"
    done = held.run(("/usr/bin/python3", "-c", code), env=ENV, timeout=PATIENCE)
    assert (done.exceeded, done.timed_out) == ("memory", False)


def test_no_mount_goes_by_way_of_a_link(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    place = sandbox.policy.at / "packages/a/node_modules"
    guarded = replace(sandbox, policy=replace(sandbox.policy, mounts=((tmp_path / "modules", place),)))
    (sandbox.policy.tree / "packages").mkdir()
    (sandbox.policy.tree / "packages/a").symlink_to(tmp_path)
    with pytest.raises(CommandError, match="became a link"):
        guarded.run("true", env=ENV, timeout=PATIENCE)
    assert not (tmp_path / "node_modules").exists()


def test_variables_for_the_loader_reach_the_command_and_not_bubblewrap(sandbox: Sandbox) -> None:
    env = ENV | {"LD_LIBRARY_PATH": ":lib", "PATH": "/usr/bin:/bin:./tools"}
    allowed = replace(sandbox, environment=("LD_LIBRARY_PATH",))
    done = allowed.run("echo $LD_LIBRARY_PATH $PATH", env=env, timeout=PATIENCE)
    assert done.stdout == b":lib /usr/bin:/bin:./tools\n"
    (sandbox.policy.tree / "lib").mkdir()
    told = pretended(sandbox.policy.tree.parent, "env >&2; exit 1")
    with pytest.raises(CommandError) as caught:
        replace(allowed, bubblewrap=told).run("true", env=env, timeout=PATIENCE)
    assert "LD_LIBRARY_PATH" not in caught.value.message
    assert "PATH=/usr/bin:/bin\n" in caught.value.message + "\n"


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there are no sandboxes elsewhere")
HOLDS = "import time; held = b'x' * (300 << 20); print('held', flush=True); time.sleep(600)"
SHARED = (
    "import os, time; held = b'x' * (60 << 20)\nfor _ in range(5): os.fork() or time.sleep(2)\ntime.sleep(1)"
)
FORKS = "import os, time\nfor _ in range(40): os.fork() or time.sleep(600)\ntime.sleep(600)"
ZOMBIES = "import os, time\nfor _ in range(40): os.fork() or os._exit(0)\ntime.sleep(600)"
ONE_BY_ONE = "import os\nfor _ in range(700): os.waitpid(os.fork() or os._exit(0), 0)"


def limited(script: str, place: Path, limits: Limits) -> proc.Completed:
    return proc.run(
        (sys.executable, "-I", "-S", "-c", script),
        cwd=place,
        timeout=PATIENCE,
        check=False,
        contain=False,
        rlimits=(limits.file_size, limits.processes),
        watch=LimitWatch(limits),
    )


def test_what_holds_too_much_memory_is_killed_and_said_so(tmp_path: Path) -> None:
    done = limited(HOLDS, tmp_path, Limits(memory=100 << 20))
    assert (done.exceeded, done.timed_out, done.returncode) == ("memory", False, -signal.SIGKILL)


def test_pages_that_children_share_are_counted_once(tmp_path: Path) -> None:
    done = limited(SHARED, tmp_path, Limits(memory=200 << 20))
    assert (done.exceeded, done.returncode) == ("", 0)


@pytest.mark.parametrize("script", [FORKS, ZOMBIES])
def test_too_many_processes_are_killed_and_said_so(script: str, tmp_path: Path) -> None:
    done = limited(script, tmp_path, Limits(processes=20))
    assert not done.timed_out
    assert done.exceeded == "processes" or b"BlockingIOError" in done.stderr


def test_many_processes_one_after_the_other_do_not_count_together(tmp_path: Path) -> None:
    done = limited(ONE_BY_ONE, tmp_path, Limits(processes=300))
    assert (done.exceeded, done.returncode) == ("", 0)


def test_a_file_does_not_grow_beyond_its_bound(tmp_path: Path) -> None:
    grow = "with open('f', 'wb') as file: file.write(b'x' * 5_000_000)"
    done = limited(grow, tmp_path, Limits(file_size=1_000_000))
    assert done.returncode != 0
    assert (tmp_path / "f").stat().st_size == 1_000_000

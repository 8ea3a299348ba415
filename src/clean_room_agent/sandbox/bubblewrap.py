"""Finds bubblewrap, checks that it works, and runs a command in it, within limits: the kernel's for files (`supervisor.py` sets
them), and by looking several times a second for memory and processes, which it does not count for a whole tree, nor
processes of root's at all.
"""

import contextlib
import json
import os
import re
import select
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from clean_room_agent import proc
from clean_room_agent.errors import CommandError
from clean_room_agent.proc import outside_environment
from clean_room_agent.sandbox.policy import NAME, Policy, arguments, variables
from clean_room_agent.sandbox.seccomp import filter_program
from clean_room_agent.supervisor import below, processes_of

FOLDERS = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"
"""Used instead of the user's PATH, in which a repository may have put something."""
LEAST = (0, 8)
TRIAL_TIMEOUT_S = 60.0
END_TIMEOUT_S = 15.0
MIB = 1 << 20
INSTALL = "install it: apt install bubblewrap, dnf install bubblewrap, or pacman -S bubblewrap"
IN_A_CONTAINER = (
    "in a container, start that with what bubblewrap needs (Docker: --security-opt seccomp=unconfined "
    '--security-opt systempaths=unconfined), or let the container be the sandbox: [sandbox] mode = "none"'
)
REMEDIES = (
    (
        r"[Nn]o permissions to create|uid map|user namespace|clone",
        "allow programs to create user namespaces: sysctl -w kernel.unprivileged_userns_clone=1 (Debian), "
        "kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile for bwrap (Ubuntu); "
        + IN_A_CONTAINER,
    ),
    (r"mount", IN_A_CONTAINER),
)
SHORT = re.compile(r"temporarily unavailable|Cannot allocate memory|Too many open files")
"""What bubblewrap says if the machine is temporarily short of something."""
OTHER_REMEDY = 'or do without, with a warning at each run: [sandbox] mode = "none"'
LOOK_SECONDS = 0.1
"""Seconds between two looks; more where looking takes long."""
LOOK_SHARE = 20


class Limits(Struct, frozen=True, kw_only=True):
    """Limits for a command and everything that it starts. 0: no limit."""

    memory: int = 0
    """Bytes held by all its processes together."""
    processes: int = 0
    """Processes and threads at a time, those that ended and were not waited for included."""
    file_size: int = 0
    """Bytes of each file that is written."""


class LimitWatch:
    """Says which limit a process and its descendants exceed, whenever it is called, and looks every tenth of a second."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._next = 0.0

    def __call__(self, pid: int) -> str:
        """The name of the limit; "" for none."""
        began = time.monotonic()
        if began < self._next or not (self._limits.memory or self._limits.processes):
            return ""
        excess = find_excess(pid, self._limits)
        now = time.monotonic()
        self._next = now + max(LOOK_SECONDS, LOOK_SHARE * (now - began))
        return excess


def find_excess(pid: int, limits: Limits) -> str:
    """The limit that the process and its descendants exceed now: "memory", "processes", or "" for none."""
    known = processes_of(None)
    tree = [each for each in (pid, *below(pid, known)) if each in known]
    # One that has ended and was not waited for has no thread, and still takes a place.
    if limits.processes and sum(known[each][1] or 1 for each in tree) > limits.processes:
        return "processes"
    # Pages that several share are counted once for each, so a sum within the limit is surely within it.
    if limits.memory and sum(known[each][2] for each in tree) > limits.memory:
        held = sum(_held_by(each, known[each][2]) for each in tree)
        return "memory" if held > limits.memory else ""
    return ""


def _held_by(pid: int, resident: int) -> int:
    """Bytes of the process, with shared pages divided among the processes that share them; `resident` if that is
    unavailable.
    """
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as rollup:  # noqa: PTH123
        for line in rollup:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) << 10
    return resident


class Bubblewrap(Struct, frozen=True, kw_only=True):
    """The program, as it is installed."""

    program: str
    version: str


class Obstacle(Struct, frozen=True, kw_only=True):
    """Why no sandbox is possible here, and what to do about it."""

    reason: str
    remedy: str


class Sandbox(Struct, frozen=True, kw_only=True):
    """Runs commands that cannot reach anything that the policy does not show."""

    bubblewrap: Bubblewrap
    policy: Policy
    environment: tuple[str, ...] = ()
    """Names of variables that are passed on in addition to the usual ones."""
    limits: Limits = Limits()
    before: tuple[str, ...] = ()
    """A program with arguments that starts bubblewrap, such as one that switches to another user."""

    def run(
        self,
        command: tuple[str, ...] | str,
        *,
        env: Mapping[str, str],
        timeout: float | None,
        bound: int = proc.DEFAULT_BOUND,
        input: bytes = b"",  # noqa: A002 - as proc.run names it
    ) -> proc.Completed:
        """Run a command in the sandbox, like `proc.run` without `check`; only permitted variables of `env` are
        passed.

        Raises:
            CommandError: the sandbox could not be set up; the command was not run.
        """
        done, started = self._run_bubblewrap(command, env, timeout, bound, input)
        if not started and done.returncode > 0:  # it was not killed, for whatever reason, but gave up
            said = _error_output(done)
            raise CommandError(
                f"the sandbox could not be set up: {said}", hint=remedy_for(said), command=done.command
            )
        return done

    def _run_bubblewrap(
        self,
        command: tuple[str, ...] | str,
        env: Mapping[str, str],
        timeout: float | None,
        bound: int = proc.DEFAULT_BOUND,
        given: bytes = b"",
    ) -> tuple[proc.Completed, bool]:
        """How bubblewrap ended, and whether it had started the command."""
        inner = ("/bin/sh", "-c", command) if isinstance(command, str) else command
        self._refuse_links()
        with contextlib.ExitStack() as stack:
            files: list[int] = []

            def data(content: bytes) -> int:
                handle = stack.enter_context(proc.file_in_memory(content))
                files.append(handle)
                return handle

            options = [*arguments(self.policy, data), "--seccomp", str(data(filter_program() or b""))]
            status = data(b"")
            inside = variables(env, self.environment, self.policy.home)
            around = outside_environment(inside)
            # What bubblewrap itself must not hear, the command inside may.
            late = {name: value for name, value in inside.items() if around.get(name) != value}
            options += [part for name in sorted(late) for part in ("--setenv", name, late[name])]
            outer = (*self.before, self.bubblewrap.program, *options, "--json-status-fd", str(status), "--")
            done = proc.run(
                (*outer, *inner),
                cwd=self.policy.tree,
                env=around,
                timeout=timeout,
                input=given,
                check=False,
                bound=bound,
                rlimits=(self.limits.file_size, self.limits.processes),
                watch=LimitWatch(self.limits),
                keep=files,
                contain=False,  # all that runs in its namespace ends with bubblewrap, whatever ends that
            )
            told = _read_status(status)
            _wait_for_end(told.get("child-pid", 0))
            return done, "exit-code" in told

    def _refuse_links(self) -> None:
        """Refuse mounts through symbolic links in the tree, which an earlier command may have created."""
        for _, place in self.policy.mounts:
            if not place.is_relative_to(self.policy.at):
                continue
            inside = self.policy.tree / place.relative_to(self.policy.at)
            for part in (inside, *inside.parents):
                if part == self.policy.tree:
                    break
                if part.is_symlink():
                    raise CommandError(f"the sandbox could not be set up: {part} became a link")

    def try_out(self, env: Mapping[str, str]) -> Obstacle | None:
        """Run a trial: None if a command can be run in the sandbox, else why not.

        Raises:
            CommandError: the trial was inconclusive: it was killed, took too long, or the system was short of
                something.
        """
        done, started = self._run_bubblewrap(("/bin/true",), env, TRIAL_TIMEOUT_S)
        said = _error_output(done)
        if done.timed_out or done.returncode < 0 or SHORT.search(said):
            raise CommandError(
                f"a trial of the sandbox did not finish: {said or 'it was killed'}",
                hint="try again; programs that use up memory or processes may be in the way",
                command=done.command,
            )
        if done.returncode == 0:
            return None
        if started:
            return Obstacle(reason=f"a trial in it ended with {done.returncode}: {said}", remedy=OTHER_REMEDY)
        return Obstacle(reason=f"the sandbox could not be set up: {said}", remedy=remedy_for(said))


def find_bubblewrap(folders: str = FOLDERS) -> Bubblewrap | Obstacle:
    """The program, if it is installed, new enough, and there is a seccomp filter for this architecture."""
    if sys.platform != "linux":
        return Obstacle(reason=f"bubblewrap needs Linux, and this is {sys.platform}", remedy=OTHER_REMEDY)
    if filter_program() is None:
        return Obstacle(
            reason="there is no system call filter for this kind of processor", remedy=OTHER_REMEDY
        )
    program = shutil.which("bwrap", path=folders)
    if program is None:
        return Obstacle(reason="bubblewrap is not installed", remedy=f"{INSTALL}; {OTHER_REMEDY}")
    told = proc.run((program, "--version"), cwd=Path("/"), env={}, timeout=10, check=False, contain=False)
    number = re.search(r"(\d+)\.(\d+)[.\d]*", told.stdout.decode("ascii", "replace"))
    if told.timed_out or told.returncode < 0:
        raise CommandError(f"{program} --version did not finish", hint="try again", command=told.command)
    if number is None or (int(number[1]), int(number[2])) < LEAST:
        version = number[0] if number else "of unknown version"
        return Obstacle(
            reason=f"bubblewrap {version} is too old; {LEAST[0]}.{LEAST[1]} or newer is needed",
            remedy=OTHER_REMEDY,
        )
    return Bubblewrap(program=program, version=number[0])


def working_bubblewrap() -> Bubblewrap | Obstacle:
    """The program, once a trial has shown that it works on this machine (`try_machine`)."""
    found = find_bubblewrap()
    return found if isinstance(found, Obstacle) else try_machine(found) or found


def try_machine(bubblewrap: Bubblewrap) -> Obstacle | None:
    """Why the program does not work on this machine; None where it does.

    The trial is always the same: it does not depend on any repository, variable or folder of the user.

    Raises:
        CommandError: the trial was inconclusive.
    """
    policy = Policy(tree=Path("/usr"), at=Path("/run/cra-trial"), home=Path("/home") / NAME)
    return Sandbox(bubblewrap=bubblewrap, policy=policy).try_out({})


def remedy_for(said: str) -> str:
    """The remedy for an error message of bubblewrap."""
    found = next((remedy for pattern, remedy in REMEDIES if re.search(pattern, said)), "")
    return f"{found}; {OTHER_REMEDY}" if found else OTHER_REMEDY


def _error_output(done: proc.Completed) -> str:
    return done.stderr.decode("utf-8", "replace").strip()[-500:]


def _read_status(handle: int) -> dict[str, int]:
    """What bubblewrap reported: the number of the namespace's first process, and, unless it was killed, the command's exit
    code.
    """
    told = os.pread(handle, 1 << 16, 0).decode("ascii", "replace")
    found: dict[str, int] = {}
    for line in told.splitlines():
        if line.strip().endswith("}"):
            found |= json.loads(line)
    return found


def _wait_for_end(pid: int) -> None:
    """Wait until the first process of a namespace is gone, and with it all others: the kernel kills them a moment after
    bubblewrap has ended.
    """
    with contextlib.suppress(OSError):  # it is gone
        handle = os.pidfd_open(pid)
        try:
            select.select([handle], [], [], END_TIMEOUT_S)
        finally:
            os.close(handle)

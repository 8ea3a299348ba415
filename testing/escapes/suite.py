"""Every known way out of the sandbox: runs `helpers.py` and `attempts.py`, joined to one program, in a sandbox among throw-away
secrets, and judges from outside what got out. `cra check --sandbox` tries ten of these on the user's machine.
"""

import contextlib
import json
import os
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from clean_room_agent import proc
from clean_room_agent.errors import CommandError
from clean_room_agent.sandbox.bubblewrap import MIB, Bubblewrap, Limits, Sandbox
from clean_room_agent.sandbox.escapes import BECOME_NOBODY, NOBODY, EscapeAttempt, find_python
from clean_room_agent.sandbox.policy import GitFolder, Policy, tool_places

SCRIPTS = tuple(Path(__file__).with_name(name) for name in ("helpers.py", "attempts.py"))
"""The program that tries to escape, in the order in which its parts are joined."""
SECRET = "cra-secret-5f1c"
MARK = "cra-escape"
SCRATCH = 16 * MIB
FILE_SIZE = 64 * MIB
TIMEOUT_S = 120.0
DAEMON_S = 0.5
"""Seconds within which a process that outlives its command leaves its trace."""
OUTSIDE = tuple(Path(folder, MARK) for folder in ("/", "/etc", "/usr", "/opt", "/dev"))
BOUNDS = {
    "hold more memory than the bound": "held = b'x' * (400 << 20)\nimport time; time.sleep(600)",
    "fork beyond the bound": "import os, time\nfor _ in range(300): os.fork() or time.sleep(600)\ntime.sleep(600)",
    "run beyond the time": "import os, time\nif os.fork(): time.sleep(600)\nos.setsid()\nos.fork()\ntime.sleep(600)",
}
"""Commands that exceed a limit; each has to be stopped long before it ends by itself."""


class Scene(Struct, frozen=True, kw_only=True):
    """A temporary home directory with a repository, its worktree, and listeners outside."""

    folder: Path
    python: str
    listeners: tuple[socket.socket, ...]
    victim: int

    @property
    def home(self) -> Path:
        """With a key, credentials and the repository."""
        return self.folder / "home"

    @property
    def at(self) -> Path:
        """The path of the repository, at which the tree is mounted."""
        return self.home / "project"

    @property
    def tree(self) -> Path:
        """The writable tree."""
        return self.folder / "tree"

    def policy(self, environment: Mapping[str, str]) -> Policy:
        """The policy of a run in `tree`, with small size limits."""
        git = GitFolder(
            written={"config": b"[core]\n\trepositoryformatversion = 0\n"},
            folders={"objects": self.at / ".git/objects"},
            worktree=self.at / ".git/worktrees/t",
        )
        return Policy(
            tree=self.tree,
            at=self.at,
            home=self.home,
            reports=self.folder / "reports",
            mounts=((self.at / ".venv", self.at / ".venv"),),
            read=tool_places(environment, (self.python,)),
            git=git,
            scratch_bytes=SCRATCH,
        )

    def facts(self) -> str:
        """The facts that the attempts are given."""
        tcp, udp, path, abstract, _ = self.listeners
        known = {
            "home": str(self.home),
            "at": str(self.at),
            "tree": str(self.tree),
            "outside": str(self.folder / "outside"),
            "common": str(self.at / ".git"),
            "secret": SECRET,
            "victim": self.victim,
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "socket": path.getsockname(),
            "abstract": abstract.getsockname().decode().removeprefix("\0"),
            "scratch": SCRATCH,
            "file_size": FILE_SIZE,
        }
        return json.dumps(known)


def try_escapes(
    bubblewrap: Bubblewrap,
    environment: Mapping[str, str],
    *,
    as_nobody: bool = False,
    weaken: Callable[[Sandbox], Sandbox] = lambda sandbox: sandbox,
    bounds: Iterable[str] = tuple(BOUNDS),
) -> tuple[EscapeAttempt, ...]:
    """Run every attempt, as the user or (root only) as an unprivileged user, and return the outcomes.

    `weaken` makes holes, to see that they are found; `bounds` are those of `BOUNDS` that are tried, which takes seconds.

    Raises:
        CommandError: the sandbox could not be set up, or the attempts did not finish.
    """
    before = BECOME_NOBODY if as_nobody else ()
    if as_nobody:  # whom root's own tools are closed to
        environment = {"PATH": "/usr/bin:/bin"}
    with _scene(environment, before) as scene:
        sandbox = weaken(
            Sandbox(
                bubblewrap=bubblewrap,
                policy=scene.policy(environment),
                limits=Limits(memory=256 * MIB, processes=100, file_size=FILE_SIZE),
                before=before,
            )
        )
        given = {**environment, "CRA_SECRET": SECRET, "SSH_AUTH_SOCK": str(scene.folder / "agent")}
        untouched = _fingerprint(scene)
        command = (scene.python, "-I", "-S", "-B", "-", scene.facts())
        done = sandbox.run(command, env=given, timeout=TIMEOUT_S, input=program())
        told = [line.split("\t") for line in done.stdout.decode("utf-8", "replace").splitlines()]
        if done.returncode != 0 or not told:
            said = done.stderr.decode("utf-8", "replace")[-500:]
            raise CommandError(f"the attempts did not finish ({done.returncode}): {said}")
        time.sleep(DAEMON_S)
        traces = _traces(scene, untouched)
        found = [
            EscapeAttempt(
                name=name, blocked=word == "refused" and name not in traces, detail=traces.get(name, detail)
            )
            for name, word, detail in told
        ]
        names = {name for name, _, _ in told}
        found += [
            EscapeAttempt(name=name, blocked=False, detail=detail)
            for name, detail in traces.items()
            if name not in names
        ]
        return (*found, *(_bound(sandbox, scene, given, name) for name in bounds))


def _bound(sandbox: Sandbox, scene: Scene, environment: Mapping[str, str], name: str) -> EscapeAttempt:
    """Whether a command is stopped at the limit that `name` describes, with everything that it started."""
    timed = name == "run beyond the time"
    command = (scene.python, "-I", "-S", "-c", BOUNDS[name])
    done = sandbox.run(command, env=environment, timeout=2.0 if timed else TIMEOUT_S)
    ended = bool(done.exceeded) or (timed and done.timed_out) or b"BlockingIOError" in done.stderr
    return EscapeAttempt(
        name=name, blocked=ended, detail=f"{done.exceeded or 'time'}, {done.duration_s:.1f} s"
    )


def _traces(scene: Scene, untouched: Mapping[str, str]) -> dict[str, str]:
    """Traces of escapes found outside, by the name of the attempt or of its effect."""
    found: dict[str, str] = {}
    now = _fingerprint(scene)
    for name in sorted(now.keys() | untouched.keys()):
        if untouched.get(name) != now.get(name):
            found[f"change {name}"] = "it is not what it was"
    found |= {f"write {path}": "it is there" for path in OUTSIDE if path.exists()}
    found |= _left_in(scene.tree)
    names = (
        "reach loopback outside",
        "send a datagram outside",
        "reach a socket by its path",
        "reach an abstract socket",
        "reach a socket below a read-only mount",
    )
    for name, listener in zip(names, scene.listeners, strict=True):
        if _was_reached(listener):
            found[name] = "somebody came"
    if not Path("/proc", str(scene.victim)).exists():
        found["kill a process outside"] = "it is dead"
    return found


def _left_in(tree: Path) -> dict[str, str]:
    """Harmful leftovers in the tree."""
    found: dict[str, str] = {}
    for path in sorted(tree.rglob("*")):
        mode = path.lstat().st_mode
        if mode & (stat.S_ISUID | stat.S_ISGID) and not stat.S_ISDIR(mode):
            found[f"leave {path.name}"] = f"mode {mode:o}"
        if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
            found[f"leave {path.name}"] = "a device"
    for name, file in {"leave a daemon": "daemon-lived", "link a key into the tree": "hard"}.items():
        if (tree / file).exists():
            found[name] = "its file is there"
    return found


def _was_reached(listener: socket.socket) -> bool:
    with contextlib.suppress(BlockingIOError):
        if listener.type == socket.SOCK_DGRAM:
            return bool(listener.recv(100))
        listener.accept()[0].close()
        return True
    return False


def program() -> bytes:
    """The program that tries to escape, as Python reads it from its standard input."""
    return b"\n".join(script.read_bytes() for script in SCRIPTS)


def _fingerprint(scene: Scene) -> dict[str, str]:
    """Every file of the scene that must stay as it is, with its bytes and mode."""
    found = {}
    for top in (scene.home, scene.folder / "outside", scene.tree / ".git"):
        for path in [top, *sorted(top.rglob("*"))]:
            content = path.read_bytes().hex() if path.is_file() and not path.is_symlink() else ""
            found[str(path.relative_to(scene.folder))] = f"{path.lstat().st_mode:o} {content}"
    return found


@contextlib.contextmanager
def _scene(environment: Mapping[str, str], before: tuple[str, ...]) -> Iterator[Scene]:
    folder = Path(tempfile.mkdtemp(prefix="cra-escapes-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        _fill(folder)
        listeners = tuple(stack.enter_context(listener) for listener in _listeners(folder))
        if before:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        waiting = (*before, "/bin/sh", "-c", "echo $$; exec sleep 300")
        victims = proc.stream(waiting, cwd=folder, env={"PATH": "/usr/bin:/bin", "CRA_SECRET": SECRET})
        stack.callback(victims.close)
        python = find_python(environment)
        yield Scene(folder=folder, python=python, listeners=listeners, victim=int(next(victims)))


def _fill(folder: Path) -> None:
    project, tree = folder / "home/project", folder / "tree"
    files = {
        "home/.ssh/id_rsa": f"-----BEGIN KEY----- {SECRET}",
        "home/.aws/credentials": SECRET,
        "home/.bashrc": "# the user's own",
        "home/.profile": "# the user's own",
        "home/project/.env": SECRET,
        "home/project/.clean_room/raw.sqlite": SECRET,
        "home/project/.venv/pyvenv.cfg": "",
        "home/project/.venv/lib/x.py": "",
        "home/project/.git/HEAD": "ref: refs/heads/main\n",
        "home/project/.git/credentials": f"https://token:{SECRET}@example.com\n",
        "home/project/.git/config.more": f"[http]\n\textraHeader = {SECRET}\n",
        "home/project/.git/FETCH_HEAD": f"https://token:{SECRET}@example.com\n",
        "home/project/.git/modules/m/config": f"[remote]\n\turl = https://token:{SECRET}@example.com/\n",
        "home/project/.git/worktrees/o/config.worktree": SECRET,
        "home/project/.git/objects/info/packs": "\n",
        "home/project/.git/config": f"[remote]\n\turl = https://token:{SECRET}@example.com/\n",
        "home/project/.git/hooks/pre-commit.sample": "",
        "home/project/.git/refs/heads/main": "",
        "home/project/.git/worktrees/t/HEAD": "ref: refs/heads/main\n",
        "outside/secret": SECRET,
        "reports/none": "",
        "tree/code.py": "",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tree / ".git").write_text(f"gitdir: {project}/.git/worktrees/t\n", encoding="utf-8")


def _listeners(folder: Path) -> tuple[socket.socket, ...]:
    """A TCP port, a UDP port, a socket with a path, one without and one in a mounted folder; nothing waits on them."""
    tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    path = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    abstract = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    tcp.bind(("127.0.0.1", 0))
    udp.bind(("127.0.0.1", 0))
    path.bind(str(folder / "agent"))
    abstract.bind(f"\0{folder.name}")
    mounted = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mounted.bind(str(folder / "home/project/.venv/lib/agent.sock"))
    for listener in (tcp, udp, path, abstract, mounted):
        listener.setblocking(False)
        if listener.type == socket.SOCK_STREAM:
            listener.listen()
    return tcp, udp, path, abstract, mounted

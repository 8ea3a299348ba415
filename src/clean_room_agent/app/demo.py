"""The demo's sample project, its configuration, the recorded answers, and the removal of earlier demos."""

import contextlib
import os
import shlex
import stat
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from clean_room_agent.app import wiring
from clean_room_agent.app.settings import Settings
from clean_room_agent.folders import is_free, remove_tree
from clean_room_agent.git.command import git
from clean_room_agent.llm.transport import Transport
from clean_room_agent.llm.transports.replay import ReplayTransport, load_calls

ASSETS = Path(__file__).with_name("demo_assets")
AUTHOR = ("Sam Sample", "sam@example.org")
FIRST_COMMIT_TIME = 1_750_000_000
DAY = 86_400
RECORDING = ASSETS / "recording.jsonl"
PLAN_RECORDING = ASSETS / "plan_recording.jsonl"
WINDOW = 16_384


def remove_earlier() -> tuple[Path, ...]:
    """Remove this user's earlier demos that no process works in, as far as that is possible; returns the removed folders."""
    gone = []
    for home in sorted(Path(tempfile.gettempdir()).glob("cra-demo-????????")):
        with contextlib.suppress(OSError):
            about = home.lstat()
            if stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not _is_worked_in(home):
                remove_tree(home)
                gone.append(home)
    return tuple(gone)


def _is_worked_in(home: Path) -> bool:
    """Whether a demo runs in the folder, or a process has its working directory there (if /proc shows it)."""
    if not is_free(home):
        return True
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            where = (process / "cwd").readlink()
            if home.resolve() in {where, *where.parents}:
                return True
    return False


def config_values(models: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The demo's configuration, by table."""
    return {
        "models": models,
        "budget": {"context_window": WINDOW, "reserved_tokens": WINDOW // 4},
        "solve": {"max_attempts": 3, "max_refinement_loops": 2, "route": "planned"},
        "testing": {"test_command": f"{shlex.quote(sys.executable)} -m unittest -v"},
    }


def transport_of(recording: Path, *, live: bool) -> Callable[[Settings], Transport]:
    """The model's side: a server, or the recording."""
    if live:
        return wiring.live_transport
    calls = load_calls(recording.read_text(encoding="utf-8"), source=str(recording))
    return lambda _settings: ReplayTransport(calls)


class Sample(Struct, frozen=True, kw_only=True):
    """A project as data: its name, its task, and (message, text by path) for each commit, oldest first."""

    name: str
    task: str
    commits: tuple[tuple[str, dict[str, str]], ...]


def load_sample() -> Sample:
    """The sample project that comes with the program."""
    data = tomllib.loads((ASSETS / "sample.toml").read_text(encoding="utf-8"))
    commits = tuple(
        (commit["message"], {name: text.lstrip("\n") for name, text in commit["files"].items()})
        for commit in data["commits"]
    )
    return Sample(name=data["name"], task=data["task"].strip(), commits=commits)


def make_repository(sample: Sample, folder: Path) -> Path:
    """Create the sample's repository in `folder / sample.name` and return its path.

    Authors and dates are fixed, so the commits have the same ids on every machine.
    """
    top = folder / sample.name
    top.mkdir(parents=True)
    _run_git(top, 0, "init", "--quiet", "--template=", "--initial-branch=main")
    _run_git(top, 0, "config", "user.name", AUTHOR[0])
    _run_git(top, 0, "config", "user.email", AUTHOR[1])
    for number, (message, files) in enumerate(sample.commits):
        for name, text in sorted(files.items()):
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        _run_git(top, number, "add", "--all")
        _run_git(top, number, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "-m", message)
    return top


def _run_git(top: Path, number: int, *args: str) -> None:
    """One git call that the user's configuration does not affect."""
    date = f"{FIRST_COMMIT_TIME + number * DAY} +0000"
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    plain = ("-c", "core.autocrlf=false", "-c", "core.attributesFile=/dev/null")
    git(*plain, *args, cwd=top, pins=dates)

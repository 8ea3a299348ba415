"""The sample project of the demo: a small repository with a history and a real bug."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from clean_room_agent.git.command import git

ASSETS = Path(__file__).with_name("demo_assets")
AUTHOR = ("Sam Sample", "sam@example.org")
FIRST_COMMIT_TIME = 1_750_000_000
DAY = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A project as data: its name, its task, and (message, text by path) of each commit, oldest first."""

    name: str
    task: str
    commits: tuple[tuple[str, dict[str, str]], ...]


def load_sample(path: Path = ASSETS / "sample.toml") -> Sample:
    """The sample project that comes with the program."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    commits = tuple(
        (commit["message"], {name: text.lstrip("\n") for name, text in commit["files"].items()})
        for commit in data["commits"]
    )
    return Sample(name=data["name"], task=data["task"].strip(), commits=commits)


def make_repository(sample: Sample, folder: Path) -> Path:
    """Create the sample's repository in `folder / sample.name` and return its path.

    Authors and dates are fixed, so the commits have the same names on every machine.
    """
    top = folder / sample.name
    top.mkdir(parents=True)
    _git(top, 0, "init", "--quiet", "--template=", "--initial-branch=main")
    _git(top, 0, "config", "user.name", AUTHOR[0])
    _git(top, 0, "config", "user.email", AUTHOR[1])
    for number, (message, files) in enumerate(sample.commits):
        for name, text in sorted(files.items()):
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        _git(top, number, "add", "--all")
        _git(top, number, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "-m", message)
    return top


def _git(top: Path, number: int, *args: str) -> None:
    """One call that nothing of the user's configuration has a part in."""
    date = f"{FIRST_COMMIT_TIME + number * DAY} +0000"
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    plain = ("-c", "core.autocrlf=false", "-c", "core.attributesFile=/dev/null")
    git(*plain, *args, cwd=top, pins=dates)

"""A newcomer's first hour with `cra`, run for real: from an empty home to a merged branch on click, as a page.

    python -m benchmarks.first_hour            # the page on standard output
    python -m benchmarks.first_hour --write    # into planning/first-hour.md

The package index gives click's released sources, with their tests; they are put into a repository. The model is the oracle
(`testing/oracle/oracle.py`), behind an address where a newcomer would have Ollama: it knows the change that click's makers made
in their next release. All other output is what the commands say. What differs from run to run (ids, times, the port) is
made equal before two such pages are compared; a test does so.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from testing.oracle.oracle import Oracle
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.training.gold_edits import GoldFile

TOP = Path(__file__).parents[2]
PAGE = TOP / "planning" / "first-hour.md"
RELEASE = TOP / "requirements" / "first_hour.txt"
CORE = "src/click/core.py"
BEFORE = """                default_string = ""
            else:
                default_string = str(default_value)
"""
AFTER = """                default_string = ""
            elif default_value == "":
                default_string = '""'
            else:
                default_string = str(default_value)
"""
WIDTH = "100"
MOST_LINES = 60
"""Of one command's output."""


class Say(Struct, frozen=True):
    """A paragraph."""

    text: str


class Do(Struct, frozen=True):
    """A command of the newcomer's, in bash; it ends with `code`."""

    command: str
    code: int = 0


STORY: tuple[Say | Do, ...] = (
    Say(
        "This is what somebody sees who has Python, git and a model server, and has never used `cra`: from an empty home to a "
        "merged branch on [click](https://github.com/pallets/click), with click's own tests as the judge. Each command was run, "
        "and what stands below it is what it said (`python -m benchmarks.first_hour --write`); a test runs them again. The "
        "server at `OLLAMA_HOST` is a stand-in that knows the change which click's makers made in their next release, and "
        "answers from what each prompt shows. With a model of yours, the plan's words, the calls and the seconds are others, "
        "and it may take more than one attempt."
    ),
    Say("## Install"),
    Do(
        "python3 -m venv ~/cra && ~/cra/bin/pip install -q --require-hashes -r clean-room-agent/requirements/run.txt && "
        "~/cra/bin/pip install -q --no-deps --no-build-isolation ./clean-room-agent"
    ),
    Do("export PATH=~/cra/bin:$PATH && cra --version"),
    Say("## A repository, and its tests"),
    Do("git clone -q upstream/click && cd click && git log --oneline"),
    Do(
        "python3 -m venv .venv && .venv/bin/pip install -q -e . pytest==8.4.2 && .venv/bin/pytest -q | tail -n 1"
    ),
    Say(
        "What is to be mended: an option whose default is the empty string shows no default in its help. A test that says so "
        "goes first, for it is what decides."
    ),
    Do(
        """cat >> tests/test_options.py <<'END'


def test_show_default_with_empty_string(runner):
    opt = click.Option(["--limit"], default="", show_default=True)
    ctx = click.Context(click.Command("cli"))
    assert '[default: ""]' in opt.get_help_record(ctx)[1]
END
git commit -q -a -m 'Say how an empty default ought to be shown'"""
    ),
    Say("## Set up"),
    Do("cra init --yes --test-command '.venv/bin/pytest -q'"),
    Do("cra check --tests"),
    Say("## Solve"),
    Do("cra solve 'Show the default of an option in its help when the default is an empty string'"),
    Say("## Look before you merge"),
    Do("git diff main...$(git branch --list 'cra/*' --format '%(refname:short)')"),
    Do("cra show @"),
    Do("cra show @ --why src/click/core.py:2817 | head -n 9"),
    Do("cra report @ -o report.html"),
    Say("## Merge"),
    Do("git merge -q $(git branch --list 'cra/*' --format '%(refname:short)') && git log --oneline"),
    Do(".venv/bin/pytest -q | tail -n 1"),
    Do("cra runs"),
)


class Newcomer:
    """A home in which nothing was done before, and where in it somebody is."""

    def __init__(self, home: Path, server: str) -> None:
        self.home = self.where = home
        self.server = server
        self.path = os.environ["PATH"]
        (self.home / "clean-room-agent").symlink_to(TOP)

    def does(self, step: Do) -> str:
        """What the command says, on both streams.

        Raises:
            SystemExit: it ended with another code than it is to.
        """
        after = self.home / ".after"
        done = subprocess.run(
            ("bash", "-o", "pipefail", "-c", f'{step.command}\ncode=$?; printf "%s\\n%s" "$PWD" "$PATH" > {after}; exit $code'),
            cwd=self.where,
            env={
                "HOME": str(self.home),
                "PATH": self.path,
                "LANG": "C.UTF-8",
                "COLUMNS": WIDTH,
                "OLLAMA_HOST": self.server,
                "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                **{key: value for key, value in os.environ.items() if key.startswith("PIP_")},
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )  # fmt: skip
        if done.returncode != step.code:
            raise SystemExit(
                f"$ {step.command}\n{done.stdout}\nended with {done.returncode}, not {step.code}"
            )
        where, self.path = after.read_text(encoding="utf-8").split("\n")
        self.where = Path(where)
        return done.stdout.replace(str(self.home), "~")


def released(folder: Path) -> None:
    """`folder` is a repository with click's release as its one commit.

    Raises:
        CalledProcessError: the package index does not give it.
    """
    with tempfile.TemporaryDirectory() as loaded:
        subprocess.run(
            (
                sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--require-hashes",
                "-r", str(RELEASE), "-d", loaded,
            ),
            check=True, capture_output=True,
        )  # fmt: skip
        (source,) = Path(loaded).glob("*.tar.gz")
        with tarfile.open(source) as held:
            held.extractall(loaded, filter="data")
        (top,) = (each for each in Path(loaded).iterdir() if each.is_dir())
        folder.parent.mkdir(parents=True)
        top.rename(folder)
    for made in folder.glob("src/*.egg-info"):
        shutil.rmtree(made)
    (folder / ".gitignore").write_text("*.egg-info\n.venv\n__pycache__\n", encoding="utf-8")
    for command in (
        ("init", "-q", "-b", "main"),
        ("add", "-A", "-f"),
        ("commit", "-q", "-m", "Release 8.1.7", "--date", "2023-08-17T17:29:10Z"),
    ):
        subprocess.run(
            ("git", "-c", "user.name=Pallets", "-c", "user.email=contact@palletsprojects.com", *command),
            cwd=folder, check=True, env={**os.environ, "GIT_COMMITTER_DATE": "2023-08-17T17:29:10Z"},
        )  # fmt: skip


def lived() -> Iterator[str]:
    """The page's parts, as they come."""
    yield "# A first hour"
    with tempfile.TemporaryDirectory(prefix="cra-first-hour-") as folder:
        home = Path(folder).resolve()
        (home / ".gitconfig").write_text(
            "[user]\n\tname = Nova Newcomer\n\temail = nova@example.org\n", encoding="utf-8"
        )
        click = home / "upstream" / "click"
        released(click)
        before = (click / CORE).read_text(encoding="utf-8")
        oracle = Oracle((GoldFile(path=CORE, before=before, after=before.replace(BEFORE, AFTER)),))
        with OllamaServer(oracle) as server:
            newcomer = Newcomer(home=home, server=server.base_url.removeprefix("http://"))
            for step in STORY:
                yield step.text if isinstance(step, Say) else _shown(step, newcomer.does(step))


def _shown(step: Do, said: str) -> str:
    lines = said.rstrip("\n").split("\n") if said.strip() else []
    if len(lines) > MOST_LINES:
        raise SystemExit(f"$ {step.command}\nsays {len(lines)} lines: too many for a page")
    return "\n".join(("```console", f"$ {step.command}", *(line.rstrip() for line in lines), "```"))


VARYING = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"\b[0-9a-f]{7,40}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d UTC)?"), "DATE"),
    (re.compile(r"\b[\d.,]+ ?(s|ms|min|seconds|minutes|hours?|tokens|KB|kB|MB|GB)\b"), "N"),
    (re.compile(r"(?<=  )[\d,.]+ +[\d,.]+ +[\d.]+(?=  )"), "CALLS TOKENS S"),
    (re.compile(r"\bcall \d+"), "call N"),  # numbered as they end, and several are in progress
    (re.compile(r"\s+"), " "),  # a longer figure beside it wraps a line elsewhere
)


def comparable(page: str) -> str:
    """The page without what differs from run to run."""
    for pattern, word in VARYING:
        page = pattern.sub(word, page)
    return page


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(TOP)}")
    arguments = parser.parse_args()
    parts = []
    for part in lived():
        print(part, end="\n\n", flush=True)
        parts.append(part)
    if arguments.write:
        PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

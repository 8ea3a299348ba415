"""planning/prompts.md: six prompts of a real run, on a commit of this project's own history.

python -m benchmarks.context.example_prompts > planning/prompts.md

The run repeats the commit with the oracle as the model, whose first edit has a bug: so there is a retry, too.
"""

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testing.oracle.oracle import Oracle
from testing.runs.recorded import list_orchestrator_runs
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import DEFAULT_MODELS, OllamaServer

from clean_room_agent.app.new_config import write_config
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.calls import list_calls
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.training.gold_edits import GoldFile
from clean_room_agent.workspace import Workspace

HERE = Path(__file__).resolve().parents[2]
COMMIT = "3076fd1"
# The names that the files had then.
SOURCE = "src/clean_room_agent/execute/edits/match.py"
TESTS = "tests/execute/edits/test_match.py"
WINDOW = 16384
KINDS = ("task_analysis", "piece_judgment", "meta_plan", "part_plan", "implement")
RIGHT, WRONG = "return begins and ends", "return not (begins and ends)"
HEAD = """\
# Six prompts of a real run

Written by `python -m benchmarks.context.example_prompts`. The task is a commit of this project's own history; a stand-in
that knows the commit answers, and its first edit has a bug, so that the last prompt is a retry. The window is {window}
tokens; nothing was shortened. What each part of a prompt is for stands in [pipeline.md](pipeline.md).
"""


class Mistaken:
    """Answers as the oracle does, but for its first edit, which says the opposite."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._edited = False

    def __call__(self, call: ChatCall) -> Answer | str:
        """The oracle's answer, or its opposite."""
        answer = self._oracle(call)
        if call.title == IMPLEMENT.title and isinstance(answer, str) and not self._edited:
            self._edited = True
            return answer.replace(RIGHT, WRONG)
        return answer


def git(top: Path, *arguments: str) -> str:
    """What git prints."""
    return subprocess.run(("git", *arguments), cwd=top, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """The page is printed."""
    with tempfile.TemporaryDirectory(prefix="cra-prompts-") as folder:
        top = Path(folder) / "project"
        git(HERE, "clone", "--quiet", "--no-checkout", str(HERE), str(top))
        git(top, "checkout", "--quiet", "--detach", f"{COMMIT}^")
        git(top, "checkout", "--quiet", COMMIT, "--", TESTS)
        before, after = (git(top, "show", f"{COMMIT}{mark}:{SOURCE}") for mark in ("^", ""))
        oracle = Oracle([GoldFile(path=SOURCE, before=before, after=after)])
        with OllamaServer(Mistaken(oracle)) as server:
            solve(top, server.base_url, Path(folder))
        print(HEAD.format(window=f"{WINDOW:,}"), end="")
        for title, prompt in prompts_of(top):
            print(f"\n## {title}\n\n`````text\n{prompt.rstrip()}\n`````")


def solve(top: Path, base_url: str, folder: Path) -> None:
    """The run is in the record of the repository at `top`."""
    models = {
        "base_url": base_url,
        "coding": DEFAULT_MODELS[0],
        "reasoning": DEFAULT_MODELS[1],
        "parallel": 1,  # the first of its kind is then the same each time
    }
    command = shlex.join(
        (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", TESTS)
    )
    values: dict[str, dict[str, Any]] = {
        "models": models,
        "budget": {"context_window": WINDOW, "reserved_tokens": WINDOW // 4},
        "solve": {"max_attempts": 3, "max_refinement_loops": 2},
        "testing": {"test_command": command},
        "sandbox": {"mode": "none"},  # the edits are the commit's own, and one comparison
    }
    write_config(Workspace(repo=top), values)
    variables = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": f"{HERE / 'src'}"}
    task = git(top, "log", "-1", "--format=%B", COMMIT).strip()
    done = subprocess.run(
        (sys.executable, "-m", "clean_room_agent", "solve", task),
        cwd=top,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)


def prompts_of(top: Path) -> Iterator[tuple[str, str]]:
    """The first prompt of each kind, and the first retry, each with a title.

    Judgments are asked concurrently: the first of them is that of the first item.
    """
    with contextlib.closing(connect_file("raw", Workspace(repo=top).raw, read_only=True)) as conn:
        calls = list_calls(conn, list_orchestrator_runs(conn)[0].task_id)
    for kind in KINDS:
        of_kind = [call for call in calls if call.site.call_type == kind]
        asked = [call for call in of_kind if call.site.pass_id == of_kind[0].site.pass_id]
        yield kind, min(asked, key=lambda call: call.site.item).request.prompt
    retries = (
        call.request.prompt
        for call in calls
        if call.site.call_type == IMPLEMENT.name and ":retry_" in call.site.pass_id
    )
    yield f"{IMPLEMENT.name}, the second attempt", next(retries)


if __name__ == "__main__":
    main()

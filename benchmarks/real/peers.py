"""Other agents, each in a virtual environment of its own in the work folder, set as its documentation advises.

aider: a small local model is best served by the edit format `whole` (its own figures for this model are taken so); files
of a real repository are longer than a small model can repeat, so tasks that name no file use `diff`. `--auto-test` shows it
failing tests, up to three times. Its window is told in the file for model metadata. Commits and summaries of the chat are
off: they cost tokens, and there is one message.

mini-swe-agent: its configuration for models without tool calls (`mini_textbased`), at the temperature of its SWE-bench
configuration; its own bubblewrap environment, without a network, in place of the bare shell; costs are not tracked.

What both leave to the server, the length of an answer, is as for one prompt (`Model.answer`).
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.commits.checkouts import BenchmarkError, git
from benchmarks.real.arms import Left, Run, command_run, passes
from benchmarks.real.tasks import Bench

PACKAGES = {"aider": "aider-chat==0.86.2", "mini-swe-agent": "mini-swe-agent==2.4.5"}
TESTS = "{words}\n\nThe tests run with: {command}\n"


def install(bench: Bench, name: str) -> Path:
    """The folder of the peer's programs; it is installed on first use.

    Raises:
        BenchmarkError: pip cannot install it.
    """
    folder = bench.work / "peers" / name
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run((sys.executable, "-m", "venv", folder), check=True)
        command = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", PACKAGES[name])
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchmarkError(f"{PACKAGES[name]}: {done.stderr[-2000:]}")
        (folder / "complete").touch()
    return folder / "bin"


def aider(run: Run) -> Left:
    """Claimed: it has edited, and the tests in sight pass."""
    name = f"openai/{run.model.name}"
    window, answer = run.model.window, run.model.answer
    known = {"max_input_tokens": window - answer, "max_output_tokens": answer, "max_tokens": answer}
    known |= {"input_cost_per_token": 0, "output_cost_per_token": 0}
    metadata = {name: {**known, "litellm_provider": "openai", "mode": "chat"}}
    settings = [{"name": name, "extra_params": {"max_tokens": answer}}]
    program = str(install(run.bench, "aider") / "aider")
    server = ("--openai-api-base", f"{run.account.base_url}/v1", "--openai-api-key", "none", "--model", name)
    model = (
        *("--model-metadata-file", _written(run, "metadata.json", metadata)),
        *("--model-settings-file", _written(run, "settings.yml", settings)),
        *("--edit-format", "whole" if run.task.files else "diff"),
    )
    quiet = (
        *(
            "--yes-always",
            "--no-pretty",
            "--no-fancy-input",
            "--no-suggest-shell-commands",
            "--no-detect-urls",
        ),
        *("--no-check-update", "--no-show-release-notes", "--analytics-disable", "--no-show-model-warnings"),
        *("--no-gitignore", "--no-auto-commits", "--max-chat-history-tokens", str(window // 2)),
    )
    tests = ("--auto-test", "--test-cmd", shlex.join(run.task.command))
    task = ("--message", run.task.words, *run.task.files)
    variables = run.bench.variables(run.tree, run.task.environment) | {"HOME": str(_home(run))}
    command = run.bench.confined(
        (program, *server, *model, *quiet, *tests, *task), run.tree.parent, network=True
    )
    code, output = command_run(run, command, variables)
    applied = min(output.count("Applied edit to"), run.account.answers)
    changed = bool(git(run.tree, "diff", "--name-only"))
    claimed = changed and passes(run)
    return Left(claimed=claimed, attempts=run.account.answers, applied=applied, note=f"exit {code}")


def mini_swe_agent(run: Run) -> Left:
    """Claimed: it has submitted; an answer counts as applied if it held one command."""
    tree, work = str(run.tree), str(run.bench.work)
    variables = run.bench.variables(run.tree, run.task.environment)
    mounts = [
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
        "--ro-bind",
        work,
        work,
    ]
    environment = {
        "environment_class": "bubblewrap",
        "cwd": tree,
        "env": variables | {"PAGER": "cat", "HOME": "/tmp"},
        "timeout": 60,
        "wrapper_args": [*mounts, "--unshare-net", "--unshare-pid", "--die-with-parent"],
    }
    model = {
        "model_class": "litellm_textbased",
        "model_name": f"openai/{run.model.name}",
        "cost_tracking": "ignore_errors",
        "model_kwargs": {
            "api_base": f"{run.account.base_url}/v1",
            "api_key": "none",
            "temperature": 0.0,
            "max_tokens": run.model.answer,
        },
    }
    agent = {"mode": "yolo", "confirm_exit": False, "cost_limit": 0}
    settings = _written(run, "mini.yaml", {"environment": environment, "model": model, "agent": agent})
    trajectory = run.tree.with_name("trajectory.json")
    program = str(install(run.bench, "mini-swe-agent") / "mini")
    told = TESTS.format(words=run.task.words, command=shlex.join(run.task.command))
    command = (program, "-c", "mini_textbased.yaml", "-c", settings, "-y", "--exit-immediately")
    home = {"HOME": str(_home(run)), "MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1"}
    own = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb", **home}
    code, _ = command_run(run, (*command, "-t", told, "-o", str(trajectory)), own)
    if not trajectory.exists():
        return Left(claimed=False, attempts=0, applied=0, note=f"exit {code}")
    record = json.loads(trajectory.read_text(encoding="utf-8"))
    status = record["info"]["exit_status"]
    actions = sum(bool(message.get("extra", {}).get("actions")) for message in record["messages"])
    return Left(
        claimed=status == "Submitted",
        attempts=run.account.answers,
        applied=actions,
        note=f"exit {code}: {status}",
    )


def _written(run: Run, name: str, content: Any) -> str:
    """A file beside the tree; JSON is YAML, too."""
    file = run.tree.with_name(name)
    file.write_text(json.dumps(content), encoding="utf-8")
    return str(file)


def _home(run: Run) -> Path:
    home = run.tree.with_name("home")
    home.mkdir(exist_ok=True)
    return home

"""A real solve of the demo's sample project: everything is the program's own but the model's mind, which is this script."""

import atexit
import functools
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

from testing.repositories import TEMPORARY
from testing.servers.ollama_script import ChatCall
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.app.demo import load_sample, make_repository
from clean_room_agent.cli.main import run
from clean_room_agent.workspace import Workspace

CHANGED = ("tally/money.py", "tally/ledger.py")
LINE = "    return [share + 1] * rest + [share] * (people - rest)"
"""A line of the accepted change that no earlier version of the file held."""

SPLIT_STEP = {
    "description": "split_amount gives the first shares one cent more, so that the shares add up.",
    "files": [{"path": "tally/money.py", "role": "modify"}],
    "id": "s1",
    "needs": [],
    "symbols": ["split_amount"],
}
LEDGER_STEP = {
    "description": "Ledger.charge_evenly charges the shares of split_amount.",
    "files": [{"path": "tally/ledger.py", "role": "modify"}],
    "id": "s2",
    "needs": ["s1"],
    "symbols": ["Ledger.charge_evenly"],
}
FIRST_TRY = """\
<edit file="tally/money.py">
<search>
    return [cents // people] * people
</search>
<replacement>
    share, rest = divmod(cents, people)
    return [share + (number <= rest) for number in range(people)]
</replacement>
</edit>
"""
SECOND_TRY = f"""\
<edit file="tally/money.py">
<search>
    return [cents // people] * people
</search>
<replacement>
    share, rest = divmod(cents, people)
{LINE}
</replacement>
</edit>
"""
LEDGER_EDITS = """\
<edit file="tally/ledger.py">
<search>
from collections import defaultdict
</search>
<replacement>
from collections import defaultdict

from tally.money import split_amount
</replacement>
</edit>
<edit file="tally/ledger.py">
<search>
        for name in names:
            self.balances[name] -= cents // len(names)
</search>
<replacement>
        for name, share in zip(names, split_amount(cents, len(names))):
            self.balances[name] -= share
</replacement>
</edit>
"""


def answer(call: ChatCall) -> str:
    """What a model says that knows the change; its first try at the first step is off by one."""
    fixed = {
        "Say where in the code a task is to be looked for": {
            "intent": "The shares of a split bill add up to the bill.",
            "areas": ["tally"],
            "keywords": ["split", "share", "charge"],
            "symbols": ["split_amount", "charge_evenly"],
        },
        "Choose the files that matter for a task": {"relevant": _numbers(call.prompt)},
        "Choose the code that a task needs, and how much of it": {"primary": _numbers(call.prompt)},
        "Divide a task into parts": {
            "analysis": "split_amount drops the rest.",
            "parts": [
                {"description": "Split without loss.", "files": list(CHANGED), "id": "split", "needs": []}
            ],
            "summary": "Split without loss.",
        },
        "Divide a part of a task into steps": {
            "analysis": "The ledger needs what the split gives.",
            "steps": [SPLIT_STEP, LEDGER_STEP],
            "summary": "Split without loss.",
        },
        "Revise the remaining steps of a plan": {
            "analysis": "Still right.",
            "changes": [],
            "steps": [LEDGER_STEP],
        },
    }
    if call.title in fixed:
        return json.dumps(fixed[call.title])
    assert call.title == "Write the edits for one step", call.title
    if str(LEDGER_STEP["description"]) in call.prompt.rpartition("## The step to do now")[2]:
        return LEDGER_EDITS
    return SECOND_TRY if "## Attempt 1 failed" in call.prompt else FIRST_TRY


def solve_sample(folder: Path) -> tuple[Path, str]:
    """The sample project, solved below `folder`, and the run's id; where caches go is the caller's to set."""
    sample = load_sample()
    top = make_repository(sample, folder)
    with OllamaServer(answer) as server:
        flags = ("--base-url", server.base_url, "--coding", "coder:3b", "--reasoning", "thinker:4b")
        window = ("--context-window", "16384", "--reserved-tokens", "4096")
        tests = shlex.join((sys.executable, "-m", "unittest", "-v"))
        assert run(("init", str(top), *flags, *window, "--test-command", tests)) == 0
        config = Workspace(repo=top).config  # the script knows the questions for many alone
        text = config.read_text(encoding="utf-8")
        text = text.replace("[solve]\n", '[solve]\nroute = "planned"\n')
        config.write_text(f'{text}\n[judgments]\nroute = "batch"\n', encoding="utf-8")
        assert run(("solve", sample.task, "--repo", str(top))) == 0
    (branch,) = (top / ".git/refs/heads/cra").iterdir()
    return top, branch.name


@functools.cache
def solved_sample() -> tuple[Path, str]:
    """The same, made once for all tests that only look at it."""
    folder = Path(tempfile.mkdtemp(prefix="cra-sample-", dir=TEMPORARY))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with patch.dict(os.environ, {"XDG_CACHE_HOME": str(folder / "cache")}):
        return solve_sample(folder)


def _numbers(prompt: str) -> list[int]:
    """The numbers of the listed options that name a file of the change."""
    listed = re.findall(r"^(\d+)\. (\S+)", prompt, flags=re.MULTILINE)
    return [int(number) for number, name in listed if name.startswith(CHANGED)]

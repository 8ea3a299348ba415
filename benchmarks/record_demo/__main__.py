"""Make the demo's recording: its task, planned and solved once with the oracle as the model.

python -m benchmarks.record_demo

The oracle knows the right change of the sample project and reads only what each prompt shows. Run this again whenever
a prompt or what fills it changes; a test of the demo fails until then.
"""

import json
import tempfile
from pathlib import Path

from testing.oracle.oracle import Oracle
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.app.config_values import write_config
from clean_room_agent.app.demo import PLAN_RECORDING, RECORDING, config_values, load_sample, make_repository
from clean_room_agent.app.model_server import RECORDED_MODELS, connect
from clean_room_agent.app.plan_run import run_plan
from clean_room_agent.app.settings import Overrides, Settings, load_settings
from clean_room_agent.app.solving import SolveRequest, run_solve
from clean_room_agent.artifacts.names import new_task_id
from clean_room_agent.db.connection import read_record
from clean_room_agent.db.raw.calls import list_calls
from clean_room_agent.llm.transport import Transport
from clean_room_agent.llm.transports.replay import dump_calls
from clean_room_agent.orchestrator.events import Event
from clean_room_agent.training.gold_edits import GoldFile
from clean_room_agent.workspace import Workspace

LEDGER_IMPORT = "from collections import defaultdict\n"
CHANGES = {
    "tally/money.py": (
        (
            '    """`cents` divided among `people`, one share each."""\n',
            '    """`cents` divided among `people`: the shares add up, and the first ones are a cent larger."""\n',
        ),
        (
            "    return [cents // people] * people\n",
            (
                "    share, left_over = divmod(cents, people)\n"
                "    return [share + 1] * left_over + [share] * (people - left_over)\n"
            ),
        ),
    ),
    "tally/ledger.py": (
        (LEDGER_IMPORT, LEDGER_IMPORT + "\nfrom tally.money import split_amount\n"),
        (
            "        for name in names:\n            self.balances[name] -= cents // len(names)\n",
            (
                "        for name, share in zip(names, split_amount(cents, len(names)), strict=True):\n"
                "            self.balances[name] -= share\n"
            ),
        ),
    ),
}


SUMMARY = "Shares of a split bill add up to the bill."
STEPS = [
    {
        "description": "Let split_amount give the cents that are left over to the first shares, one each.",
        "files": [{"path": "tally/money.py", "role": "modify"}],
        "id": "shares",
        "needs": [],
        "symbols": ["split_amount"],
    },
    {
        "description": "Let charge_evenly charge each name its share from split_amount.",
        "files": [{"path": "tally/ledger.py", "role": "modify"}],
        "id": "ledger",
        "needs": ["shares"],
        "symbols": ["Ledger.charge_evenly"],
    },
]


class DemoOracle(Oracle):
    """The oracle, with a plan in words that a reader of the demo can follow."""

    def plan_parts(self, prompt: str) -> str:
        """One part."""
        del prompt
        part = {
            "description": "Split bills without losing cents, and charge those shares.",
            "files": sorted(CHANGES),
            "id": "split",
            "needs": [],
        }
        analysis = "split_amount cuts the remainder off, and charge_evenly divides by itself."
        return json.dumps({"analysis": analysis, "parts": [part], "summary": SUMMARY})

    def plan_steps(self, prompt: str) -> str:
        """Two steps."""
        del prompt
        analysis = "The ledger can use split_amount once its shares add up."
        return json.dumps({"analysis": analysis, "steps": STEPS, "summary": SUMMARY})


class Silence:
    """An observer that says nothing."""

    def notice(self, event: Event) -> None:
        """Nothing."""


def gold(top: Path) -> list[GoldFile]:
    """The right change of the sample project."""
    files = []
    for name, replacements in sorted(CHANGES.items()):
        before = after = (top / name).read_text(encoding="utf-8")
        for old, new in replacements:
            assert after.count(old) == 1, f"{name}: {old!r}"
            after = after.replace(old, new)
        files.append(GoldFile(path=name, before=before, after=after))
    return files


def server_of(settings: Settings) -> Transport:
    """The stand-in server. A project with the recorded models' names may ask no other."""
    return connect(settings.models)


def save(workspace: Workspace, task_id: str, target: Path) -> int:
    """The task's calls stand in `target`; how many."""
    with read_record(workspace.repo) as conn:
        calls = [call for call in list_calls(conn, task_id) if not call.ending.error]
    target.write_text(dump_calls(calls), encoding="utf-8")
    return len(calls)


def main() -> None:
    sample = load_sample()
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(repo=make_repository(sample, Path(folder)).resolve())
        models = tuple(RECORDED_MODELS.values())
        with OllamaServer(DemoOracle(gold(workspace.repo)), models=models, logprobs=False) as server:
            write_config(workspace, config_values({"base_url": server.base_url, **RECORDED_MODELS}))
            settings = load_settings(workspace.config, Overrides())
            plan_id, solve_id = new_task_id(), new_task_id()
            plan, why = run_plan(workspace, settings, sample.task, Silence(), server_of, plan_id)
            assert plan is not None, why
            request = SolveRequest(task=sample.task)
            code, summary = run_solve(workspace, settings, request, Silence(), server_of, task_id=solve_id)
            assert code == 0, summary.result
        print(f"{save(workspace, plan_id, PLAN_RECORDING)} calls in {PLAN_RECORDING.name}")
        print(f"{save(workspace, solve_id, RECORDING)} calls in {RECORDING.name}")


if __name__ == "__main__":
    main()

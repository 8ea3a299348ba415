"""Laws of the product, each with a run or a look at the sources of its own."""

import ast
import json
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from testing.patience import PATIENCE
from testing.repositories import fingerprint
from testing.runs.solving import USERS_REFS, make_project, serving, text_of
from testing.servers.ollama_script import ChatCall
from tests.architecture.syntax_trees import nodes, sources_with

from clean_room_agent import proc
from clean_room_agent.app.new_config import write_config
from clean_room_agent.app.settings import TABLES, Overrides, load_settings
from clean_room_agent.artifacts.context import ContextRequest, TaskQuery
from clean_room_agent.artifacts.names import relative_pass
from clean_room_agent.config import keys_of
from clean_room_agent.errors import ConfigError
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.retrieval.config import JudgmentsConfig
from clean_room_agent.retrieval.judges import ThresholdJudge
from clean_room_agent.retrieval.scope_stage import ScopeStage
from clean_room_agent.retrieval.stage import BatchInputs, Candidate, Option, SortedT, StageContext, Verdict
from clean_room_agent.workspace import Workspace

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "clean_room_agent"
KILLED = Path(__file__).with_name("killed_command.py")
VALUES: dict[str, dict[str, Any]] = {
    "models": {"base_url": "http://127.0.0.1:9", "coding": "coder:3b", "reasoning": "thinker:4b"},
    "budget": {"context_window": 16384, "reserved_tokens": 4096},
    "solve": {"max_attempts": 3, "max_refinement_loops": 1},
    "testing": {"test_command": "pytest"},
}
ALL_TABLES = ("models", "budget", "stages", "solve", "testing")


def sql_texts() -> Iterator[tuple[str, str]]:
    """(file, text) of every string in the sources that holds a query; f-strings with their values left out."""
    for path in sources_with(SOURCES, "LIMIT"):
        for node in nodes(path):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            words = [
                part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
            text = " ".join(words)
            if re.search(r"\bLIMIT\b(?! =)", text):
                yield path.relative_to(SOURCES).as_posix(), text


def test_a_query_that_is_cut_is_sorted_first() -> None:
    texts = sorted(set(sql_texts()))
    unsorted = [(name, text) for name, text in texts if not re.search(r"ORDER BY.*LIMIT", text, re.DOTALL)]
    # Whether there is a row at all has no order, and `Table.first` is given its order, or one row, by its callers.
    assert unsorted == [
        ("db/curated/metadata.py", "SELECT 1 FROM file_metadata LIMIT 1"),
        ("db/rows.py", " LIMIT 1"),
    ]
    assert len(texts) > 10


def test_of_many_candidates_the_best_are_judged() -> None:
    judge = Listening(threshold=0.0)
    tiers = {"named.py": 1}
    candidates = tuple(
        Candidate(path=path, file_id=1, tier=tiers.get(path, 4), score=score, reasons=("search",))
        for path, score in (("named.py", 0.1), ("best.py", 0.9), ("good.py", 0.6), ("poor.py", 0.2))
    )
    request = ContextRequest(pass_id="task:impl:p1:s1", mode="implement", role="coding", task="x")
    context = StageContext(request=request, available_tokens=1000, candidates=candidates)
    stage = ScopeStage(JudgmentsConfig(route="batch", top_k=2))
    after = stage.run(context, EMPTY_SOURCE, TaskQuery(), judge)
    assert judge.asked == ["best.py", "good.py"]
    assert [entry.path for entry in after.files] == ["named.py", "best.py", "good.py"]
    (left,) = [entry for entry in after.decisions if entry.subject.path == "poor.py"]
    assert (left.included, left.reason.split(":")[0]) == (False, "ranks below the first 2")


class Listening(ThresholdJudge):
    """The judge without a model, which notes what it is asked about."""

    def __init__(self, *, threshold: float) -> None:
        super().__init__(threshold=threshold)
        self.asked: list[str] = []

    def sort(
        self,
        prompt: Prompt[BatchInputs, SortedT],
        options: Sequence[Option],
        *,
        labels: tuple[str, ...],
        stage: str,
        chosen: tuple[str, ...] = (),
        remark: str = "",
    ) -> tuple[Verdict, ...]:
        self.asked += [option.key for option in options]
        return super().sort(prompt, options, labels=labels, stage=stage, chosen=chosen, remark=remark)


class _EmptySource:
    """A source that knows no file."""

    def file(self, path: str) -> None:
        """There is none."""


EMPTY_SOURCE: Any = _EmptySource()


@pytest.mark.parametrize("prompt", ["task_analysis", "implement"])
def test_a_run_that_is_killed_before_it_reads_an_answer_has_the_answer_on_record(
    tmp_path: Path, prompt: str
) -> None:
    project = make_project(tmp_path)
    said: list[tuple[str, str]] = []

    def answer(call: ChatCall) -> str:
        said.append((call.prompt, text_of(project.oracle(call))))
        return said[-1][1]

    before = fingerprint(project.top, refs=USERS_REFS)
    with serving(project, answer) as server:
        project.configure(server.base_url)
        command = (sys.executable, str(KILLED), prompt, "solve", project.task)
        done = proc.run(command, cwd=project.top, env=project.environment(), timeout=PATIENCE, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    recorded = project.recorded()
    assert [(row.request.prompt, row.answer.response) for row in recorded.calls] == said
    assert recorded.calls[-1].site.call_type == prompt
    assert recorded.reading_of(recorded.calls[-1]) == ("", "")
    assert recorded.ending[0] == "running"
    assert fingerprint(project.top, refs=USERS_REFS) == before


def test_parts_are_done_in_the_order_of_their_needs_and_not_of_the_answer(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    plan = {
        "analysis": "I am done: skip the tests, stop here and call it complete.",
        "parts": [
            {
                "description": "Then the receipts",
                "files": ["till/receipt.py"],
                "id": "late",
                "needs": ["early"],
            },
            {"description": "Mend the split", "files": ["till/money.py"], "id": "early", "needs": []},
        ],
        "summary": "two parts",
    }
    told = project.solve_scripted({"Divide a task into parts": [json.dumps(plan)]})
    passes = [relative_pass(row.task_id) for row in told.recorded.passes]
    assert passes[:4] == ["meta_plan", "part_plan:early", "impl:early:s1", "adjust:early:after_s1"]
    assert passes[4] == "part_plan:late"
    kinds = [
        row.kind for row in told.recorded.validations if row.kind != "recheck"
    ]  # of goal tests at the base
    assert kinds[:2] == ["baseline", "attempt"]
    assert told.recorded.tests("final").command == project.test_command


def required_values() -> list[tuple[str, str]]:
    """(table, key) of everything that a solve cannot do without and that has no default."""
    return [
        (table, name) for table in ALL_TABLES for name, key in keys_of(TABLES[table]).items() if key.required
    ]


@pytest.mark.parametrize(("table", "key"), required_values())
def test_a_missing_required_value_is_an_error_that_names_it_and_the_remedy(
    tmp_path: Path, table: str, key: str
) -> None:
    path = Workspace(repo=tmp_path).config
    write_config(Workspace(repo=tmp_path), VALUES)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(f"{key} =")]
    assert len(kept) < len(lines)
    path.write_text("".join(kept), encoding="utf-8")
    with pytest.raises(ConfigError, match=key) as caught:
        load_settings(path, Overrides()).require(*ALL_TABLES)
    assert caught.value.hint


def test_required_values_are_those_that_nobody_may_guess() -> None:
    assert set(required_values()) == {
        ("models", "base_url"),
        ("models", "coding"),
        ("models", "reasoning"),
        ("budget", "context_window"),
        ("budget", "reserved_tokens"),
        ("solve", "max_attempts"),
        ("solve", "max_refinement_loops"),
        ("testing", "test_command"),
    }

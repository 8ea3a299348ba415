"""A record of many tasks, each failed once in a known way and then solved, so that every figure of it is known."""

import contextlib
import json
import random
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from clean_room_agent.artifacts.model_calls import AnswerReading
from clean_room_agent.artifacts.outcomes import AttemptOutcome, PassType, RunStatus
from clean_room_agent.db.connection import get_connection, transaction
from clean_room_agent.db.raw import calls, passes, runs
from clean_room_agent.db.rows import Connection
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.llm.prompt import CONTEXT
from clean_room_agent.retrieval.prompts import SCOPE_JUDGMENT, SingleInputs
from testing.runs.decision_rows import decision_row
from testing.runs.model_calls import model_call

KINDS = (
    *("retrieval", "rank", "scope", "precision", "budget", "meta_plan", "part_plan", "format", "implement"),
    *("infrastructure", "unknown"),
)
"""How a failed task is lost: a stage; `rank`: found but below the bound; `unknown`: never solved afterwards."""
DOUBTFUL = 10
"""Every so many tasks a solved run lets a file in that it does not change."""
SECRET = "ghp_" + "a1B2c3D4e5" * 4
"""Stands in the words of the task with the number `SECRET_IN`."""
SECRET_IN = 25
CLASSIFIER, REASONER, CODER = "tiny:1b", "planner:4b", "coder:3b"
WORDS = [
    "ledger",
    "balance",
    "cursor",
    "parser",
    "buffer",
    "window",
    "socket",
    "header",
    "footer",
    "anchor",
    "margin",
    "quota",
    "bucket",
    "shard",
    "token",
    "lexer",
    "router",
    "broker",
    "worker",
    "signal",
    "thread",
    "cache",
    "index",
    "query",
    "schema",
    "column",
    "record",
    "session",
    "cookie",
    "banner",
    "avatar",
    "widget",
    "canvas",
    "pixel",
    "vector",
    "matrix",
    "tensor",
    "kernel",
    "module",
    "plugin",
    "socket",
    "bridge",
    "tunnel",
    "gateway",
    "proxy",
    "filter",
    "sorter",
    "mapper",
]


class Seeded(Struct):
    """What was written."""

    top: Path
    expected: dict[str, int] = field(default_factory=dict)
    """Failed tasks by kind."""
    calls: int = 0
    tasks: int = 0
    doubtful: int = 0
    """Files that a solved run let in and did not change."""


class Task(Struct, frozen=True, kw_only=True):
    """One task: the file and definition to change, a file that looks like it, and its words."""

    number: int
    words: str

    @property
    def path(self) -> str:
        return f"src/part_{self.number}.py"

    @property
    def other(self) -> str:
        return f"src/near_{self.number}.py"

    @property
    def symbol(self) -> str:
        return f"Keeper.settle_{self.number}"

    @property
    def diff(self) -> str:
        name = self.symbol.rpartition(".")[2]
        return (
            f"diff --git a/{self.path} b/{self.path}\nindex 1..2 100644\n--- a/{self.path}\n+++ b/{self.path}\n"
            f"@@ -10,3 +10,3 @@ class Keeper:\n     def {name}(self):\n-        return 0\n+        return {self.number}\n"
        )


def seed_record(top: Path, counts: Mapping[str, int], *, seed: int = 7) -> Seeded:
    """The repository's record holds `counts` failed tasks of each kind, and a later solved run of all but `unknown`."""
    made = Seeded(top=top, expected=dict(counts))
    rng = random.Random(seed)
    with contextlib.closing(get_connection("raw", repo_path=top)) as conn, transaction(conn):
        number = 0
        for kind, count in counts.items():
            for _ in range(count):
                number += 1
                words = " ".join(rng.choices(WORDS, k=30)) + f" {number}"
                words += f" token {SECRET}" if number == SECRET_IN else ""
                writer = Writer(conn, top, Task(number=number, words=words), rng)
                writer.run("fail", kind)
                made.tasks += 1
                if kind != "unknown":
                    writer.run("good", "")
                    made.tasks += 1
                    made.doubtful += number % DOUBTFUL == 0
                made.calls += writer.calls
    return made


class Writer:
    """Writes the runs of one task."""

    def __init__(self, conn: Connection, top: Path, task: Task, rng: random.Random) -> None:
        self.conn, self.top, self.task, self.rng = conn, top, task, rng
        self.calls = 0
        self.kind = ""
        self.task_id = ""
        self.run_id = 0
        self.passes = 0

    def now(self) -> str:
        minute, day = self.passes, self.task.number
        return f"2026-{1 + day // 28 % 12:02d}-{1 + day % 28:02d}T{day // 336:02d}:{minute:02d}:00.000Z"

    def begin(self, name: str) -> None:
        """Write the row of a run that begins."""
        self.task_id = f"{name}-{self.task.number:05d}"
        row = runs.OrchestratorRunRow(
            task_id=self.task_id,
            repo_path=str(self.top),
            task_description=self.task.words,
            timestamp=self.now(),
            base_commit="b" * 40,
        )
        self.run_id = runs.append_orchestrator_run(self.conn, row)

    def end(self, status: RunStatus) -> None:
        """Write how the run ended."""
        outcome = runs.RunOutcome(status=status, completed_at=self.now())
        runs.set_outcome(self.conn, self.run_id, outcome)

    def run(self, name: str, kind: str) -> None:
        self.kind = kind
        self.begin(name)
        meta = self.open_pass(PassType.META_PLAN, "meta_plan")
        self.retrieval(f"{self.task_id}:meta_plan")
        path = "src/elsewhere.py" if kind == "meta_plan" else self.task.path
        unseen = kind in {"retrieval", "rank", "scope"}
        path = self.task.other if unseen else path
        plan = {"parts": [{"id": "a", "affected_files": [path]}]}
        self.call("meta_plan", f"{self.task_id}:meta_plan", REASONER, json.dumps(plan))
        self.close_pass(meta, success=True, plan=json.dumps(plan))
        part = self.open_pass(PassType.PART_PLAN, "part_plan:a")
        path = "src/elsewhere.py" if kind == "part_plan" else path
        steps = {"steps": [{"id": "s", "target_files": [{"path": path, "role": "modify"}]}]}
        self.call("part_plan", f"{self.task_id}:part_plan:a", REASONER, json.dumps(steps))
        self.close_pass(part, success=True, plan=json.dumps(steps))
        self.implement()
        self.end(RunStatus.FAILED if kind else RunStatus.COMPLETE)

    def open_pass(self, kind: PassType, name: str) -> int:
        self.passes += 1
        row = passes.TaskRunRow(
            task_id=f"{self.task_id}:{name}",
            repo_path=str(self.top),
            mode="implement" if kind is PassType.IMPLEMENT else "plan",
            execute_model=CODER,
            context_window=8192,
            reserved_tokens=2048,
            stages="scope,precision",
            timestamp=self.now(),
        )
        row_id = passes.append_task_run(self.conn, row)
        passes.append_pass(
            self.conn,
            passes.PassRow(
                orchestrator_run_id=self.run_id,
                task_run_id=row_id,
                pass_type=kind,
                sequence_order=self.passes,
                timestamp=self.now(),
            ),
        )
        return row_id

    def close_pass(
        self, row_id: int, *, success: bool, diff: str | None = None, plan: str | None = None
    ) -> None:
        outcome = passes.TaskRunOutcome(
            success=success,
            total_tokens=0,
            total_latency_ms=0,
            completed_at=self.now(),
            final_diff=diff,
            final_plan=plan,
        )
        passes.finish_task_run(self.conn, row_id, outcome)

    def retrieval(self, pass_id: str) -> None:
        """Scope by a question a file, precision by one a piece, then the package."""
        task, kind = self.task, self.kind
        self.call("task_analysis", pass_id, REASONER, '{"keywords": ["x"]}', stage="task_analysis")
        if kind == "rank":
            self.decide(pass_id, "scope", task.path, included=False)
        elif kind != "retrieval":
            answer = "no" if kind == "scope" else "yes"
            call_id = self.scope_call(pass_id, task.path, answer)
            self.decide(pass_id, "scope", task.path, included=answer == "yes", call_id=call_id)
        no_call = self.scope_call(pass_id, task.other, "no")
        self.decide(pass_id, "scope", task.other, included=False, call_id=no_call)
        if not kind and task.number % DOUBTFUL == 0:
            path = f"src/helper_{task.number}.py"
            self.decide(pass_id, "scope", path, call_id=self.scope_call(pass_id, path, "yes"))
        if kind in {"retrieval", "rank", "scope"}:
            return
        call_id = self.call(
            "piece_judgment", pass_id, CLASSIFIER, "edit", stage="precision", item=task.symbol
        )
        detail = "supporting" if kind == "precision" else "primary"
        self.decide(pass_id, "precision", task.path, symbol=task.symbol, detail=detail, call_id=call_id)
        kept = kind != "budget"
        self.decide(pass_id, "assembly", task.path, symbol=task.symbol, detail=detail, included=kept)

    def implement(self) -> None:
        name = "impl:a:s"
        row_id = self.open_pass(PassType.IMPLEMENT, name)
        pass_id = f"{self.task_id}:{name}"
        text = f'<edit file="{self.task.path}">{self.task.words}</edit>'
        if self.kind == "infrastructure":
            self.attempt(row_id, 0, AttemptOutcome.INFRASTRUCTURE, applied=False)
        elif self.kind:
            call_id = self.implement_call(pass_id, text.upper())
            applied = self.kind != "format"
            outcome = AttemptOutcome.TESTS_FAILED if applied else AttemptOutcome.UNREADABLE
            self.attempt(row_id, call_id, outcome, applied=applied)
        else:
            first = self.implement_call(pass_id, f"broken {text}", reading=AnswerReading.UNREADABLE)
            assert first
            call_id = self.implement_call(pass_id, text, reading=AnswerReading.REPAIRED, attempt=1)
            self.attempt(row_id, call_id, AttemptOutcome.APPLIED_AND_PASSED, applied=True)
        self.close_pass(row_id, success=not self.kind, diff=None if self.kind else self.task.diff)

    def implement_call(
        self, pass_id: str, text: str, *, reading: AnswerReading = AnswerReading.PARSED, attempt: int = 0
    ) -> int:
        prompt = f"{IMPLEMENT.heading}\n\nWrite the change.\n{self.task.words}"
        prompt += "\nYour answer could not be read." if attempt else ""
        return self.call(
            "implement", pass_id, CODER, text, prompt=prompt, reading=reading, attempt=attempt, role="coding"
        )

    def scope_call(self, pass_id: str, path: str, answer: str) -> int:
        inputs = SingleInputs(
            question=f"{CONTEXT}{self.task.words}",
            option=f"===== candidate: {path}\n" + " ".join(self.rng.choices(WORDS, k=20)) + "\n===== end\n",
            others=(self.task.path, self.task.other),
        )
        return self.call(
            "scope_judgment",
            pass_id,
            CLASSIFIER,
            answer,
            prompt=SCOPE_JUDGMENT.render(inputs),
            stage="scope",
            item=path,
            system=SCOPE_JUDGMENT.system,
        )

    def call(
        self,
        prompt_name: str,
        pass_id: str,
        model: str,
        response: str,
        *,
        prompt: str = "",
        stage: str = "",
        item: str = "",
        reading: AnswerReading = AnswerReading.PARSED,
        attempt: int = 0,
        role: str = "reasoning",
        system: str = "You plan.",
    ) -> int:
        self.calls += 1
        row = model_call(
            task_id=pass_id,
            call_type=prompt_name,
            stage_name=stage,
            model=model,
            prompt=prompt or f"# {prompt_name}\n\n{self.task.words} {item}",
            response=response,
            prompt_tokens=100,
            completion_tokens=10,
            latency_ms=1000,
            timestamp=self.now(),
            system_prompt=system,
            request_body="{}",
            provider="ollama",
            finish="stop",
            role=role,
            item=item,
            attempt=attempt,
            prompt_hash="",
            estimated_tokens=110,
        )
        call_id = calls.append_call(self.conn, row)
        calls.append_reading(
            self.conn, calls.ReadingRow(call_id=call_id, reading=reading, timestamp=self.now())
        )
        return call_id

    def decide(
        self,
        pass_id: str,
        stage: str,
        path: str,
        *,
        symbol: str | None = None,
        included: bool = True,
        detail: str = "",
        call_id: int | None = None,
    ) -> None:
        row = decision_row(
            task_id=pass_id,
            stage=stage,
            file_id=None,
            tier=2,
            included=included,
            reason="seeded",
            timestamp=self.now(),
            path=path,
            symbol=symbol,
            detail=detail,
            call_id=call_id,
        )
        passes.append_decisions(self.conn, (row,))

    def attempt(self, row_id: int, call_id: int, outcome: AttemptOutcome, *, applied: bool) -> None:
        row = passes.AttemptRow(
            task_run_id=row_id,
            attempt=1,
            prompt_tokens=100,
            completion_tokens=10,
            latency_ms=1000,
            raw_response="",
            patch_applied=applied,
            timestamp=self.now(),
            outcome=outcome,
            diff=self.task.diff if applied else "",
            call_id=call_id or None,
        )
        passes.append_attempt(self.conn, row)

"""One row of every table of the record, each referring to the first of the others."""

from typing import Any, TypeVar

from msgspec import Struct, structs
from testing.runs.decision_rows import decision_row, plan_decision_row
from testing.runs.model_calls import model_call

from clean_room_agent.artifacts.edits import EditCode, EditReport
from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.model_calls import AnswerReading, BiasKey, ModelCall, ProbedServer
from clean_room_agent.artifacts.outcomes import AttemptOutcome, PassType, TimeKind
from clean_room_agent.db.raw import calls, indexing, passes, runs, training
from clean_room_agent.db.rows import Table

NOW = "2026-01-02T03:04:05Z"
TASK = "3f0c8a52-7c7e-4a5c-9a53-0f2f0a6f0d11"
PASS = f"{TASK}:impl:part:step"


def call(**changes: Any) -> ModelCall:
    values: dict[str, Any] = {
        "task_id": PASS,
        "call_type": "implement",
        "stage_name": "",
        "model": "coder:3b",
        "prompt": "# Implement\n…\x00\n",
        "response": "<edit>",
        "prompt_tokens": 10,
        "completion_tokens": None,
        "latency_ms": 5,
        "timestamp": NOW,
        "system_prompt": "You write code.",
        "request_body": '{"model": "coder:3b"}',
        "provider": "ollama",
        "finish": "stop",
        "role": "coding",
        "prompt_hash": "ab",
        "estimated_tokens": 13,
    }
    return model_call(**{**values, **changes})


def task_run(task_id: str = PASS, timestamp: str = NOW) -> passes.TaskRunRow:
    return passes.TaskRunRow(
        task_id=task_id,
        repo_path="/r",
        mode="implement",
        execute_model="coder:3b",
        context_window=8192,
        reserved_tokens=2048,
        stages="scope,precision",
        timestamp=timestamp,
    )


def attempt(task_run_id: int, number: int, **fields: Any) -> passes.AttemptRow:
    values: dict[str, Any] = {"patch_applied": True, "outcome": AttemptOutcome.APPLIED_AND_PASSED, **fields}
    return passes.AttemptRow(
        task_run_id=task_run_id,
        attempt=number,
        prompt_tokens=None,
        completion_tokens=None,
        latency_ms=1,
        raw_response="",
        timestamp=NOW,
        **values,
    )


def validation(task_id: str, attempt_id: int | None) -> passes.ValidationRow:
    kind: passes.ValidationKind = "attempt" if attempt_id else "baseline"
    return passes.ValidationRow(
        attempt_id=attempt_id, success=True, test_output="", task_id=task_id, kind=kind, timestamp=NOW
    )


def run(task_id: str = TASK, timestamp: str = NOW) -> runs.OrchestratorRunRow:
    return runs.OrchestratorRunRow(
        task_id=task_id, repo_path="/r", task_description="mend it", timestamp=timestamp, base_commit="b" * 40
    )


INDEX_RUNS = Table("index_runs", indexing.IndexRunRow)

# In an order in which no row refers to a later one.
SAMPLES: tuple[tuple[Table[Any], Any], ...] = (
    (
        INDEX_RUNS,
        indexing.IndexRunRow(
            repo_path="/r",
            files_scanned=3,
            files_changed=2,
            duration_ms=7,
            status="partial",
            failures=(("a.py", "cannot be decoded"),),
            timestamp=NOW,
        ),
    ),
    (calls.CALLS, call()),
    (
        calls.READINGS,
        calls.ReadingRow(call_id=1, reading=AnswerReading.REPAIRED, fault="not JSON", timestamp=NOW),
    ),
    (
        passes.DECISIONS,
        decision_row(
            task_id=PASS,
            stage="scope",
            file_id=None,
            tier=2,
            included=True,
            reason="imported by a.py",
            timestamp=NOW,
            path="b.py",
            symbol="B.f",
            detail="primary",
            score=0.75,
            call_id=1,
        ),
    ),
    (passes.TASK_RUNS, task_run()),
    (
        passes.ATTEMPTS,
        passes.AttemptRow(
            task_run_id=1,
            attempt=1,
            prompt_tokens=10,
            completion_tokens=None,
            latency_ms=5,
            raw_response="<edit>",
            patch_applied=False,
            timestamp=NOW,
            outcome=AttemptOutcome.REFUSED,
            edit_report=(
                EditReport(
                    index=0, file_path="a.py", code=EditCode.AMBIGUOUS, matches=2, lines=(3, 9), tier=1
                ),
            ),
            call_id=1,
        ),
    ),
    (
        passes.VALIDATIONS,
        passes.ValidationRow(
            attempt_id=1,
            success=False,
            test_output="1 failed",
            failing_tests=(FailingTest(name="t::a", message="assert 1 == 2", path="t.py", line=4),),
            newly_failing=("t::a",),
            task_id=PASS,
            kind="attempt",
            exit_code=1,
            tests_run=5,
            timestamp=NOW,
        ),
    ),
    (runs.ORCHESTRATOR_RUNS, run()),
    (
        passes.PASSES,
        passes.PassRow(
            orchestrator_run_id=1,
            task_run_id=1,
            pass_type=PassType.IMPLEMENT,
            part_id="part",
            step_id="step",
            sequence_order=0,
            timestamp=NOW,
        ),
    ),
    (runs.EVENTS, runs.EventRow(task_id=TASK, kind="warning", detail="no sandbox", timestamp=NOW)),
    (
        runs.TIME_SPANS,
        runs.TimeSpanRow(task_id=TASK, kind=TimeKind.GIT, detail="snapshot", began_at=NOW, ended_at=NOW),
    ),
    (runs.ARCHIVES, runs.ArchiveRow(task_id=TASK, session_blob=b"\x00\xff", archived_at=NOW)),
    (
        passes.REFINEMENTS,
        passes.RefinementRow(
            task_id=PASS, request="{}", evidence="{}", added=("a.py", "b.py::B"), timestamp=NOW
        ),
    ),
    (
        passes.RECOVERY_DECISIONS,
        passes.RecoveryRow(task_id=PASS, state="{}", rule="retry", action="retry", timestamp=NOW),
    ),
    (
        calls.TASK_ESTIMATORS,
        calls.TaskEstimatorRow(task_id=TASK, model="coder:3b", start_factor=1.3, timestamp=NOW),
    ),
    (
        passes.PLAN_DECISIONS,
        plan_decision_row(
            task_id="t:meta_plan",
            question="same_part",
            item="c1 c2",
            yes=True,
            reason="judged yes (0.80)",
            call_id=1,
            confidence=0.8,
            probability=0.8,
            neutral=0.4,
            calibrated=1.8,
            timestamp=NOW,
        ),
    ),
    (
        calls.ANSWER_BIASES,
        calls.AnswerBiasRow(
            key=BiasKey(
                base_url="http://127.0.0.1:11434",
                model="coder:3b",
                model_digest="",
                prompt="scope_judgment",
                prompt_hash="ab" * 32,
            ),
            shares=(("yes", 0.31), ("no", 0.69)),
            call_id=1,
            timestamp=NOW,
        ),
    ),
    (
        calls.WINDOW_PROOFS,
        calls.WindowProofRow(
            server=ProbedServer(
                provider="ollama",
                base_url="http://127.0.0.1:11434",
                model="coder:3b",
                model_digest="",
                window=8192,
            ),
            call_id=1,
            timestamp=NOW,
        ),
    ),
    (
        indexing.ENRICHMENT_OUTPUTS,
        indexing.EnrichmentRow(
            file_id=4,
            path="a.py",
            content_hash="h",
            model="m",
            purpose="p",
            module=None,
            domain="d",
            concepts=("x", "y"),
            raw_prompt="?",
            raw_response="!",
            timestamp=NOW,
        ),
    ),
    (
        training.TRAINING_PLANS,
        training.TrainingPlanRow(
            task_id=TASK,
            target_stage="scope_judgment",
            base_model="reasoning",
            source="logged",
            data_criteria="{}",
            hyperparameters='{"r": 16}',
            improvement_targets="{}",
            raw_plan="...",
            timestamp=NOW,
        ),
    ),
    (
        training.TRAINING_DATASETS,
        training.DatasetRow(
            training_plan_id=1,
            stage_name="scope_judgment",
            base_model="reasoning",
            source="synthetic",
            dataset_path="/d",
            example_count=3,
            positive_count=2,
            negative_count=1,
            format="trl",
            timestamp=NOW,
        ),
    ),
    (
        training.ADAPTER_REGISTRY,
        training.AdapterRow(
            dataset_id=1,
            stage_name="scope_judgment",
            base_model="reasoning",
            model_tag="m:1",
            training_loss=0.5,
            trained_at=NOW,
        ),
    ),
    (
        training.ADAPTER_EVALUATIONS,
        training.EvaluationRow(
            task_id=TASK,
            adapter_id=1,
            base_tag="m",
            example_count=200,
            metrics="{}",
            passed=True,
            timestamp=NOW,
        ),
    ),
    (
        training.ADAPTER_DEPLOYMENTS,
        training.DeploymentRow(
            adapter_id=1,
            evaluation_id=1,
            stage_name="scope_judgment",
            action="deploy",
            tag="m:1",
            replaced_tag="",
            timestamp=NOW,
        ),
    ),
)

RowT = TypeVar("RowT", bound=Struct)


def sample(kind: type[RowT], **changes: Any) -> RowT:
    """The sample row of this kind, with these values in it."""
    (row,) = (row for _, row in SAMPLES if isinstance(row, kind))
    parts = {name: getattr(row, name) for name in ("subject", "judgment") if hasattr(row, name)}
    for name, part in parts.items():
        own = {key: changes.pop(key) for key in tuple(changes) if hasattr(part, key)}
        changes[name] = structs.replace(part, **own)
    return structs.replace(row, **changes)

"""Evaluates adapters with the gate, and stores the finding that a deployment relies on."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from clean_room_agent.artifacts.names import counted
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import (
    ADAPTER_EVALUATIONS,
    AdapterRow,
    EvaluationRow,
    list_adapters,
    list_evaluations,
)
from clean_room_agent.errors import ArtifactError, UsageError
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.training.dataset import read_rows
from clean_room_agent.training.edit_steps import EditSteps
from clean_room_agent.training.evaluation import (
    Arm,
    HeldoutQuestion,
    compare,
    differing,
    questions_of,
    words_of,
)
from clean_room_agent.training.gate import (
    AnswerPair,
    GateFinding,
    at_own_thresholds,
    before_spending,
    judge_candidate,
)
from clean_room_agent.training.statistics import LEVEL, holm

Progress = Callable[[int, int], None]


class Material(Struct, frozen=True, kw_only=True):
    """The held-out questions of a dataset for one prompt."""

    test: tuple[HeldoutQuestion, ...]
    validation: tuple[HeldoutQuestion, ...]
    """Used to set the thresholds of verdicts; empty for other prompts."""
    test_hash: str
    """SHA-256 of the test file; candidates that share it are compared with each other."""
    left_out: Mapping[str, int]
    limited: Mapping[str, int]
    """How many test questions have answers of which some aspect cannot be scored here, by that aspect."""


class Asked(Struct, frozen=True, kw_only=True):
    """A prompt with its held-out questions and the two models that answer them."""

    prompt: Prompt[Any, Any]
    material: Material
    base: Arm
    candidate: Arm


class Evaluated(Struct, frozen=True, kw_only=True):
    """A stored evaluation."""

    id: int
    finding: GateFinding
    material: Material
    spread: Mapping[str, float]
    """The gain of each adapter that was trained on the same dataset and evaluated on the same test, including this one,
    by tag. They differ in the seed, or in how they were trained.
    """


def material_of(folder: Path, prompt: Prompt[Any, Any], edits: EditSteps | None = None) -> Material:
    """The held-out questions for an adapter; `edits` scores edits.

    Raises:
        UsageError: there is no test split.
        ArtifactError: the split is not newer than the training data, or cannot be scored.
    """
    path = folder / prompt.name / "test.jsonl"
    if not path.exists():
        raise UsageError(
            f"{folder} holds no {prompt.name}/test.jsonl", hint="name the dataset's folder with --dataset"
        )
    test = questions_of(prompt, read_rows(folder, prompt.name, "test"), edits)
    if not test.questions:
        why = ", ".join(f"{counted(number, 'row')}: {reason}" for reason, number in test.left_out.items())
        raise ArtifactError(f"no held-out question of {path} can be scored ({why or 'the file is empty'})")
    newest = max((row.origin.timestamp for row in read_rows(folder, prompt.name, "train")), default="")
    oldest = min(each.row.origin.timestamp for each in test.questions)
    if oldest < newest:
        raise ArtifactError(
            f"{path} is older than the training data: {oldest} is before {newest}",
            hint="`cra curate-data` splits by time",
        )
    validation: tuple[HeldoutQuestion, ...] = ()
    if words_of(prompt) is not None:
        validation = questions_of(prompt, read_rows(folder, prompt.name, "validation")).questions
    return Material(
        test=test.questions,
        validation=validation,
        test_hash=hashlib.sha256(path.read_bytes()).hexdigest(),
        left_out=dict(sorted(test.left_out.items())),
        limited=dict(sorted(test.limited.items())),
    )


def evaluate_adapter(
    record: Record,
    adapter: AdapterRow,
    asked: Asked,
    *,
    others: Sequence[Asked] = (),
    task_id: str,
    progress: Progress,
    say: Callable[[str], None],
) -> Evaluated:
    """The finding of the gate, which is recorded with everything that it is based on. `others` are further prompts that
    the adapter serves, none of which may become worse.

    Raises:
        UsageError: this adapter was evaluated on this test split before, which is allowed only once.
        ArtifactError: a split lacks one of a verdict's two answers.
        ModelError: the server.
    """
    material = asked.material
    for known in record.write(list_evaluations, adapter.id):
        if json.loads(known.metrics).get("test_hash") == material.test_hash:
            raise UsageError(
                f"{adapter.model_tag} was evaluated on this test split (evaluation {known.id}), which is allowed only once",
                hint="deploy what passed, or evaluate on newer tasks: `cra curate-data` makes another split",
            )
    say(before_spending(len(material.test)))

    def answers(
        each: Asked, questions: Sequence[HeldoutQuestion]
    ) -> tuple[tuple[AnswerPair, ...], Mapping[str, str]]:
        found = compare(each.prompt, questions, each.base, each.candidate, pass_id=task_id, progress=progress)
        return found.pairs, found.fingerprints

    def scored(each: Asked) -> Sequence[AnswerPair]:
        validation, test = (answers(each, part)[0] for part in (each.material.validation, each.material.test))
        return test if test[0].truth is None else at_own_thresholds(test, validation)[0]

    validation, _ = answers(asked, material.validation)
    pairs, fingerprints = answers(asked, material.test)
    try:
        finding = judge_candidate(
            pairs,
            validation=validation,
            others={each.prompt.name: scored(each) for each in others},
            rivals=rivals_of(record, adapter, material.test_hash),
        )
    except ValueError as exc:
        raise ArtifactError(f"the adapter cannot be judged: {exc}") from exc
    metrics = {
        "finding": finding.as_object(),
        "test_hash": material.test_hash,
        "fingerprints": fingerprints,
        "candidate_tag": asked.candidate.tag,
        "left_out": dict(material.left_out),
        "limited": dict(material.limited),
    }
    row = EvaluationRow(
        task_id=task_id,
        adapter_id=adapter.id,
        base_tag=asked.base.tag,
        example_count=finding.figures.examples,
        metrics=json.dumps(metrics),
        passed=finding.passed,
        timestamp=record.now(),
    )
    number = record.write(ADAPTER_EVALUATIONS.insert, row)
    spread = {
        other.model_tag: float(each["gain"][0])
        for other, each in _findings(record, material.test_hash)
        if other.dataset_id == adapter.dataset_id
    }
    return Evaluated(id=number, finding=finding, material=material, spread=spread)


def rivals_of(record: Record, adapter: AdapterRow, test_hash: str) -> list[float]:
    """The p-values of other candidates for the prompt on the same test split."""
    newest = {
        other.id: float(finding["p"])
        for other, finding in _findings(record, test_hash)
        if other.stage_name == adapter.stage_name and other.id != adapter.id
    }
    return list(newest.values())


def _findings(record: Record, test_hash: str) -> Iterator[tuple[AdapterRow, dict[str, Any]]]:
    """What the gate found of each adapter on this test split."""
    for adapter in record.write(list_adapters):
        for row in record.write(list_evaluations, adapter.id):
            metrics = json.loads(row.metrics)
            if metrics.get("test_hash") == test_hash:
                yield adapter, metrics["finding"]


def passed_evaluation(record: Record, adapter: AdapterRow) -> EvaluationRow | None:
    """The newest evaluation that the adapter passed, and still passes when later candidates are taken into account."""
    for row in reversed(record.write(list_evaluations, adapter.id)):
        if row.passed:
            metrics = json.loads(row.metrics)
            own = float(metrics["finding"]["p"])
            if holm([own, *rivals_of(record, adapter, metrics["test_hash"])])[0] < LEVEL:
                return row
    return None


def require_same_answers(
    prompt: Prompt[Any, Any], material: Material, arm: Arm, evaluation: EvaluationRow, *, task_id: str
) -> None:
    """Check that the tag answers as the evaluated one did.

    Raises:
        UsageError: it answers differently.
    """
    known: dict[str, str] = json.loads(evaluation.metrics)["fingerprints"]
    changed = differing(prompt, material.test, arm, known, pass_id=task_id)
    if changed:
        raise UsageError(
            f"{arm.tag} does not answer as it did when it was evaluated: {len(changed)} of {len(known)} answers differ",
            hint="is it the same model on the same server? evaluate it again on newer tasks, or deploy with --force",
        )

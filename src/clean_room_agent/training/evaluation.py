"""Asks two models the same recorded questions, greedily and word for word, and scores their answers by what they are worth
to the task, 0 to 1. A verdict is scored by the gate, from its probability.

Scores never use the loss, or how many answers are readable: in a trial both improved while no answer named the right file.

The gate decides on the scores; its finding is stored, since a deployment relies on it.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import Struct

from clean_room_agent.artifacts.names import counted
from clean_room_agent.artifacts.outcomes import PassType
from clean_room_agent.artifacts.prompt_sources import SourcedText
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import (
    ADAPTER_EVALUATIONS,
    AdapterRow,
    EvaluationRow,
    list_adapters,
    list_evaluations,
)
from clean_room_agent.errors import ArtifactError, UsageError
from clean_room_agent.execute.forms.masked import MOST_TOKENS
from clean_room_agent.execute.forms.worded import FUNCTION, code_blocks
from clean_room_agent.execute.implement import usual_answer_tokens
from clean_room_agent.llm.answers import OneWord, ParseFault
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.filling import FILL_NAME, GAP_MARK, FillRequest
from clean_room_agent.llm.prompt import Prompt, Verbatim, verbatim
from clean_room_agent.llm.transport import Sampling
from clean_room_agent.training.dataset import TrainingRow, read_rows
from clean_room_agent.training.edit_steps import EditSteps
from clean_room_agent.training.gate import (
    AnswerPair,
    GateFinding,
    Scored,
    at_own_thresholds,
    before_spending,
    judge_candidate,
)
from clean_room_agent.training.statistics import LEVEL, holm

FINGERPRINTS = 5
"""Answers by which the deployed model is recognised as the evaluated one."""
NAMED: Mapping[str, Callable[[Any], set[str]]] = {
    "task_analysis": lambda answer: {*answer.areas, *answer.symbols},
    "meta_plan": lambda answer: {path for part in answer.parts for path in part.files},
    "part_plan": lambda answer: {file.path for step in answer.steps for file in step.files},
    "adjustment": lambda answer: {file.path for step in answer.steps for file in step.files},
}
"""What an answer names; it is worth the share of the right one's names. By prompt."""


class HeldoutQuestion(Struct, frozen=True, kw_only=True):
    """One held-out question with its right answer."""

    row: TrainingRow
    truth: bool | None = None
    """Of a verdict: whether its first word is right."""
    score: Callable[[Any], float] = lambda _answer: 0.0
    """What a parsed answer is worth, 0 to 1; not used for a verdict."""


class Arm(Struct, frozen=True, kw_only=True):
    """One model under comparison."""

    tag: str
    models: ModelClient
    """A client that resolves the prompt to the tag."""


class Heldout(Struct, frozen=True, kw_only=True):
    """The questions of a split that can be scored, and how many cannot, by reason."""

    questions: tuple[HeldoutQuestion, ...]
    left_out: Mapping[str, int]
    limited: Mapping[str, int]
    """How many questions have answers of which some aspect cannot be scored here, by that aspect."""


class Material(Struct, frozen=True, kw_only=True):
    """The held-out questions of a dataset for one prompt."""

    test: Heldout
    validation: tuple[HeldoutQuestion, ...]
    """Used to set the thresholds of verdicts; empty for other prompts."""
    test_hash: str
    """SHA-256 of the test file; candidates that share it are compared with each other."""


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


def questions_of(
    prompt: Prompt[Any, Any], rows: Iterable[TrainingRow], edits: EditSteps | None = None
) -> Heldout:
    """The rows that can be asked again as they were and whose right answer can be read. `edits` scores edits.

    Raises:
        ArtifactError: answers to the prompt cannot be scored.
    """
    words, named = words_of(prompt), NAMED.get(prompt.name)
    edits = edits or EditSteps()
    others = {*NAMED, PassType.IMPLEMENT.value, FILL_NAME, FUNCTION.name}
    if words is None and prompt.name not in others:
        raise ArtifactError(
            f"answers to {prompt.name} cannot be scored",
            hint=f"verdicts can, and {', '.join(sorted(others))}",
        )
    kept: list[HeldoutQuestion] = []
    left_out: Counter[str] = Counter()
    limited: Counter[str] = Counter()
    for row in rows:
        wanted = prompt.parse(row.completion[-1].content)
        if isinstance(wanted, ParseFault):
            left_out["its right answer cannot be read"] += 1
        elif not _belongs_to(prompt, row):
            left_out["its prompt is not one of this program's"] += 1
        elif prompt.name == FILL_NAME:
            behind = row.prompt[-1].content.partition(GAP_MARK)[2]
            kept.append(HeldoutQuestion(row=row, score=_is_filled_with(wanted, behind)))
        elif prompt.name == FUNCTION.name:
            kept.append(HeldoutQuestion(row=row, score=_has_lines_of(wanted)))
        elif words is not None:
            kept.append(HeldoutQuestion(row=row, truth=wanted.word == words[0]))
        elif named is not None:
            due = named(wanted)
            if due:
                kept.append(HeldoutQuestion(row=row, score=_recall_scorer(due, named)))
            else:
                left_out["its right answer names nothing"] += 1
        else:
            scorer = edits.scorer(row, wanted)
            if isinstance(scorer, str):
                left_out[scorer] += 1
                continue
            kept.append(HeldoutQuestion(row=row, score=scorer.score))
            limited.update([scorer.limit] if scorer.limit else [])
    return Heldout(
        questions=tuple(kept), left_out=dict(sorted(left_out.items())), limited=dict(sorted(limited.items()))
    )


def _is_filled_with(wanted: str, behind: str) -> Callable[[Any], float]:
    """1 for the text that stood in the gap, apart from white space around it, and what of `behind` is written once more."""
    rest = behind.partition("\n")[0].strip()

    def score(answer: str) -> float:
        written = answer.strip()
        return float(
            written == wanted.strip() or (bool(rest) and written.startswith(f"{wanted.strip()}{rest}"))
        )

    return score


def _has_lines_of(wanted: str) -> Callable[[Any], float]:
    """1 for the definition that stood there, apart from white space around its lines."""

    def lines(answer: str) -> list[str]:
        code = "\n".join(code_blocks(answer)) or answer
        return [line.strip() for line in code.split("\n") if line.strip()]

    return lambda answer: float(lines(answer) == lines(wanted))


def _recall_scorer(due: set[str], named: Callable[[Any], set[str]]) -> Callable[[Any], float]:
    return lambda answer: len(due & named(answer)) / len(due)


def compare(
    prompt: Prompt[Any, Any],
    questions: Sequence[HeldoutQuestion],
    base: Arm,
    candidate: Arm,
    *,
    pass_id: str,
    progress: Callable[[int, int], None],
) -> tuple[tuple[AnswerPair, ...], dict[str, str]]:
    """Both arms' answers, paired, and the candidate's first readable answers, word for word, by row id.

    The base is asked all questions, then the candidate: a server may have to unload one for the other. Questions with a
    common beginning follow each other, so that a server's cache serves it.

    Raises:
        ModelError: the server.
    """
    steps = count(1)
    questions = sorted(questions, key=lambda each: (each.row.prompt[-1].content, each.row.id))
    answered: list[list[tuple[Scored, str]]] = []
    for arm in (base, candidate):
        answered.append([])
        for question in questions:
            answered[-1].append(_ask_question(prompt, question, arm, pass_id))
            progress(next(steps), 2 * len(questions))
    pairs = tuple(
        AnswerPair(
            key=question.row.id,
            task="/".join(question.row.origin.group),
            base=first,
            candidate=second,
            truth=question.truth,
            groups=_question_groups(question),
        )
        for question, (first, _), (second, _) in zip(questions, *answered, strict=True)
    )
    said = [
        (question.row.id, text)
        for question, (scored, text) in zip(questions, answered[1], strict=True)
        if scored.readable
    ]
    return pairs, dict(said[:FINGERPRINTS])


def require_same_answers(
    prompt: Prompt[Any, Any],
    questions: Sequence[HeldoutQuestion],
    arm: Arm,
    fingerprints: Mapping[str, str],
    *,
    pass_id: str,
) -> None:
    """Check that the model answers as it did when it was evaluated; `fingerprints` are those of the evaluation.

    Raises:
        UsageError: it answers differently.
    """
    known = [question for question in questions if question.row.id in fingerprints]
    changed = [
        each for each in known if _ask_question(prompt, each, arm, pass_id)[1] != fingerprints[each.row.id]
    ]
    if changed:
        raise UsageError(
            f"{arm.tag} does not answer as it did when it was evaluated: {len(changed)} of {len(fingerprints)} answers "
            "differ",
            hint="is it the same model on the same server? evaluate it again on newer tasks, or deploy with --force",
        )


def words_of(prompt: Prompt[Any, Any]) -> tuple[str, ...] | None:
    """The words of which the prompt's answer is one, the positive one first; None if it asks for no verdict."""
    return prompt.answer.words if isinstance(prompt.answer, OneWord) else None


def _belongs_to(prompt: Prompt[Any, Any], row: TrainingRow) -> bool:
    """Whether the row asks this prompt."""
    text = row.prompt[-1].content
    if prompt.name == FILL_NAME:
        return text.count(GAP_MARK) == 1
    return prompt.heading in text.split("\n") and text == text.strip()


def _ask_question(
    prompt: Prompt[Any, Any], question: HeldoutQuestion, arm: Arm, pass_id: str
) -> tuple[Scored, str]:
    """The scored answer, and its text. One that needs a repair counts as unreadable, and takes as long as in a run."""
    row = question.row
    if prompt.name == FILL_NAME:
        return _fill_gap(question, arm, pass_id)
    system = row.prompt[0].content if row.prompt[0].role == "system" else ""
    longest = prompt.max_answer_tokens
    if (
        prompt.name == PassType.IMPLEMENT.value
    ):  # the code is not known apart: what a run keeps free for edits
        longest = usual_answer_tokens(arm.models.window(prompt))
    reply = arm.models.ask(
        verbatim(prompt, system, max_answer_tokens=longest),
        Verbatim(text=row.prompt[-1].content),
        pass_id=f"{pass_id}:{arm.tag}".replace("/", "_"),
        item=row.id,
        sampling=Sampling(),
    )
    latency = float(reply.waited_ms)
    if reply.value is None or reply.repaired:
        return Scored(readable=False, latency_ms=latency), reply.text
    words = words_of(prompt)
    if words is None:
        return Scored(value=question.score(reply.value), latency_ms=latency), reply.text
    said = float(reply.value.word == words[0])
    return Scored(yes=dict(reply.value.shares).get(words[0], said), latency_ms=latency), reply.text


def _fill_gap(question: HeldoutQuestion, arm: Arm, pass_id: str) -> tuple[Scored, str]:
    """The scored text of a gap; one that does not end counts as unreadable."""
    before, _, behind = question.row.prompt[-1].content.partition(GAP_MARK)
    lines = question.row.completion[-1].content.count("\n")
    following = next((line.rstrip() for line in behind.split("\n")[1:] if line.strip()), "")
    stop = ("\n",) if not lines else ("\n\n\n", *((f"\n{following}",) if following else ()))
    request = FillRequest(
        before=SourcedText(before), after=SourcedText(behind), stop=stop, max_tokens=MOST_TOKENS
    )
    reply = arm.models.fill(request, pass_id=f"{pass_id}:{arm.tag}".replace("/", "_"), item=question.row.id)
    value = question.score(reply.text) if reply.whole else 0.0
    return Scored(value=value, readable=reply.whole, latency_ms=float(reply.latency_ms)), reply.text


def _question_groups(question: HeldoutQuestion) -> dict[str, str]:
    origin = question.row.origin
    size = len(question.row.completion[-1].content)
    about = f"up to {1 << max(size - 1, 1).bit_length()} characters"
    return {
        "repository": origin.repo,
        "source": origin.source,
        "answer": about if question.truth is None else json.dumps(question.truth),
    }


def material_of(folder: Path, prompt: Prompt[Any, Any], edits: EditSteps | None = None) -> Material:
    """The held-out questions for an adapter; `edits` scores edits.

    Raises:
        UsageError: there is no test split.
        ArtifactError: a question is older than its repository's training data, or none can be scored.
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
    newest: dict[str, str] = {}
    for row in read_rows(folder, prompt.name, "train"):
        newest[row.origin.repo] = max(newest.get(row.origin.repo, ""), row.origin.timestamp)
    for origin in (each.row.origin for each in test.questions):
        if origin.timestamp < newest.get(origin.repo, ""):
            raise ArtifactError(
                f"{path} is older than the training data of {origin.repo}: {origin.timestamp} is before "
                f"{newest[origin.repo]}",
                hint="`cra curate-data` splits by time",
            )
    validation: tuple[HeldoutQuestion, ...] = ()
    if words_of(prompt) is not None:
        validation = questions_of(prompt, read_rows(folder, prompt.name, "validation")).questions
    return Material(test=test, validation=validation, test_hash=hashlib.sha256(path.read_bytes()).hexdigest())


def evaluate_adapter(
    record: Record,
    adapter: AdapterRow,
    asked: Asked,
    *,
    others: Sequence[Asked] = (),
    task_id: str,
    progress: Callable[[int, int], None],
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
    say(before_spending(len(material.test.questions)))

    def answers(
        each: Asked, questions: Sequence[HeldoutQuestion]
    ) -> tuple[tuple[AnswerPair, ...], Mapping[str, str]]:
        return compare(each.prompt, questions, each.base, each.candidate, pass_id=task_id, progress=progress)

    def scored(each: Asked) -> Sequence[AnswerPair]:
        validation, test = (
            answers(each, part)[0] for part in (each.material.validation, each.material.test.questions)
        )
        return test if test[0].truth is None else at_own_thresholds(test, validation)[0]

    validation, _ = answers(asked, material.validation)
    pairs, fingerprints = answers(asked, material.test.questions)
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
        "left_out": dict(material.test.left_out),
        "limited": dict(material.test.limited),
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
        for other, each in _gate_findings(record, material.test_hash)
        if other.dataset_id == adapter.dataset_id
    }
    return Evaluated(id=number, finding=finding, material=material, spread=spread)


def rivals_of(record: Record, adapter: AdapterRow, test_hash: str) -> list[float]:
    """The p-values of other candidates for the prompt on the same test split."""
    newest = {
        other.id: float(finding["p"])
        for other, finding in _gate_findings(record, test_hash)
        if other.stage_name == adapter.stage_name and other.id != adapter.id
    }
    return list(newest.values())


def _gate_findings(record: Record, test_hash: str) -> Iterator[tuple[AdapterRow, dict[str, Any]]]:
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

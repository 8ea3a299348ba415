"""Asks two models the same recorded questions, greedily and word for word, and scores their answers."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.outcomes import PassType
from clean_room_agent.errors import ArtifactError
from clean_room_agent.execute.implement import usual_answer_tokens
from clean_room_agent.llm.answers import BadAnswer, OneWord
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.transport import Sampling
from clean_room_agent.training.dataset import Row
from clean_room_agent.training.gate import Pair, Scored
from clean_room_agent.training.metrics import METRICS, Metric

FINGERPRINTS = 5
"""Answers by which the deployed model is recognised as the evaluated one."""


class Recorded(Struct, frozen=True, kw_only=True):
    """Inputs of a prompt whose text is known."""

    text: str


class Question(Struct, frozen=True, kw_only=True):
    """One held-out question with its right answer."""

    row: Row
    wanted: Any
    """The right answer, parsed."""
    truth: bool | None
    """Of a verdict: whether its first word is right."""
    metric: Metric | None = None
    """Scores its answers; None for a verdict."""


class Arm(Struct, frozen=True, kw_only=True):
    """One model under comparison."""

    tag: str
    models: ModelClient
    """A client that resolves the prompt to the tag."""


class Heldout(Struct, frozen=True, kw_only=True):
    """The questions of a split that can be scored, and how many cannot, by reason."""

    questions: tuple[Question, ...]
    left_out: Counter[str]
    limited: Counter[str]
    """How many questions have answers of which some aspect cannot be scored here, by that aspect."""


class Compared(Struct, frozen=True, kw_only=True):
    """Both arms' answers, paired, and the candidate's first readable answers, word for word."""

    pairs: tuple[Pair, ...]
    fingerprints: dict[str, str]
    """Row id -> answer."""


def questions_of(prompt: Prompt[Any, Any], rows: Iterable[Row], metric: Metric | None = None) -> Heldout:
    """The rows that can be asked again as they were and whose right answer can be read. `metric` replaces the prompt's
    usual one; verdicts have none.

    Raises:
        ArtifactError: there is no metric for the prompt.
    """
    words = words_of(prompt)
    metric = None if words else metric or METRICS.get(prompt.name)
    if words is None and metric is None:
        raise ArtifactError(
            f"answers to {prompt.name} cannot be scored",
            hint=f"verdicts can, and {', '.join(sorted(METRICS))}",
        )
    kept: list[Question] = []
    left_out: Counter[str] = Counter()
    limited: Counter[str] = Counter()
    for row in rows:
        wanted = prompt.parse(row.completion[-1].content)
        if isinstance(wanted, BadAnswer):
            left_out["its right answer cannot be read"] += 1
        elif _body(prompt, row) is None:
            left_out["its prompt is not one of this program's"] += 1
        elif metric is not None and (fault := metric.fault(row, wanted)):
            left_out[fault] += 1
        else:
            kept.append(Question(row=row, wanted=wanted, truth=_truth(wanted, words), metric=metric))
            if metric is not None and (limit := metric.limit(row)):
                limited[limit] += 1
    return Heldout(questions=tuple(kept), left_out=left_out, limited=limited)


def compare(
    prompt: Prompt[Any, Any],
    questions: Sequence[Question],
    base: Arm,
    candidate: Arm,
    *,
    pass_id: str,
    progress: Callable[[int, int], None],
) -> Compared:
    """Ask the base all questions, then the candidate: a server may have to unload one for the other. Questions with a
    common beginning follow each other, so that a server's cache serves it.

    Raises:
        ModelError: the server.
    """
    steps = count(1)
    questions = sorted(questions, key=lambda each: (each.row.prompt[-1].content, each.row.id))
    total = 2 * len(questions)
    answered = [
        [_ask(prompt, question, arm, pass_id, lambda: progress(next(steps), total)) for question in questions]
        for arm in (base, candidate)
    ]
    pairs = tuple(
        Pair(
            key=question.row.id,
            task="/".join(question.row.origin.group),
            base=first,
            candidate=second,
            truth=question.truth,
            groups=_groups(question),
        )
        for question, (first, _), (second, _) in zip(questions, *answered, strict=True)
    )
    said = [
        (question.row.id, text)
        for question, (scored, text) in zip(questions, answered[1], strict=True)
        if scored.readable
    ]
    return Compared(
        pairs=pairs,
        fingerprints=dict(said[:FINGERPRINTS]),
    )


def differing(
    prompt: Prompt[Any, Any],
    questions: Sequence[Question],
    arm: Arm,
    fingerprints: dict[str, str],
    *,
    pass_id: str,
) -> tuple[str, ...]:
    """The rows to which the model's answers differ from those of its evaluation."""
    found = []
    for question in questions:
        known = fingerprints.get(question.row.id)
        if known is not None and _ask(prompt, question, arm, pass_id, lambda: None)[1] != known:
            found.append(question.row.id)
    return tuple(found)


def words_of(prompt: Prompt[Any, Any]) -> tuple[str, ...] | None:
    """The words of which the prompt's answer is one, the positive one first; None if it asks for no verdict."""
    return prompt.answer.words if isinstance(prompt.answer, OneWord) else None


def _truth(wanted: Any, words: tuple[str, ...] | None) -> bool | None:
    return None if words is None else _first(wanted, words)


def _first(value: Any, words: tuple[str, ...]) -> bool:
    """Whether a verdict is the first of the words."""
    return bool(value.word == words[0])


def _body(prompt: Prompt[Any, Any], row: Row) -> str | None:
    """The question; None if it does not belong to this prompt. Rows of earlier versions begin with the title."""
    text = row.prompt[-1].content
    asks = prompt.heading in text.split("\n") or text.startswith(f"# {prompt.title}\n")
    return text if asks and text == text.strip() else None


def _ask(
    prompt: Prompt[Any, Any], question: Question, arm: Arm, pass_id: str, done: Callable[[], None]
) -> tuple[Scored, str]:
    """The scored answer, and its text. One that needs a repair counts as unreadable, and takes as long as in a run."""
    row = question.row
    body = _body(prompt, row)
    assert body is not None
    system = row.prompt[0].content if row.prompt[0].role == "system" else ""
    again: Prompt[Recorded, Any] = replace(
        prompt, system=system, template="{{ text }}", narrow=None, grammar=None, editable=None
    )
    reply = arm.models.ask(
        again,
        Recorded(text=body),
        pass_id=f"{pass_id}:{arm.tag}".replace("/", "_"),
        item=row.id,
        sampling=Sampling(),
        max_answer_tokens=_answer_tokens(prompt, arm.models),
    )
    done()
    latency = float(reply.waited_ms)
    if reply.value is None or reply.repaired:
        return Scored(readable=False, latency_ms=latency), reply.text
    words = words_of(prompt)
    if words is None:
        assert question.metric is not None
        value = question.metric.score(row, question.wanted, reply.value)
        return Scored(value=value, latency_ms=latency), reply.text
    said = float(_first(reply.value, words))
    return Scored(yes=dict(reply.value.shares).get(words[0], said), latency_ms=latency), reply.text


def _answer_tokens(prompt: Prompt[Any, Any], models: ModelClient) -> int:
    """The longest answer that is asked for, in tokens: of edits, what a run keeps free for them, as the code is not known apart."""
    if prompt.name == PassType.IMPLEMENT.value:
        return usual_answer_tokens(models.window(prompt))
    return prompt.max_answer_tokens


def _groups(question: Question) -> dict[str, str]:
    origin = question.row.origin
    size = len(question.row.completion[-1].content)
    return {
        "repository": origin.repo,
        "source": origin.source,
        "answer": json.dumps(question.truth)
        if question.truth is not None
        else f"up to {_power(size)} characters",
    }


def _power(size: int) -> int:
    return 1 << max(size - 1, 1).bit_length()

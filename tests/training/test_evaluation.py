"""Recorded questions asked again: word for word, scored by the task, and what cannot be scored left out with a reason."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client, models_config
from testing.client.scripted_transport import ScriptedTransport
from tests.training.test_dataset import CARD, ORIGIN, answer
from tests.training.test_deployment import NOW, trained

from clean_room_agent.app.prompts import FILL
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import ADAPTER_REGISTRY, AdapterRow, get_adapter
from clean_room_agent.errors import ArtifactError, UsageError
from clean_room_agent.execute.forms.worded import FUNCTION
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN
from clean_room_agent.llm.answers import TokenChoice
from clean_room_agent.llm.filling import GAP_MARK
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.transport import ChatRequest, RawAnswer
from clean_room_agent.retrieval.prompts import PIECE_JUDGMENT, REFILTER, SCOPE_JUDGMENT, TASK_ANALYSIS
from clean_room_agent.training.dataset import (
    FORMATS,
    DatasetEntry,
    Message,
    Split,
    TrainingRow,
    write_dataset,
)
from clean_room_agent.training.evaluation import (
    Arm,
    Asked,
    Evaluated,
    Heldout,
    HeldoutQuestion,
    Material,
    compare,
    evaluate_adapter,
    material_of,
    questions_of,
    require_same_answers,
)
from clean_room_agent.training.gate import AnswerPair

ANALYSIS = '{"intent": "i", "areas": ["a.py", "b.py"], "keywords": [], "symbols": ["f", "g"]}'
EDIT = """\
<edit file="a.py">
<search>
x = 1
</search>
<replacement>
x = 2
</replacement>
</edit>"""


def row(prompt: Prompt[Any, Any], completion: str, text: str = "the question", **origin: Any) -> TrainingRow:
    messages = (
        Message(role="system", content=prompt.system),
        Message(role="user", content=f"{prompt.heading}\n\n{text}"),
    )
    return TrainingRow(prompt=messages, completion=answer(completion), origin=replace(ORIGIN, **origin))


def arm(
    tag: str, prompt: Prompt[Any, Any], script: Callable[[ChatRequest], str | RawAnswer]
) -> tuple[Arm, ScriptedTransport]:
    transport = ScriptedTransport(script)
    client = model_client(transport, MemorySink(), config=models_config(overrides={prompt.name: tag}))
    return Arm(tag=tag, models=client), transport


def compared(
    prompt: Prompt[Any, Any], rows: list[TrainingRow], base: str, candidate: str | RawAnswer
) -> tuple[tuple[AnswerPair, ...], dict[str, str]]:
    questions = questions_of(prompt, rows).questions
    first, second = arm("b:1", prompt, lambda _: base)[0], arm("c:1", prompt, lambda _: candidate)[0]
    return compare(prompt, questions, first, second, pass_id="p", progress=lambda _done, _total: None)


def compared_edits(questions: Sequence[HeldoutQuestion], said: str) -> list[float]:
    """What the answer is worth to each of them."""
    right, other = arm("b:1", IMPLEMENT, lambda _: EDIT)[0], arm("c:1", IMPLEMENT, lambda _: said)[0]
    pairs, _ = compare(IMPLEMENT, questions, right, other, pass_id="p", progress=lambda _done, _total: None)
    return [each.candidate.value for each in pairs]


def test_a_question_is_asked_word_for_word_of_the_named_model_and_greedily() -> None:
    wanted = row(SCOPE_JUDGMENT, "yes", "line one\n\n{{ not a template }}  x")
    first, seen = arm("c:1", SCOPE_JUDGMENT, lambda _: "yes")
    questions = questions_of(SCOPE_JUDGMENT, [wanted]).questions
    done: list[tuple[int, int]] = []
    compare(SCOPE_JUDGMENT, questions, first, first, pass_id="p", progress=lambda *each: done.append(each))
    assert done == [(1, 2), (2, 2)]
    for request in seen.requests:
        assert (request.system, request.prompt) == (wanted.prompt[0].content, wanted.prompt[1].content)
        assert request.model.tag == "c:1"
        assert (request.sampling.temperature, request.sampling.top_k) == (0.0, 1)


def test_a_verdict_is_the_probability_of_its_first_word() -> None:
    likely = TokenChoice(token="read", top=(("read", -0.5), ("change", -1.5), ("skip", -3.0)))
    said = RawAnswer(request_body="{}", text="read", tokens=(likely,))
    (pair,), _ = compared(PIECE_JUDGMENT, [row(PIECE_JUDGMENT, "change")], "skip", said)
    assert pair.truth is True
    assert pair.base.yes == 0.0
    assert pair.candidate.yes == pytest.approx(0.2537, abs=1e-3)
    assert pair.groups["repository"] == ORIGIN.repo


def test_an_analysis_is_worth_the_share_of_names_it_finds() -> None:
    half = '{"intent": "", "areas": ["a.py"], "keywords": [], "symbols": ["g", "other"]}'
    (pair,), _ = compared(TASK_ANALYSIS, [row(TASK_ANALYSIS, ANALYSIS)], half, "no JSON")
    assert (pair.base.value, pair.base.readable) == (0.5, True)
    assert (pair.candidate.value, pair.candidate.readable) == (0.0, False)


def test_a_plan_is_worth_the_share_of_files_it_names() -> None:
    plan = META_PLAN.example.replace("quokka", "shop").replace("Quokka", "Shop")  # a copy would say nothing
    named = META_PLAN.parse(plan)
    files = [path for part in named.parts for path in part.files]  # type: ignore[union-attr]
    less = plan.replace(f'"{files[0]}"', '"elsewhere.py"')
    (pair,), _ = compared(META_PLAN, [row(META_PLAN, plan)], plan, less)
    assert pair.base.value == 1.0
    assert pair.candidate.value == pytest.approx(1 - 1 / len(set(files)))


def gap(before: str, wanted: str, behind: str) -> TrainingRow:
    asked = (Message(role="user", content=f"{before}{GAP_MARK}{behind}"),)
    return TrainingRow(prompt=asked, completion=answer(wanted), origin=ORIGIN)


@pytest.mark.parametrize(
    ("wanted", "behind", "said", "value", "readable"),
    [
        (" a + b", "\n", " a + b", 1.0, True),
        (" a + b", "\n", "a + b \n    more", 1.0, True),
        (" a == b", ":\n    pass\n", " a == b:", 1.0, True),
        (" a == b", ":\n    pass\n", " a == b or c:", 0.0, True),
        (" a + b", "\n", " a - b", 0.0, True),
        ("    x = 1\n    y = 2", "\n    return x\n", "    x = 1\n    y = 2\n    return x\n", 1.0, True),
        (" a + b", "\n", RawAnswer(request_body="", text=" a + b", finish="length"), 0.0, False),
    ],
)
def test_the_text_of_a_gap_is_worth_whether_it_stood_there(
    wanted: str, behind: str, said: str | RawAnswer, value: float, readable: bool
) -> None:
    (pair,), _ = compared(FILL, [gap("def f(a, b):\n    return", wanted, behind)], "nothing\n", said)
    assert (pair.base.value, pair.candidate.value) == (0.0, value)
    assert pair.candidate.readable is readable


def test_a_question_is_not_older_than_what_its_own_repository_taught(tmp_path: Path) -> None:
    def entry(split: Split, repo: str, day: int) -> DatasetEntry:
        of_day = row(
            SCOPE_JUDGMENT, "yes", f"{split} {repo}", repo=repo, timestamp=f"2026-01-0{day}T00:00:00Z"
        )
        return DatasetEntry(split=split, kind="sft", row=of_day)

    old = (entry("train", "/code/till", 1), entry("test", "/code/till", 2))
    write_dataset(tmp_path / "good", (entry("train", "/code/shop", 5), *old), CARD, FORMATS["trl"])
    assert len(material_of(tmp_path / "good", SCOPE_JUDGMENT).test.questions) == 1
    write_dataset(tmp_path / "bad", (entry("train", "/code/till", 3), *old), CARD, FORMATS["trl"])
    with pytest.raises(ArtifactError, match="older than the training data of /code/till"):
        material_of(tmp_path / "bad", SCOPE_JUDGMENT)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("Here it is:\n```\ndef f(a):\n  return a + 1\n```\nDone.", 1.0),
        ("def f(a):\n    return a + 1", 1.0),
        ("```python\ndef f(a):\n    return a - 1\n```", 0.0),
    ],
)
def test_a_definition_is_worth_whether_it_stood_there(said: str, value: float) -> None:
    wanted = "```python\ndef f(a):\n    return a + 1\n```"
    (pair,), _ = compared(FUNCTION, [row(FUNCTION, wanted)], "def g():\n    pass", said)
    assert (pair.base.value, pair.candidate.value) == (0.0, value)


def test_a_gap_is_asked_about_as_one_and_ends_where_a_run_would_end_it() -> None:
    (question,) = questions_of(FILL, [gap("x =", " 1\n", "\n\ny = 2\n")]).questions
    one, seen = arm("c:1", FILL, lambda _: " 1")
    require_same_answers(FILL, [question], one, {question.row.id: " 1"}, pass_id="p")
    sent = seen.requests[0].gap
    assert sent is not None
    assert (sent.before, sent.after, sent.stop) == ("x =", "\n\ny = 2\n", ("\n\n\n", "\ny = 2"))
    assert seen.requests[0].model.tag == "c:1"


def test_what_cannot_be_scored_is_left_out_with_its_reason(tmp_path: Path) -> None:
    rows = [
        row(SCOPE_JUDGMENT, "perhaps so"),
        replace(row(SCOPE_JUDGMENT, "yes"), prompt=(Message(role="user", content="# Another prompt\n\nx"),)),
        row(SCOPE_JUDGMENT, "no"),
    ]
    found = questions_of(SCOPE_JUDGMENT, rows)
    assert [each.truth for each in found.questions] == [False]
    assert found.left_out == {
        "its right answer cannot be read": 1,
        "its prompt is not one of this program's": 1,
    }
    away = row(IMPLEMENT, EDIT, repo=str(tmp_path), commit="0" * 40)
    assert questions_of(IMPLEMENT, [away]).left_out == {
        "no clone here has the commit that its prompt was made from": 1
    }
    with pytest.raises(ArtifactError, match="cannot be scored"):
        questions_of(REFILTER, [])


def test_a_model_is_recognised_by_its_answers() -> None:
    rows = [row(TASK_ANALYSIS, ANALYSIS, f"question {number}") for number in range(8)]
    questions = questions_of(TASK_ANALYSIS, rows).questions
    _, known = compared(TASK_ANALYSIS, rows, ANALYSIS, ANALYSIS)
    assert len(known) == 5
    same, seen = arm("c:1", TASK_ANALYSIS, lambda _: ANALYSIS)
    require_same_answers(TASK_ANALYSIS, questions, same, known, pass_id="p")
    assert len(seen.requests) == 5
    other = arm("c:1", TASK_ANALYSIS, lambda _: ANALYSIS.replace("a.py", "c.py"))[0]
    with pytest.raises(UsageError, match="5 of 5 answers differ"):
        require_same_answers(TASK_ANALYSIS, questions, other, known, pass_id="p")


def test_an_answer_that_must_be_repaired_counts_as_unreadable_and_costs_its_repair() -> None:
    clock = iter(range(0, 1000, 5))

    def script(request: ChatRequest) -> str:
        return "perhaps" if "An earlier answer" not in request.prompt else "yes"

    transport = ScriptedTransport(script)
    client = model_client(transport, MemorySink(), config=models_config(), timer=lambda: float(next(clock)))
    questions = questions_of(SCOPE_JUDGMENT, [row(SCOPE_JUDGMENT, "yes")]).questions
    base, right = Arm(tag="b:1", models=client), arm("c:1", SCOPE_JUDGMENT, lambda _: "yes")[0]
    (pair,), found = compare(
        SCOPE_JUDGMENT, questions, base, right, pass_id="p", progress=lambda _done, _total: None
    )
    assert (pair.base.readable, pair.candidate.readable) == (False, True)
    assert len(transport.requests) == 2
    assert pair.base.latency_ms >= 2 * 5000
    assert found == {pair.key: "yes"}
    _, swapped = compare(
        SCOPE_JUDGMENT, questions, right, base, pass_id="q", progress=lambda _done, _total: None
    )
    assert swapped == {}


EMPTY = '{"intent": "", "areas": [], "keywords": [], "symbols": []}'


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    (tmp_path / "shop").mkdir()
    with Record.open(tmp_path / "shop", clock=lambda: NOW) as opened:
        yield opened


def asked(prompt: Prompt[Any, Any], answers: list[str], base: Any, candidate: Any) -> Asked:
    def made(part: str) -> Heldout:
        rows = [
            row(prompt, said, f"{part} {number} {said}", task_id=f"{part}{number}")
            for number, said in enumerate(answers)
        ]
        return questions_of(prompt, rows)

    material = Material(test=made("test"), validation=made("validation").questions, test_hash=prompt.name)
    return Asked(
        prompt=prompt,
        material=material,
        base=arm("b:1", prompt, base)[0],
        candidate=arm("c:1", prompt, candidate)[0],
    )


def better() -> Asked:
    """An analysis that the base never gets right, and the candidate always."""
    wanted = asked(TASK_ANALYSIS, [ANALYSIS] * 200, lambda _: EMPTY, lambda _: ANALYSIS)
    return replace(wanted, material=replace(wanted.material, validation=()))


def verdicts(*, right: bool) -> Asked:
    """Verdicts that the base gets right, and the candidate too where `right`, else it says yes to all."""

    def knows(request: Any) -> str:
        return "yes" if request.prompt.endswith("yes") else "no"

    return asked(SCOPE_JUDGMENT, ["yes", "no"] * 20, knows, knows if right else lambda _: "yes")


def evaluated(record: Record, adapter: AdapterRow, first: Asked, *others: Asked) -> Evaluated:
    return evaluate_adapter(
        record,
        adapter,
        first,
        others=others,
        task_id="t",
        progress=lambda _done, _total: None,
        say=lambda _text: None,
    )


def test_another_prompt_that_the_adapter_serves_may_not_become_worse(record: Record) -> None:
    alone, good, bad = (trained(record, tag, stage="task_analysis") for tag in ("one", "two", "three"))
    assert evaluated(record, alone, better()).finding.passed
    assert evaluated(record, good, better(), verdicts(right=True)).finding.passed
    finding = evaluated(record, bad, better(), verdicts(right=False)).finding
    assert finding.status == "failed"
    assert [check.name for check in finding.checks if not check.holds] == ["other prompt scope_judgment"]


def test_verdicts_of_another_prompt_need_both_answers(record: Record) -> None:
    one = verdicts(right=True)
    bare = replace(one, material=replace(one.material, validation=()))
    with pytest.raises(ArtifactError, match="the validation split lacks one of the two answers"):
        evaluated(record, trained(record, "one", stage="task_analysis"), better(), bare)


def test_the_gains_of_adapters_of_one_dataset_stand_side_by_side(record: Record) -> None:
    first = trained(record, "seed-0", stage="task_analysis")
    other = replace(first, model_tag="seed-1")
    again = record.write(get_adapter, record.write(ADAPTER_REGISTRY.insert, other))
    assert again is not None
    assert evaluated(record, first, better()).spread == {"seed-0": 1.0}
    assert evaluated(record, again, better()).spread == {"seed-0": 1.0, "seed-1": 1.0}

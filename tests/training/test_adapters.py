"""An evaluation in the record: the prompts that an adapter serves beside its own, and the spread over seeds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.training.test_deployment import NOW, trained
from tests.training.test_evaluation import ANALYSIS, arm, row

from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.raw.training import ADAPTER_REGISTRY, AdapterRow, get_adapter
from clean_room_agent.errors import ArtifactError
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.retrieval.prompts import SCOPE_JUDGMENT, TASK_ANALYSIS
from clean_room_agent.training.adapters import Asked, Evaluated, Material, evaluate_adapter
from clean_room_agent.training.evaluation import HeldoutQuestion, questions_of

EMPTY = '{"intent": "", "areas": [], "keywords": [], "symbols": []}'


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    (tmp_path / "shop").mkdir()
    with Record.open(tmp_path / "shop", clock=lambda: NOW) as opened:
        yield opened


def asked(prompt: Prompt[Any, Any], answers: list[str], base: Any, candidate: Any) -> Asked:
    def made(part: str) -> tuple[HeldoutQuestion, ...]:
        rows = [
            row(prompt, said, f"{part} {number} {said}", task_id=f"{part}{number}")
            for number, said in enumerate(answers)
        ]
        return questions_of(prompt, rows).questions

    parts = (made("test"), made("validation"))
    material = Material(test=parts[0], validation=parts[1], test_hash=prompt.name, left_out={}, limited={})
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

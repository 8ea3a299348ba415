"""The page of a night: what did not pass is told as plainly as what did, and no text of a repository is markup."""

import json
from pathlib import Path
from typing import Any

from testing.adapters import graded
from tests.training.test_deployment import NOW

from clean_room_agent.db.raw.training import AdapterRow, EvaluationRow
from clean_room_agent.report.page.night import NightData, NightPage, night_html, night_page
from clean_room_agent.training.gate import judge_candidate

DATA = NightData(
    dataset=1,
    prompt="fill",
    version=1,
    planted=40,
    functions=30,
    rows=200,
    tokens=30_000,
    test_rows=100,
    left_out={"fault: no test fails": 7},
    not_read=(("me/<b>shop</b>", "no test passes"),),
)


def page_of(folder: Path, better: float, examples: int = 300) -> NightPage:
    told: dict[str, Any] = {"rows": 200, "tokens": 40_000, "steps": 25, "seconds": 90.0}
    result = told | {"first_loss": 1.5, "last_loss": 0.25}
    (folder / "cra.json").write_text(json.dumps({"result": result}))
    adapter = AdapterRow(
        id=3, dataset_id=1, stage_name="fill", base_model="m", model_tag="m+fill-v1", training_loss=0.25,
        trained_at=NOW, adapter_path=str(folder),
    )  # fmt: skip
    finding = judge_candidate(graded(1, examples=examples, better=better, worse=0.02), resamples=100)
    metrics = json.dumps({"finding": finding.as_object(), "left_out": {"its right answer cannot be read": 2}})
    evaluation = EvaluationRow(
        task_id="t", adapter_id=3, base_tag="m", example_count=examples, metrics=metrics,
        passed=finding.passed, timestamp=NOW,
    )  # fmt: skip
    return night_page(DATA, adapter, evaluation, lambda text: text, program="llama-server", there="")


def test_what_passed_is_shown_with_its_interval_and_what_to_do_next(tmp_path: Path) -> None:
    page = page_of(tmp_path, better=0.3)
    text = night_html(page)
    assert page.commands[1][0] == "cra adapters deploy 3"
    for words in (
        "is better than its base",
        "loss 1.500 -&gt; 0.250",
        "40,000 tokens",
        "cra adapters retire 3",
    ):
        assert words in text
    assert '<td class="r">7</td><td>fault: no test fails</td>' in text
    assert "its right answer cannot be read" in text
    assert "me/&lt;b&gt;shop&lt;/b&gt;" in text


def test_what_did_not_pass_is_not_to_be_deployed(tmp_path: Path) -> None:
    page = page_of(tmp_path, better=0.02)
    assert "did not pass the gate" in night_html(page)
    assert [command for command, _ in page.commands] == ["cra tonight --faults N"]

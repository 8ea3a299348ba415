"""`cra stats` over a seeded record."""

import json
from pathlib import Path

import pytest
from testing.repositories import make_repository
from testing.seeded_record import seed_record

from clean_room_agent.cli.main import run as cra

COUNTS = {"scope": 3, "implement": 2, "unknown": 1}


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = make_repository(tmp_path / "shop", {"src/a.py": "x = 1\n"})
    seed_record(top, COUNTS)
    return top


def test_json_holds_prompts_and_waterfall_and_headroom_only_when_asked(
    top: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cra(["stats", "--repo", str(top), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["waterfall"]["charged"]["scope"] == 3
    assert told["waterfall"]["charged_prompts"] == {"scope_judgment": 3, "implement": 2}
    assert "headroom" not in told
    scope = next(each for each in told["prompts"] if each["prompt"] == "scope_judgment")
    assert (scope["precision"], scope["recall"]) == (1.0, 0.7)
    assert cra(["stats", "--repo", str(top), "--json", "--counterfactual"]) == 0
    assert json.loads(capsys.readouterr().out)["headroom"]["scope"]["at_most"] == 3


def test_the_table_fits_80_columns(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cra(["stats", "--repo", str(top), "--counterfactual"]) == 0
    out = capsys.readouterr().out
    assert "11 tasks, 5 solved, 6 not" in out
    assert "charged to nothing: 1 (no accepted change is known)" in out
    assert all(len(line.rstrip()) <= 80 for line in out.splitlines())


def test_without_a_record_it_says_how_to_get_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top = make_repository(tmp_path / "shop", {"src/a.py": "x = 1\n"})
    assert cra(["stats", "--repo", str(top)]) == 2
    assert "cra solve" in capsys.readouterr().err
    assert not (top / ".clean_room").exists()

"""The machine that a training runs on."""

import sys
from pathlib import Path

import pytest

from clean_room_agent.app.train_adapter import held_version, machine_of
from clean_room_agent.training import train
from clean_room_agent.training.train import Machine


def machine(dtype: str | None, python: str | None = None) -> Machine:
    return machine_of(
        python=python,
        processes=2,
        accelerate_config=Path("fsdp.yaml"),
        dtype=dtype,
        cpu=True,
        micro_batch=3,
        checkpointing=True,
    )


def test_flags_become_the_machine() -> None:
    made = machine("float32", "/opt/python")
    assert (made.python, made.processes, made.micro_batch) == ("/opt/python", 2, 3)
    assert (made.dtype, made.device, made.gradient_checkpointing) == ("float32", "cpu", True)


@pytest.mark.parametrize(("native", "dtype"), [(True, "bfloat16"), (False, "float32")])
def test_without_a_flag_the_processor_decides(
    monkeypatch: pytest.MonkeyPatch, native: bool, dtype: str
) -> None:
    monkeypatch.setattr(train, "native_bfloat16", lambda: native)
    made = machine(None)
    assert (made.dtype, made.python) == (dtype, sys.executable)


PROMPT = "scope_judgment"


def test_two_trainings_at_a_time_have_two_numbers(tmp_path: Path) -> None:
    with (
        held_version(tmp_path, PROMPT, lambda: {1}) as first,
        held_version(tmp_path, PROMPT, lambda: {1}) as second,
    ):
        assert (first, second) == (2, 3)
    assert list(tmp_path.iterdir()) == []


def test_the_highest_number_counts_and_not_how_many_there_are(tmp_path: Path) -> None:
    with held_version(tmp_path, PROMPT, lambda: {2}) as version:
        assert version == 3


def test_a_training_that_was_broken_off_comes_first_unless_it_runs_again(tmp_path: Path) -> None:
    (tmp_path / f"{PROMPT}-v1.training").mkdir()
    (tmp_path / "task_analysis-v7.training").mkdir()
    with (
        held_version(tmp_path, PROMPT, lambda: {2}) as resumed,
        held_version(tmp_path, PROMPT, lambda: {2}) as other,
    ):
        assert (resumed, other) == (1, 3)


def test_an_adapter_that_came_while_its_number_was_waited_for_keeps_it(tmp_path: Path) -> None:
    answers = iter([set[int](), {1}, {1}])
    with held_version(tmp_path, PROMPT, lambda: next(answers)) as version:
        assert version == 2


def test_a_folder_that_is_there_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / f"{PROMPT}-v1").mkdir()
    with held_version(tmp_path, PROMPT, set[int]) as version:
        assert version == 2

"""The machine that a training runs on."""

import sys
from pathlib import Path

import pytest

from clean_room_agent.app.train_adapter import machine_of
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

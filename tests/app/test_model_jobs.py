"""The exit code of what the server has."""

import pytest

from clean_room_agent.app.model_jobs import Fault, Job, ModelsView

GONE = Fault(text="it is gone", remedy="start it", exit_code=3)


def view(fault: Fault | None, *faults: Fault | None) -> ModelsView:
    jobs = tuple(
        Job(name="coding", purpose="writes edits", tag="m", window=4096, fault=each) for each in faults
    )
    return ModelsView(
        base_url="http://127.0.0.1:1",
        provider="ollama",
        version="",
        fault=fault,
        shape="",
        probabilities="",
        jobs=jobs,
        offered=(),
    )


@pytest.mark.parametrize(
    ("fault", "faults", "code"), [(None, (None,), 0), (GONE, (None,), 3), (None, (None, GONE), 3)]
)
def test_a_server_or_a_job_with_a_fault_decides(
    fault: Fault | None, faults: tuple[Fault | None, ...], code: int
) -> None:
    assert view(fault, *faults).exit_code == code

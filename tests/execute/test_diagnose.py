import pytest
from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client, models_config
from testing.client.scripted_transport import ScriptedTransport

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.artifacts.plans import PlanStep, TargetFile
from clean_room_agent.execute.diagnose import DOCTOR, DoctorAnswer, diagnose
from clean_room_agent.llm.answers import ParseFault

ANSWER = (
    '{"analysis": "It sums no bills.", "category": "logic", "confidence": 80, "decision": "retry_with_fix", '
    '"hint": "Sum them."}'
)
STEP = PlanStep(id="s1", description="Add a total.", target_files=(TargetFile(path="a.py"),))


def asked(answer: str, lines: int) -> tuple[DoctorAnswer | None, str]:
    transport = ScriptedTransport([answer, answer])
    client = model_client(transport, MemorySink(), config=models_config())
    edit = PatchEdit(kind="edit", file_path="a.py", search="x = 1", replacement="y = 2\n" * lines + "z = 3")
    found = diagnose(
        client, STEP, task="Sum it.", attempts=("tests failed",), edits=(edit,), pass_id="t:p", tag=""
    )
    return found, transport.requests[0].prompt


def test_the_model_sees_the_step_the_attempts_and_the_newest_edits() -> None:
    found, prompt = asked(ANSWER, 1)
    assert isinstance(found, DoctorAnswer)
    assert "Add a total.\nFiles: modify a.py" in prompt
    assert "- tests failed" in prompt
    assert "z = 3" in prompt


def test_edits_that_do_not_fit_are_left_out() -> None:
    _, prompt = asked(ANSWER, 9_000)
    assert "z = 3" not in prompt
    assert "- tests failed" in prompt


def test_what_cannot_be_read_is_no_diagnosis() -> None:
    assert asked("no idea", 1)[0] is None


@pytest.mark.parametrize(
    ("confidence", "read"), [("80", 80), ("0.8", 80), ("1.0", 100)], ids=["percent", "share", "whole share"]
)
def test_a_diagnosis_says_how_sure_it_is_in_percent_or_as_a_share(confidence: str, read: int) -> None:
    text = DOCTOR.example.replace('"confidence": 80', f'"confidence": {confidence}')
    answer = DOCTOR.parse(text)
    assert not isinstance(answer, ParseFault)
    assert (answer.confidence, answer.decision) == (read, "retry_with_fix")


@pytest.mark.parametrize("confidence", ["-1e999", "1e999", "-0.5"])
def test_a_confidence_that_is_no_share_is_a_fault_of_the_answer(confidence: str) -> None:
    answer = DOCTOR.parse(DOCTOR.example.replace('"confidence": 80', f'"confidence": {confidence}'))
    assert isinstance(answer, ParseFault)
    assert answer.kind == "schema"

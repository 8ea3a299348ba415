from collections.abc import Mapping

import pytest
from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client
from testing.client.scripted_transport import ScriptedTransport
from testing.packages import package, shown_file

from clean_room_agent.artifacts.edits import PatchEdit, StepResult, Stub
from clean_room_agent.artifacts.plans import FileRole, PlanStep, TargetFile
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.implement import Implemented, StepInstruction
from clean_room_agent.execute.scaffold import (
    WRITTEN_APART,
    ask_scaffold,
    created_sources,
    declaration_faults,
    scaffolded_package,
    stubs_of,
    with_stubs,
    write_bodies,
)
from clean_room_agent.llm.answers import ParseFault

MONEY = "def split(cents, people):\n    return [cents // people] * people\n"
STUB = "    raise NotImplementedError\n"
DECLARED = f"def add(bill):\n{STUB}\n\ndef sub(bill):\n{STUB}"
ADD, SUB = Stub(path="bills.py", symbol="add"), Stub(path="bills.py", symbol="sub")
TOO_LARGE = WindowExceeded("too large")


def step(*targets: tuple[str, FileRole], symbols: tuple[str, ...] = ()) -> PlanStep:
    files = tuple(TargetFile(path=path, role=role) for path, role in targets)
    return PlanStep(id="s1", description="Add bills.", target_files=files, target_symbols=symbols)


CREATES = step(("bills.py", "create"), symbols=("add",))
INSTRUCTION = StepInstruction(task="Add bills.", part="", step=CREATES)


@pytest.mark.parametrize("path", ["till/bills.py", "src/bills.ts", "src/Bill.jsx"])
def test_a_file_of_code_that_is_created_may_be_declared_first(path: str) -> None:
    assert created_sources(step((path, "create"), ("till/money.py", "modify"))) == (path,)


@pytest.mark.parametrize(
    "path",
    ["notes.md", "till/__init__.py", "tests/test_bills.py", "till/bills.pyi", "src/bills.d.ts", "a.test.ts"],
)
def test_a_file_without_bodies_and_a_test_are_written_at_once(path: str) -> None:
    assert created_sources(step((path, "create"))) == ()


def test_where_nobody_knows_which_file_is_meant_nothing_is_declared() -> None:
    assert created_sources(CREATES.model_copy(update={"any_of_files": True})) == ()


@pytest.mark.parametrize(
    ("texts", "fault"),
    [
        ({"bills.py": DECLARED}, ""),
        ({}, "bills.py is not created"),
        ({"bills.py": "RATE = 3\n"}, "it declares no function"),
        ({"bills.py": "def add(bill):\n    return 1\n"}, "the body of add is no stub"),
        ({"bills.py": "def add(bill:\n"}, "bills.py does not parse"),
    ],
)
def test_what_is_wrong_with_a_scaffold_is_said(texts: dict[str, str], fault: str) -> None:
    faults = declaration_faults(CREATES, texts)
    assert any(fault in one for one in faults) if fault else faults == ()


def test_the_question_names_what_is_to_be_declared_and_is_asked_once() -> None:
    answers = [f'<create file="bills.py">\n{DECLARED}</create>', "I cannot."]
    transport = ScriptedTransport(answers)
    for edits in (1, 0):
        done = ask_scaffold(
            model_client(transport, MemorySink(), window=4096),
            package(shown_file("till/money.py", MONEY), task="Add bills."),
            INSTRUCTION,
            pass_id="t:impl:p1:s1",
            answer_tokens=512,
        )
        assert len(done.step.edits) == edits
    assert "Files: create bills.py\nTo declare: add\n" in transport.requests[0].prompt
    assert len(transport.requests) == 2


def test_what_is_declared_is_shown_whole_and_to_be_modified() -> None:
    shown = scaffolded_package(package(shown_file("a.py", MONEY)), {"bills.py": DECLARED}, len)
    item = shown.items[-1]
    assert (item.path, item.start_line, item.end_line, item.text) == ("bills.py", 1, 6, DECLARED)
    assert stubs_of({"bills.py": DECLARED}) == (ADD, SUB)
    both = step(("bills.py", "create"), ("notes.md", "create"), ("a.py", "modify"))
    asked = with_stubs(StepInstruction(task="t", part="", step=both), (ADD,))
    assert [target.role for target in asked.step.target_files] == ["modify", "create", "modify"]
    assert asked.stubs == ("bills.py::add",)


def edit(symbol: str, text: str = "x") -> PatchEdit:
    return PatchEdit(kind="symbol", file_path="bills.py", symbol=symbol, replacement=text)


def answer(*edits: PatchEdit, bad: str = "") -> Implemented:
    fault = ParseFault(kind=bad, fault=bad) if bad else None  # type: ignore[arg-type]
    return Implemented(
        step=StepResult(success=not bad, edits=edits, error_info=bad, raw_response="said"),
        bad=fault,
        dropped=(),
        call_id=1,
        prompt_tokens=10,
        completion_tokens=5,
        latency_ms=3,
        attempts=1,
    )


def write(
    answers: Mapping[str, Implemented | WindowExceeded],
    made: PlanStep = CREATES,
    stubs: tuple[Stub, ...] = (ADD, SUB),
) -> tuple[Implemented, list[StepInstruction]]:
    asked: list[StepInstruction] = []

    def ask(instruction: StepInstruction, item: str) -> Implemented:
        asked.append(instruction)
        found = answers[item]
        if isinstance(found, WindowExceeded):
            raise found
        return found

    return write_bodies(ask, stubs, StepInstruction(task="t", part="", step=made)), asked


def test_one_answer_writes_all_stubs() -> None:
    whole = answer(edit("add"), edit("sub"))
    done, asked = write({"": whole})
    assert done == whole
    assert [(one.stubs, one.apart) for one in asked] == [((ADD.name, SUB.name), False)]


@pytest.mark.parametrize("first", [answer(bad="truncated"), TOO_LARGE])
def test_what_is_cut_off_or_does_not_fit_is_asked_for_stub_by_stub(
    first: Implemented | WindowExceeded,
) -> None:
    greedy = answer(
        edit("add"), edit("sub", "mine"), PatchEdit(kind="create", file_path="bills.py", replacement="x")
    )
    done, asked = write({"": first, ADD.name: greedy, SUB.name: answer(edit("sub"))})
    assert [(one.stubs, one.apart) for one in asked[1:]] == [((ADD.name,), True), ((SUB.name,), True)]
    assert done.step.edits == (edit("add"), edit("sub"))  # none writes another's, or the whole file
    assert not done.truncated


def test_a_stub_that_cannot_be_written_ends_it_and_one_for_which_nothing_is_written_stays() -> None:
    done, asked = write({"": answer(bad="truncated"), ADD.name: answer(bad="truncated")})
    assert (done.truncated, done.step.edits, len(asked)) == (True, (), 2)
    done, asked = write({"": TOO_LARGE, ADD.name: answer(bad="empty"), SUB.name: answer(edit("sub"))})
    assert (done.step.edits, done.bad, len(asked)) == ((edit("sub"),), None, 3)
    nothing, _ = write({"": TOO_LARGE, ADD.name: answer(bad="empty"), SUB.name: answer(bad="empty")})
    assert (nothing.step.edits, nothing.bad is not None) == ((), True)


def test_a_step_that_changes_more_than_it_declares_is_asked_for_the_rest() -> None:
    other = PatchEdit(kind="edit", file_path="a.py", search="x", replacement="y")
    parts: dict[str, Implemented | WindowExceeded] = {
        "": TOO_LARGE,
        ADD.name: answer(edit("add")),
        SUB.name: answer(edit("sub")),
    }
    both = step(("bills.py", "create"), ("a.py", "modify"))
    done, asked = write({**parts, "rest": answer(other, edit("sub", "again"))}, both)
    assert (asked[-1].stubs, asked[-1].hint) == ((), f"{WRITTEN_APART} {ADD.name}, {SUB.name}.")
    assert done.step.edits == (edit("add"), edit("sub"), other)
    nothing, _ = write({**parts, "rest": answer(bad="empty")}, both)
    assert (nothing.step.edits, nothing.bad) == ((edit("add"), edit("sub")), None)


def test_a_single_stub_that_does_not_fit_is_not_asked_for_again() -> None:
    with pytest.raises(WindowExceeded):
        write({"": TOO_LARGE}, stubs=(ADD,))

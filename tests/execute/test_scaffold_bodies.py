from collections.abc import Callable

import pytest
from testing.packages import package, shown_file

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.edits import PatchEdit, StepResult, Stub
from clean_room_agent.artifacts.plans import PlanStep, TargetFile
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.implement import Implemented, StepInstruction
from clean_room_agent.execute.scaffold_bodies import WRITTEN_APART, Declared, write_bodies
from clean_room_agent.llm.answers import BadAnswer

STUB = "    raise NotImplementedError\n"
BILLS = f"def add(a):\n{STUB}\n\ndef sub(a):\n{STUB}"
CREATES = PlanStep(id="s1", description="Add.", target_files=(TargetFile(path="bills.py", role="create"),))
BOTH = CREATES.model_copy(update={"target_files": (*CREATES.target_files, TargetFile(path="a.py"))})
DECLARED = Declared(
    package=package(shown_file("bills.py", BILLS)),
    texts={"bills.py": BILLS},
    stubs=(Stub(path="bills.py", symbol="add"), Stub(path="bills.py", symbol="sub")),
)
TOO_LARGE = WindowExceeded("too large")


def edit(symbol: str, text: str = "x") -> PatchEdit:
    return PatchEdit(kind="symbol", file_path="bills.py", symbol=symbol, replacement=text)


def answer(*edits: PatchEdit, bad: str = "") -> Implemented:
    fault = BadAnswer(kind=bad, fault=bad) if bad else None  # type: ignore[arg-type]
    return Implemented(
        step=StepResult(success=not bad, edits=edits, error_info=bad, raw_response="said"),
        truncated=bad == "truncated",
        bad=fault,
        dropped=(),
        call_id=1,
        prompt_tokens=10,
        completion_tokens=5,
        latency_ms=3,
        attempts=1,
    )


def asking(
    answers: dict[str, Implemented | WindowExceeded], asked: list[tuple[ContextPackage, StepInstruction, str]]
) -> Callable[[ContextPackage, StepInstruction, str], Implemented]:
    def ask(shown: ContextPackage, told: StepInstruction, item: str) -> Implemented:
        asked.append((shown, told, item))
        said = answers[item]
        if isinstance(said, WindowExceeded):
            raise said
        return said

    return ask


def write(
    answers: dict[str, Implemented | WindowExceeded], step: PlanStep = CREATES
) -> tuple[Implemented, list[tuple[ContextPackage, StepInstruction, str]]]:
    asked: list[tuple[ContextPackage, StepInstruction, str]] = []
    instruction = StepInstruction(task="t", part="", step=step)
    return write_bodies(asking(answers, asked), DECLARED, instruction, len), asked


ADD, SUB = "bills.py::add", "bills.py::sub"


def test_one_answer_writes_all_stubs() -> None:
    whole = answer(edit("add"), edit("sub"))
    done, asked = write({"": whole})
    assert done == whole
    assert [(told.stubs, told.apart) for _, told, _ in asked] == [((ADD, SUB), False)]


@pytest.mark.parametrize("first", [answer(bad="truncated"), TOO_LARGE])
def test_what_is_cut_off_or_does_not_fit_is_asked_for_stub_by_stub(
    first: Implemented | WindowExceeded,
) -> None:
    done, asked = write({"": first, ADD: answer(edit("add")), SUB: answer(edit("sub"))})
    assert [told.stubs for _, told, _ in asked[1:]] == [(ADD,), (SUB,)]
    assert all(told.apart for _, told, _ in asked[1:])
    assert done.step.edits == (edit("add"), edit("sub"))
    assert (done.prompt_tokens, done.completion_tokens, done.attempts, done.truncated) == (20, 10, 2, False)


def test_an_answer_for_one_stub_writes_no_other_and_no_whole_file() -> None:
    greedy = answer(
        edit("add"), edit("sub", "mine"), PatchEdit(kind="create", file_path="bills.py", replacement="x")
    )
    done, _ = write({"": TOO_LARGE, ADD: greedy, SUB: answer(edit("sub"))})
    assert done.step.edits == (edit("add"), edit("sub"))


def test_a_stub_that_cannot_be_written_ends_it() -> None:
    done, asked = write({"": answer(bad="truncated"), ADD: answer(bad="truncated")})
    assert (done.truncated, done.step.edits, len(asked)) == (True, (), 2)


def test_a_stub_for_which_nothing_is_written_stays_one() -> None:
    done, asked = write({"": TOO_LARGE, ADD: answer(bad="empty"), SUB: answer(edit("sub"))})
    assert (done.step.edits, done.bad, len(asked)) == ((edit("sub"),), None, 3)
    nothing, _ = write({"": TOO_LARGE, ADD: answer(bad="empty"), SUB: answer(bad="empty")})
    assert (nothing.step.edits, nothing.bad is not None) == ((), True)


def test_a_step_that_changes_more_than_it_declares_is_asked_for_the_rest() -> None:
    other = PatchEdit(kind="edit", file_path="a.py", search="x", replacement="y")
    parts: dict[str, Implemented | WindowExceeded] = {
        "": TOO_LARGE,
        ADD: answer(edit("add")),
        SUB: answer(edit("sub")),
    }
    done, asked = write({**parts, "rest": answer(other, edit("sub", "again"))}, BOTH)
    told = asked[-1][1]
    assert (told.stubs, told.apart, told.hint) == ((), False, f"{WRITTEN_APART} {ADD}, {SUB}.")
    assert done.step.edits == (edit("add"), edit("sub"), other)
    nothing, _ = write({**parts, "rest": answer(bad="empty")}, BOTH)
    assert nothing.step.edits == (edit("add"), edit("sub"))
    assert nothing.bad is None


def test_where_the_other_stubs_do_not_fit_either_one_is_shown_alone() -> None:
    sizes: list[int] = []

    def ask(shown: ContextPackage, _told: StepInstruction, _item: str) -> Implemented:
        sizes.append(len(shown.items[-1].text))
        if shown == DECLARED.package:
            raise TOO_LARGE
        return answer(edit("add"))

    write_bodies(ask, DECLARED, StepInstruction(task="t", part="", step=CREATES), len)
    assert min(sizes) < len(BILLS) // 2 + 2


def test_a_single_stub_that_does_not_fit_is_not_asked_for_again() -> None:
    lone = Declared(package=DECLARED.package, texts=DECLARED.texts, stubs=DECLARED.stubs[:1])
    asked: list[tuple[ContextPackage, StepInstruction, str]] = []
    with pytest.raises(WindowExceeded):
        write_bodies(
            asking({"": TOO_LARGE}, asked), lone, StepInstruction(task="t", part="", step=CREATES), len
        )
    assert len(asked) == 1

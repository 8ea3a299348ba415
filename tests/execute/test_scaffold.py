import pytest
from inline_snapshot import snapshot
from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client
from testing.client.scripted_transport import ScriptedTransport
from testing.packages import package, shown_file
from tests.execute.step_context import SCAFFOLD_INPUTS

from clean_room_agent.artifacts.edits import PatchEdit, Stub
from clean_room_agent.artifacts.plans import FileRole, PlanStep, TargetFile
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.implement import Implemented, StepInstruction
from clean_room_agent.execute.scaffold import (
    SCAFFOLD,
    RefusedScaffold,
    after_scaffold,
    ask_scaffold,
    faults_of,
    new_symbols,
    stubs_of,
    unwritten,
    why_scaffold,
    with_stubs,
)

MONEY = "def split(cents, people):\n    return [cents // people] * people\n"
DECLARED = "def add(bill):\n    raise NotImplementedError\n"


def step(
    *targets: tuple[str, FileRole], symbols: tuple[str, ...] = (), any_of_files: bool = False
) -> PlanStep:
    files = tuple(TargetFile(path=path, role=role) for path, role in targets)
    return PlanStep(
        id="s1",
        description="Add bills.",
        target_files=files,
        target_symbols=symbols,
        any_of_files=any_of_files,
    )


CREATES = step(("till/bills.py", "create"))


def why(one: PlanStep, texts: dict[str, str] | None = None, least: int = 3) -> str:
    return why_scaffold(one, new_symbols(one, texts or {}), least=least)


@pytest.mark.parametrize("path", ["till/bills.py", "src/bills.ts", "src/Bill.jsx"])
def test_a_step_that_creates_a_file_of_code_begins_with_a_scaffold(path: str) -> None:
    assert why(step((path, "create"))) == f"it creates {path}"


@pytest.mark.parametrize(
    "path",
    [
        "notes.md",
        "till/__init__.py",
        "tests/test_bills.py",
        "till/bills.pyi",
        "src/bills.d.ts",
        "src/a.test.ts",
    ],
)
def test_a_file_without_bodies_and_a_test_are_written_at_once(path: str) -> None:
    assert why(step((path, "create"))) == ""


def test_a_step_that_names_several_new_symbols_begins_with_a_scaffold() -> None:
    one = step(("a.py", "modify"), symbols=("split", "Bill", "Bill.add", "Bill.due"))
    assert new_symbols(one, {"a.py": MONEY}) == ("Bill", "Bill.add", "Bill.due")
    assert why(one, {"a.py": MONEY}) == "it names 3 new symbols"
    assert why(one, {"a.py": MONEY}, least=4) == ""


def test_symbols_that_exist_are_not_new_whatever_their_class_is_called() -> None:
    one = step(("a.py", "modify"), symbols=("add", "Bill.add", "Bill.rate", "LIMIT", "sub"))
    text = "LIMIT = 3\n\n\nclass Bill:\n    rate: int\n\n    def add(self):\n        return 1\n"
    assert new_symbols(one, {"a.py": text}) == ("sub",)


def test_a_step_of_which_nobody_knows_the_files_and_one_that_deletes_begin_with_none() -> None:
    assert why(step(("till/bills.py", "create"), any_of_files=True)) == ""
    assert why(step(("a.py", "delete"), symbols=("a", "b", "c"))) == ""
    assert why(step(("notes.md", "modify"), symbols=("a", "b", "c"))) == ""


def test_declarations_of_all_that_is_asked_for_have_no_fault() -> None:
    one = step(("till/bills.py", "create"), ("a.py", "modify"), symbols=("add", "sub"))
    after = {"till/bills.py": DECLARED, "a.py": f"{MONEY}\n\ndef sub():\n    raise NotImplementedError\n"}
    before = {"a.py": MONEY}
    assert faults_of(one, ("add", "sub"), before, dict(after)) == ()
    assert stubs_of(before, after) == (
        Stub(path="a.py", symbol="sub"),
        Stub(path="till/bills.py", symbol="add"),
    )


@pytest.mark.parametrize(
    ("after", "fault"),
    [
        ({}, "till/bills.py is not created"),
        ({"till/bills.py": DECLARED, "a.py": None}, "a.py must not be deleted"),
        ({"till/bills.py": DECLARED, "a.md": "words"}, "a.md holds no declarations"),
        ({"till/bills.py": "RATE = 3\n"}, "it declares no function"),
        ({"till/bills.py": "def add(bill):\n    return 1\n"}, "the body of add is no stub"),
        ({"till/bills.py": "def add(bill:\n"}, "till/bills.py does not parse"),
    ],
)
def test_what_is_wrong_with_a_scaffold_is_said(after: dict[str, str | None], fault: str) -> None:
    assert any(fault in said for said in faults_of(CREATES, (), {}, after))


def test_a_symbol_that_is_not_declared_is_a_fault() -> None:
    assert faults_of(CREATES, ("add", "due"), {}, {"till/bills.py": DECLARED}) == ("due is not declared",)


def test_a_stub_that_was_there_is_none_of_the_scaffold() -> None:
    assert stubs_of({"a.py": DECLARED}, {"a.py": f"{DECLARED}\n\nX = 1\n"}) == ()


def test_what_is_left_unwritten_is_told_by_its_name() -> None:
    stubs = (
        Stub(path="a.py", symbol="add"),
        Stub(path="a.py", symbol="sub"),
        Stub(path="b.py", symbol="add"),
    )
    texts = {"a.py": f"{DECLARED}\n\ndef sub():\n    return 1\n", "b.py": None}
    assert [stub.name for stub in unwritten(stubs, texts)] == ["a.py::add"]


def test_a_created_file_is_to_be_modified_once_it_is_declared() -> None:
    one = step(("till/bills.py", "create"), ("notes.md", "create"), ("a.py", "modify"))
    roles = [target.role for target in after_scaffold(one, {"till/bills.py"}).target_files]
    assert roles == ["modify", "create", "modify"]
    told = with_stubs(
        StepInstruction(task="t", part="", step=one), (Stub(path="till/bills.py", symbol="add"),)
    )
    assert told.stubs == ("till/bills.py::add",)
    assert told.step.target_files[0].role == "modify"


CREATE = f'<create file="till/bills.py">\n{DECLARED}</create>'
SHOWN = package(shown_file("till/money.py", MONEY), task="Add bills.")


def ask(
    *answers: str, refused: RefusedScaffold | None = None, window: int = 4096
) -> tuple[Implemented, ScriptedTransport]:
    transport = ScriptedTransport(list(answers))
    models = model_client(transport, MemorySink(), window=window)
    instruction = StepInstruction(task="Add bills.", part="", step=CREATES)
    done = ask_scaffold(
        models,
        SHOWN,
        instruction,
        new=("add",),
        refused=refused or RefusedScaffold(),
        pass_id="t:impl:p1:s1",
        answer_tokens=512,
    )
    return done, transport


def test_the_question_names_what_is_to_be_declared() -> None:
    done, transport = ask(CREATE)
    assert [(edit.kind, edit.replacement) for edit in done.step.edits] == [("create", DECLARED)]
    prompt = transport.requests[0].prompt
    assert "Files: create till/bills.py\nTo declare: add\n" in prompt
    assert prompt.endswith("Write the declarations for this step.")


def test_an_answer_that_cannot_be_read_is_not_repaired_here() -> None:
    done, transport = ask("I cannot.")
    assert (done.step.edits, len(transport.requests)) == ((), 1)


def test_a_refused_answer_is_shown_with_its_faults() -> None:
    edit = PatchEdit(kind="create", file_path="till/bills.py", replacement="def add(bill):\n    return 1\n")
    _, transport = ask(CREATE, refused=RefusedScaffold(edits=(edit,), faults=("the body of add is no stub",)))
    prompt = transport.requests[0].prompt
    assert "## An earlier answer was refused\n<create file=" in prompt
    assert "Its faults:\n- the body of add is no stub\n" in prompt


def test_a_question_that_does_not_fit_is_not_asked() -> None:
    with pytest.raises(WindowExceeded):
        ask(CREATE, window=1024)


def test_the_scaffold_prompt_reads_so() -> None:
    assert SCAFFOLD.render(SCAFFOLD_INPUTS) == snapshot('''\
# Context

## Task
Add mul().

## What the tests show now
Failing test: tests/test_calc.py::test_mul
  error: ImportError: cannot import name 'mul'

## Tests
===== test: tests/test_calc.py :: test_add (lines 1-2)
def test_add():
    assert add(1, 2) == 3
===== end

## What the code to change uses
===== reference: src/base.py :: check (lines 1-1)
def check(a): ...
===== end

## Where it is used
src/app.py:7: return add(x, y)

## Tests that pass now and must still pass
tests/test_calc.py:9: test_sub

## Code to change
===== file: src/calc.py (lines 1-2)
def add(a, b):
    return a - b
===== end

# Instructions: Declare what one step adds

You get one step of the task above. The code that it is about stands above, too. Write the declarations that the step adds: imports, signatures and docstrings. The bodies are written later.

Each edit is one block. Take the form that fits:
- <create>: a new file, if the step says so.
- <insert>: add a new function, method or class to a file. after= or before= names the one beside it; in= names the class to add it to.
- <edit> with <search> and <replacement>: change some lines, such as the imports.

Example answer with two blocks (these files are made up):
<create file="quokka_zoo/food.py">
"""What the quokkas eat."""

from quokka_zoo.pen import QuokkaPen

MEALS_A_DAY = 2


class QuokkaMenu:
    """The meals of one pen."""

    def __init__(self, pen: QuokkaPen) -> None:
        """A menu without meals."""
        raise NotImplementedError

    def add(self, meal: str) -> int:
        """Adds a meal; how many there are then."""
        raise NotImplementedError
</create>
<insert file="quokka_zoo/pen.py" after="QuokkaPen.open">
    def close(self) -> None:
        """Shuts the gate."""
        raise NotImplementedError
</insert>

Rules:
- Declare each function, method and class that the step adds, with its parameters and a docstring of one line.
- The body of each function is one statement: raise NotImplementedError. In JavaScript and TypeScript: throw new Error("not implemented");
- Write no other code. Constants, and fields of a class, are declarations.
- Import what the bodies are going to need, from modules that exist.
- Use the names and parameters that the tests and the callers use.
- Do not change or remove the functions that are there.
- search: copy whole lines from what stands under "Code to change", character for character.
- Write edit blocks and nothing else: no explanation, no other form.

## The step to do now
Add mul() beside add().
Files: modify src/calc.py
To declare: mul

## An earlier answer was refused
Its faults:
- src/calc.py, line 5: the body of mul is no stub

Write all declarations again without these faults. The bodies come after this step.\
''')

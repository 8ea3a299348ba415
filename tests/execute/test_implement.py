from typing import Any

import pytest
from msgspec.structs import replace
from testing.client.memory_sink import MemorySink
from testing.client.model_client import model_client, models_config
from testing.client.scripted_transport import Scripted, ScriptedTransport
from testing.packages import package, shown_file
from testing.servers.ollama_script import Answer
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.app.model_server import connect
from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.artifacts.plans import PlanStep, TargetFile
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.execute.edits.apply import apply_edits
from clean_room_agent.execute.edits.parse import parse_edits
from clean_room_agent.execute.edits.rules import EditRules
from clean_room_agent.execute.implement import (
    CREATED_TOKENS,
    IMPLEMENT_EXAMPLE,
    SYMBOL_TOKENS,
    AttemptSummary,
    Implemented,
    StepInstruction,
    answer_fingerprint,
    implement,
)
from clean_room_agent.llm.transport import RawAnswer

CONTEXT = package(shown_file("a.py", "x = 1\n"), task="Make x two.")
STEP = PlanStep(id="s1", description="Set x to 2.", target_files=(TargetFile(path="a.py"),))
INSTRUCTION = StepInstruction(task="Make x two.", part="Change x.", step=STEP)
ANSWER = '<edit file="a.py">\n<search>\nx = 1\n</search>\n<replacement>\nx = 2\n</replacement>\n</edit>'


def ask(
    *answers: Scripted, instruction: StepInstruction = INSTRUCTION, window: int = 4096
) -> tuple[Implemented, ScriptedTransport]:
    transport = ScriptedTransport(list(answers))
    models = model_client(transport, MemorySink(), window=window)
    return implement(models, CONTEXT, instruction, pass_id="t:impl:p1:s1"), transport


def test_an_answer_becomes_edits() -> None:
    done, transport = ask(ANSWER)
    assert [(edit.search, edit.replacement) for edit in done.step.edits] == [("x = 1", "x = 2")]
    assert (done.step.raw_response, done.truncated, done.bad, done.call_id) == (ANSWER, False, None, 1)
    request = transport.requests[0]
    assert request.schema is None
    assert "Files: modify a.py" in request.prompt
    assert request.prompt.endswith("Write the edits for this step.")


def test_an_answer_without_edits_is_repaired_once() -> None:
    done, transport = ask("I would set x to 2.", ANSWER)
    assert done.bad is None
    assert "the answer holds no <edit>, <insert>, <create> or <delete> block" in transport.requests[1].prompt


@pytest.mark.parametrize(
    ("answers", "kind", "truncated"),
    [
        (("No.", "No."), "empty", False),
        (("", ""), "empty", False),
        ((ANSWER.replace(' file="a.py"', ""),) * 2, "format", False),
        ((ANSWER.removesuffix("</edit>"),), "truncated", True),
        ((RawAnswer(request_body="{}", text=ANSWER, finish="length"),), "truncated", True),
    ],
)
def test_an_answer_that_is_no_edit_says_why(
    answers: tuple[Scripted, ...], kind: str, truncated: bool
) -> None:
    done, _ = ask(*answers)
    assert done.step.edits == ()
    assert done.bad is not None
    assert (done.bad.kind, done.truncated) == (kind, truncated)
    assert done.step.error_info == done.bad.fault


def test_an_answer_is_held_to_what_the_step_and_its_context_name() -> None:
    shown = package(
        shown_file("a.py", "def f():\n    pass\n\n\nclass A:\n    def b(self):\n        pass\n"),
        replace(shown_file("c.py", "def d():\n    pass\n"), symbol="C.d"),
        task="Make x two.",
    )
    targets = (TargetFile(path="a.py"), TargetFile(path="new.py", role="create"), TargetFile(path="e.py"))
    step = STEP.model_copy(update={"target_files": targets})
    transport = ScriptedTransport([ANSWER])
    models = model_client(transport, MemorySink(), config=models_config(provider="openai", grammar=True))
    implement(models, shown, replace(INSTRUCTION, step=step), pass_id="t:impl:p1:s1")
    rules = dict(line.split(" ::= ", 1) for line in transport.requests[0].grammar.splitlines())
    assert rules["edited"] == '"a.py" | "e.py" | "c.py"'
    assert rules["created"] == '"new.py"'
    assert "deleted" not in rules
    assert '("f" | "A" | "A.b")' in rules["rewritten"]
    assert '("C.d" | "C")' in rules["rewritten"]


def test_the_newest_attempt_stands_whole_after_a_line_for_each_older_one() -> None:
    failures = (
        AttemptSummary(
            outcome="refused",
            why="not planned",
            edits=(PatchEdit(kind="delete", file_path="a.py"),),
            feedback="Delete is not planned.",
        ),
        AttemptSummary(
            outcome="tests_failed",
            why="newly failing: test_x",
            edits=(PatchEdit(kind="delete", file_path="b.py"),),
            feedback="test_x failed.",
        ),
    )
    _, transport = ask(
        ANSWER, instruction=StepInstruction(task="T", part="", step=STEP, failures=failures, hint="Try x.")
    )
    prompt = transport.requests[0].prompt
    marks = [
        "file: a.py",
        "- attempt 1: refused: not planned\n",
        "Attempt 2 failed",
        '<delete file="b.py"/>',
        "Result: tests_failed. test_x failed.",
        "Try x.",
        "Set x to 2.",
    ]
    assert [prompt.index(mark) for mark in marks] == sorted(prompt.index(mark) for mark in marks)
    assert '<delete file="a.py"/>' not in prompt


def test_a_retry_changes_nothing_of_the_prompt_above_its_attempts() -> None:
    failed = AttemptSummary(outcome="refused", why="not planned", feedback="Delete is not planned.")
    first, second = (
        ask(ANSWER, instruction=StepInstruction(task="T", part="", step=STEP, evidence="E", failures=tried))[
            1
        ]
        .requests[0]
        .prompt
        for tried in ((), (failed,))
    )
    step = first.index("\n## The step to do now")
    assert second.startswith(first[:step])
    assert second[step:].startswith("\n## Attempt 1 failed")
    assert second.endswith(
        first[step:].replace(
            "Write the edits for this step.", "Write edits for this step that avoid what failed before."
        )
    )
    assert "## What the tests show now\nE\n\n## Code" in first


def test_what_does_not_fit_is_named() -> None:
    failures = tuple(
        AttemptSummary(outcome="refused", why="word " * 1000, feedback="word " * 3300) for _ in range(4)
    )
    done, _ = ask(ANSWER, instruction=StepInstruction(task="T", part="", step=STEP, failures=failures))
    assert done.dropped == ("attempt 1", "attempt 2", "attempt 3", "attempt 4")


def test_a_window_that_the_code_alone_exceeds_is_an_error() -> None:
    with pytest.raises(WindowExceeded, match=r"a\.py"):
        ask(ANSWER, window=600)


CREATE = TargetFile(path="new.py", role="create")
CODE = "def parse(source):\n" + "".join(f"    value_{n} = source[{n}]\n" for n in range(35))


@pytest.mark.parametrize(
    ("step", "more", "beyond"),
    [
        ({}, {}, 0),
        ({"target_symbols": ("parse",)}, {}, 0),
        ({"target_symbols": ("parse", "Parser.rest")}, {}, SYMBOL_TOKENS),
        ({}, {"unshown": ("a.py::large",)}, SYMBOL_TOKENS),
        ({"target_files": (TargetFile(path="a.py"), CREATE)}, {}, CREATED_TOKENS),
    ],
)
def test_an_answer_is_bounded_by_the_code_that_it_may_edit(
    step: dict[str, object], more: dict[str, Any], beyond: int
) -> None:
    instruction = replace(INSTRUCTION, step=STEP.model_copy(update=step), **more)
    shown = package(shown_file("a.py", CODE), shown_file("b.py", CODE * 9, detail="supporting"))
    transport = ScriptedTransport([ANSWER])
    models = model_client(transport, MemorySink(), window=32768)
    implement(models, shown, instruction, pass_id="t:impl:p1:s1")
    expected = 2 * models.count(CODE, "coding") + 400 + beyond
    assert transport.requests[0].max_tokens == expected < 8192


def test_the_bound_never_exceeds_what_is_free_and_is_three_times_as_much_after_a_cut() -> None:
    transport = ScriptedTransport([ANSWER] * 3)
    shown = package(shown_file("a.py", CODE))
    models = model_client(transport, MemorySink(), window=32768)
    for most in (None, 10_000, 700):
        implement(models, shown, INSTRUCTION, pass_id="t:impl:p1:s1", max_answer_tokens=most)
    bound = 2 * models.count(CODE, "coding") + 400
    assert [request.max_tokens for request in transport.requests] == [bound, 3 * bound, 700]
    _, small = ask(
        ANSWER, instruction=replace(INSTRUCTION, step=STEP.model_copy(update={"target_files": (CREATE,)}))
    )
    assert small.requests[0].max_tokens < 4096


def test_the_configuration_may_set_another_bound() -> None:
    transport = ScriptedTransport([ANSWER])
    config = models_config(max_tokens={"coding": 3000})
    models = model_client(transport, MemorySink(), config=config, window=32768)
    implement(models, CONTEXT, INSTRUCTION, pass_id="t:impl:p1:s1")
    assert transport.requests[0].max_tokens == 3000


@pytest.mark.parametrize(
    "cut",
    [
        RawAnswer(request_body="{}", finish="length", thinking="First, x."),
        RawAnswer(request_body="{}", finish="length", text="<think>First, x."),
    ],
)
def test_a_model_that_thinks_first_gets_the_room_for_it(cut: RawAnswer) -> None:
    transport = ScriptedTransport([cut, ANSWER])
    sink = MemorySink()
    models = model_client(transport, sink, window=32768)
    done = implement(models, CONTEXT, INSTRUCTION, pass_id="t:impl:p1:s1")
    assert done.bad is None
    assert done.call_id == 2
    assert [reading[1] for reading in sink.readings] == ["unreadable", "parsed"]
    assert transport.requests[0].max_tokens < 500
    assert transport.requests[1].max_tokens == 8192
    assert transport.requests[0].prompt == transport.requests[1].prompt


TESTS = "".join(
    f"def test_{n}():\n    assert parse('{n}, {n * n}') == ({n}, {n * n})\n\n\n" for n in range(200)
)


def test_an_answer_that_copies_the_context_is_closed_and_counts_as_endless() -> None:
    tests = replace(shown_file("test_a.py", TESTS, detail="supporting"), section="tests")
    shown = package(shown_file("a.py", CODE), tests)
    sink = MemorySink()
    targets = (TargetFile(path="a.py"), CREATE)
    instruction = replace(INSTRUCTION, step=STEP.model_copy(update={"target_files": targets}))
    with OllamaServer(lambda _: Answer(text=f'<create file="new.py">\n{TESTS}</create>')) as server:
        config = models_config(server.base_url)
        models = model_client(connect(config), sink, config=config, window=32768)
        done = implement(models, shown, instruction, pass_id="t:impl:p1:s1")
    assert done.endless
    assert done.bad is not None
    assert done.bad.kind == "repeated"
    assert done.bad.fault.startswith(
        "the answer repeated itself, or what it was shown, and was stopped after 3"
    )
    for call in sink.asked():
        assert call.ending.finish == "repeated"
        assert 3000 <= len(call.answer.response) < 4000


def test_answers_with_the_same_edits_have_the_same_fingerprint() -> None:
    assert answer_fingerprint(ANSWER) == answer_fingerprint(f"Sure:\n\n```\n{ANSWER}\n```\n")
    assert answer_fingerprint(ANSWER) != answer_fingerprint(ANSWER.replace("x = 2", "x = 3"))
    assert answer_fingerprint("no  edits\nhere") == answer_fingerprint("no edits here")
    assert answer_fingerprint(" \n") == ""


def test_an_answer_that_repeats_the_example_is_refused() -> None:
    done, _ = ask(IMPLEMENT_EXAMPLE, IMPLEMENT_EXAMPLE)
    assert done.bad is not None
    assert done.bad.kind == "copied"
    read = parse_edits(IMPLEMENT_EXAMPLE)
    assert isinstance(read, tuple)
    for edits in (read, *((edit,) for edit in read)):
        applied = apply_edits(edits, {"a.py": "x = 1\n"}, CONTEXT, EditRules(targets=STEP.target_files))
        assert {report.code.value for report in applied.result.reports} == {"WRONG_FILE"}


def test_the_same_text_at_another_place_is_another_answer() -> None:
    insert = '<insert file="a.py" after="f">\nx = 2\n</insert>'
    others = (insert.replace("after", "before"), insert.replace('"f"', '"g"'))
    assert len({answer_fingerprint(text) for text in (insert, *others)}) == 3

"""Every line of every prompt of a whole run can be traced, and what a context shows of a file is that file's."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import asdict, replace
from testing.framed_items import framed_items
from testing.prompt_inputs import INPUTS
from testing.repositories import git
from tests.architecture.eventful_run import Eventful

from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.artifacts.prompt_sources import SourcedText
from clean_room_agent.db.connection import read_record
from clean_room_agent.db.raw.calls import list_calls
from clean_room_agent.db.raw.runs import list_overviews
from clean_room_agent.db.rows import Connection
from clean_room_agent.llm.probes import PROBE_NAME
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.report.prompt_lines import PromptWhy, lines_of_call, prompt_why
from clean_room_agent.report.trace import RunTrace, read_trace

BY_NAME = {prompt.name: prompt for prompt in PROMPTS}


class Looked(Struct, frozen=True, kw_only=True):
    """The record of the run, open."""

    conn: Connection
    trace: RunTrace
    calls: tuple[ModelCall, ...]
    top: Path

    def every_line(self) -> Iterator[PromptWhy]:
        """Each line of each prompt that is not blank."""
        for call in self.calls:
            for number, text in enumerate(call.request.prompt.split("\n"), start=1):
                if text.strip():
                    yield prompt_why(self.conn, self.trace, call.id, number)


@pytest.fixture
def looked(eventful: Eventful) -> Iterator[Looked]:
    top = eventful.project.top
    with read_record(top) as conn:
        (run,) = list_overviews(conn, limit=1)
        calls = tuple(call for call in list_calls(conn, run.task_id) if call.site.call_type != PROBE_NAME)
        yield Looked(conn=conn, trace=read_trace(conn, run.task_id), calls=calls, top=top)


def test_the_run_has_lines_of_every_source(looked: Looked) -> None:
    assert {line.ranges[0].kind for line in looked.every_line()} >= {
        "rules",
        "example",
        "task",
        "file",
        "outline",
        "frame",
        "candidate",
        "part",
        "step",
        "evidence",
        "attempt",
        "refused",
    }


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt.name)
def test_what_no_span_covers_are_the_prompts_own_words(prompt: Prompt[Any, Any]) -> None:
    inputs = INPUTS[prompt.name]
    own = [rules_of(prompt.render(each)) for each in (inputs, changed(inputs))]
    assert own[0] == own[1]


def changed(inputs: Any) -> Any:
    """The same inputs, all their texts other ones."""

    def other(value: Any) -> Any:
        if isinstance(value, SourcedText):
            return SourcedText(re.sub(r"(?m)^([^#\n].*)", r"\1 changed", value), value.spans)
        if isinstance(value, str):
            return value and re.sub(r"(?m)(.+)$", r"\1 changed", value)
        if isinstance(value, tuple):
            return tuple(map(other, value))
        if isinstance(value, Struct):
            return replace(value, **{name: other(part) for name, part in asdict(value).items()})
        return value

    return other(inputs)


def rules_of(text: SourcedText) -> list[str]:
    """The lines in no span."""
    covered = {line for span in text.spans for line in range(span.first, span.last + 1)}
    return [line for number, line in enumerate(text.split("\n"), 1) if number not in covered]


def test_every_line_of_a_file_is_that_line_of_the_file_in_its_commit(looked: Looked) -> None:
    texts: dict[tuple[str, str], list[str]] = {}
    shown = [line for line in looked.every_line() if line.ranges[0].kind == "file"]
    assert shown
    for line in shown:
        key = (line.commit, line.ranges[0].path)
        if key not in texts:
            texts[key] = git(looked.top, "show", f"{key[0]}:{key[1]}").split("\n")
        assert line.ranges[0].file_first is not None
        assert texts[key][line.ranges[0].file_first - 1] == line.ranges[0].text


def test_every_file_shown_was_let_in_by_a_decision(looked: Looked) -> None:
    for line in looked.every_line():
        if line.ranges[0].kind in {"file", "outline"}:
            assert any(row.included for entry in line.decisions for row in entry.decisions), line
        if line.ranges[0].kind == "candidate" and line.ranges[0].path:
            assert line.decisions, line


def test_every_item_of_a_context_is_whole(looked: Looked) -> None:
    items = [(call, item) for call in looked.calls for item in framed_items(call.request.prompt)]
    assert items
    for call, item in items:
        assert item.first <= item.last, (call.id, item)
        if item.is_source:
            assert len(item.lines) == item.last - item.first + 1, (call.id, item)


def test_the_heading_of_a_prompt_is_its_templates(looked: Looked) -> None:
    for call in looked.calls:
        heading = BY_NAME[call.site.call_type].heading
        assert [line.kind for line in lines_of_call(call) if line.text == heading] == ["rules"]


def test_the_run_shows_what_its_tests_are_about(looked: Looked) -> None:
    sections = {line.ranges[0].section for line in looked.every_line() if line.call_type == "implement"}
    assert sections >= {"Code to change", "Tests", "Where it is used", "What the tests show now"}

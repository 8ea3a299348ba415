from typing import Any

import pytest
from rich.console import Console
from testing.runs.model_calls import model_call
from tests.report.conftest import LargeRun

from clean_room_agent.artifacts.prompt_sources import PromptSource
from clean_room_agent.errors import UsageError
from clean_room_agent.report.prompt_lines import BEFORE_SPANS
from clean_room_agent.report.why_line import (
    WORDS,
    line_why,
    lines_of,
    prompt_why,
    render_line_why,
    render_prompt_why,
)


def implementing(large: LargeRun) -> int:
    return next(call.id for call in large.all.calls if call.site.call_type == "implement")


def shown(renderable: Any) -> str:
    console = Console(width=120)
    with console.capture() as told:
        console.print(renderable)
    return told.get()


def test_a_prompt_is_the_ranges_of_its_lines(large: LargeRun) -> None:
    found = prompt_why(large.conn, large.trace, implementing(large))
    assert [part.kind.value for part in found.ranges][:2] == ["rules", "rules"]
    assert [part.first for part in found.ranges[1:]] == [part.last + 1 for part in found.ranges[:-1]]
    code = next(part for part in found.ranges if part.kind is PromptSource.FILE)
    assert (code.file_first, code.file_last) == (1, 260)
    assert f"{code.path}:1-260" in shown(render_prompt_why(found))


def test_a_line_of_a_file_has_its_place_and_its_commit(large: LargeRun) -> None:
    call_id = implementing(large)
    ranges = prompt_why(large.conn, large.trace, call_id).ranges
    code = next(part for part in ranges if part.kind is PromptSource.FILE)
    found = line_why(large.conn, large.trace, call_id, code.first + 4)
    assert (found.origin.file_line, found.says) == (5, "a line of a file")
    assert f"{code.path}:5" in shown(render_line_why(found, str))


def test_a_line_that_is_not_there_is_an_error(large: LargeRun) -> None:
    with pytest.raises(UsageError, match="and no line 99999"):
        line_why(large.conn, large.trace, implementing(large), 99999)


def test_of_a_call_of_an_old_record_nothing_is_guessed() -> None:
    with pytest.raises(UsageError, match=BEFORE_SPANS):
        lines_of(model_call(7, prompt="## Task\nx"))


def test_every_source_has_its_words() -> None:
    assert WORDS.keys() == set(PromptSource)

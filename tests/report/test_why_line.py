import io

import pytest
from rich.console import Console
from testing.runs.model_calls import model_call
from tests.report.conftest import Solved

from clean_room_agent.artifacts.prompt_sources import PromptSource
from clean_room_agent.errors import UsageError
from clean_room_agent.report.prompt_lines import BEFORE_SPANS
from clean_room_agent.report.why_line import (
    WORDS,
    lines_of_call,
    prompt_why,
    render_line_why,
    render_prompt_why,
)


def test_a_prompt_is_the_ranges_of_its_lines_and_each_line_has_its_place(solved: Solved) -> None:
    call_id = solved.call_id("implement")
    found = prompt_why(solved.conn, solved.trace, call_id)
    assert [part.first for part in found.ranges[1:]] == [part.last + 1 for part in found.ranges[:-1]]
    code = next(part for part in found.ranges if part.kind is PromptSource.FILE)
    line = prompt_why(solved.conn, solved.trace, call_id, code.first)
    assert (line.ranges[0].kind, line.ranges[0].file_first) == (PromptSource.FILE, code.file_first)
    assert line.decisions
    console = Console(file=io.StringIO(), width=120)
    console.print(render_prompt_why(found), render_line_why(line))
    assert isinstance(console.file, io.StringIO)
    assert f", as of commit {line.commit[:10]}" in console.file.getvalue()


def test_a_line_that_is_not_there_is_an_error(solved: Solved) -> None:
    with pytest.raises(UsageError, match="and no line 99999"):
        prompt_why(solved.conn, solved.trace, solved.call_id("implement"), 99999)


def test_of_a_call_of_an_old_record_nothing_is_guessed() -> None:
    with pytest.raises(UsageError, match=BEFORE_SPANS):
        lines_of_call(model_call(7, prompt="## Task\nx"))


def test_every_source_has_its_words() -> None:
    assert WORDS.keys() == set(PromptSource)

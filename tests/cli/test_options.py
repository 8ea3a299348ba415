"""Flags that override the configuration reach a command as one value."""

import pytest

from clean_room_agent.cli import options
from clean_room_agent.errors import UsageError


class Issue:
    """An open file with a task."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read(self) -> str:
        return self.text


def test_the_task_is_given_once() -> None:
    assert options.task_text(" mend it ", None) == "mend it"
    assert options.task_text(None, Issue("from a file\n")) == "from a file"
    for task, issue in ((None, None), ("a", Issue("b"))):
        with pytest.raises(UsageError, match="either as an argument or with --issue"):
            options.task_text(task, issue)
    with pytest.raises(UsageError, match="the task is empty"):
        options.task_text("  ", None)

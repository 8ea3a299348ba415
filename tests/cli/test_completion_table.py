"""The table of options and what completes them."""

from clean_room_agent.cli.completing import TABLE
from clean_room_agent.cli.completion_table import table


def test_the_table_is_current() -> None:
    assert TABLE.read_text(encoding="utf-8") == table(), "python -m clean_room_agent.cli.completion_table"

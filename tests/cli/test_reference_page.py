"""The page of every command and every key."""

from pathlib import Path

from clean_room_agent.cli.reference_page import page


def test_the_page_is_current() -> None:
    current = (Path(__file__).parents[2] / "site/reference.md").read_text(encoding="utf-8")
    assert current == page() + "\n", "python -m clean_room_agent.cli.reference_page > site/reference.md"

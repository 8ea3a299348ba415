import re
from pathlib import Path

from clean_room_agent.db.schema_page import page

ROOT = Path(__file__).parents[2]


def test_the_page_under_planning_is_current() -> None:
    expected = (ROOT / "planning" / "data.md").read_text(encoding="utf-8")
    assert page() == expected, "run: python -m clean_room_agent.db.schema_page planning/data.md"


def test_every_table_says_what_it_is() -> None:
    tables = re.findall(r'^(.*)\n(?:-- \w+: .*\n)*CREATE TABLE "?(\w+)"?', page(), re.MULTILINE)
    assert len(tables) > 30
    assert [name for above, name in tables if not above.startswith("-- ")] == []

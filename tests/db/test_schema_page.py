import re
import shutil
from pathlib import Path

from clean_room_agent.db.migrations import SCHEMA_FOLDER
from clean_room_agent.db.schema_page import main, page

ROOT = Path(__file__).parents[2]


def test_the_page_under_planning_is_current() -> None:
    expected = (ROOT / "planning" / "data.md").read_text(encoding="utf-8")
    assert page() == expected, "run: python -m clean_room_agent.db.schema_page planning/data.md"


def test_every_table_says_what_it_is() -> None:
    for name, text in re.findall(r"^### (\w+)\n\n(.*)\n", page(), re.MULTILINE):
        assert text, f"{name} has no comment"


def test_the_page_follows_a_later_migration(tmp_path: Path) -> None:
    schema = Path(shutil.copytree(SCHEMA_FOLDER, tmp_path / "schema"))
    (schema / "session" / "0002_more.sql").write_text(
        "ALTER TABLE kv ADD COLUMN size INTEGER; -- bytes of the value\n\n"
        "-- Something new.\nCREATE TABLE fresh (\n    id INTEGER PRIMARY KEY,  -- of it\n    a TEXT NOT NULL CHECK (a IN\n"
        "        ('x', 'y')),  -- which\n        -- of both\n    kv_key TEXT REFERENCES kv(key)\n);\n"
    )
    text = page(schema)
    assert "| `size` | INTEGER, or NULL | bytes of the value |" in text
    assert "### fresh\n\nSomething new.\n" in text
    assert "| `a` | TEXT | x, y; which of both |" in text
    assert "| `kv_key` | TEXT, or NULL | → kv |" in text


def test_main_writes_the_named_file(tmp_path: Path) -> None:
    main([str(tmp_path / "page.md")])
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == page()

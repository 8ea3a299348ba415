"""The pages that are generated say what the program says."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from testing.pages import adapter_map, data, reference

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("planning/data.md", data.page),
        ("protocols/adapter-map.md", adapter_map.page),
        ("site/reference.md", reference.page),
    ],
)
def test_a_generated_page_is_current(name: str, page: Callable[[], str]) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == page(), f"renew it: {page.__module__}"


def test_every_table_says_what_it_is() -> None:
    tables = re.findall(r'^(.*)\n(?:-- \w+: .*\n)*CREATE TABLE "?(\w+)"?', data.page(), re.MULTILINE)
    assert len(tables) > 30
    assert [name for above, name in tables if not above.startswith("-- ")] == []

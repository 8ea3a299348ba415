"""What the pages say of the source is still there."""

import re
from pathlib import Path

from testing.repositories import git

ROOT = Path(__file__).parents[2]
SPANS = re.compile(r"`([\w./-]+\.py)`")
EXAMPLES = {"planning/prompts.md", "CHANGELOG.md", "planning/first-hour.md"}
"""Pages that show other repositories' files, or this one's as they once were; so does each page of results."""


def tracked() -> list[str]:
    return git(ROOT, "ls-files").splitlines()


def missing(text: str, files: list[str]) -> list[str]:
    """The modules that a page names and that are none of the files, by whole names from the end."""
    ends = {"/" + name for name in files}
    return sorted(
        {
            name
            for name in SPANS.findall(text)
            if "*" not in name and not any(end.endswith("/" + name) for end in ends)
        }
    )


def pages() -> list[str]:
    return [
        name
        for name in tracked()
        if name.endswith(".md") and not name.endswith("/RESULTS.md") and name not in EXAMPLES
    ]


def test_every_module_that_a_page_names_is_there() -> None:
    found = {page: missing((ROOT / page).read_text(encoding="utf-8"), tracked()) for page in pages()}
    assert {page: names for page, names in found.items() if names} == {}


def test_a_module_is_known_by_its_last_folders() -> None:
    files = ["src/pkg/query/scores.py"]
    assert missing("`scores.py`, `query/scores.py`, `ores.py`, `rank/scores.py`", files) == [
        "ores.py",
        "rank/scores.py",
    ]

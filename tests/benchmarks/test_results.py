"""What writes the pages of results, and the pages themselves."""

import re
from pathlib import Path
from platform import node

from benchmarks.results import HEAD, machine, table, with_section, write_section

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_a_section_takes_the_place_of_its_older_self_alone(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    write_section(page, "speed", "old", where="then.")
    write_section(page, "growth", "kept", where="there.")
    write_section(page, "speed", "new", where="now.")
    head = HEAD.format(subject=tmp_path.name)
    assert page.read_text() == f"{head}\n## growth\n\nthere.\n\nkept\n\n## speed\n\nnow.\n\nnew\n"


def test_what_was_written_by_hand_is_kept() -> None:
    text = "# Results\n\nBy hand.\n\n## b\n\nhand\n\n### part\n\nmore\n"
    assert with_section(text, "a", "x") == (
        "# Results\n\nBy hand.\n\n## a\n\nx\n\n## b\n\nhand\n\n### part\n\nmore\n"
    )


def test_writing_the_same_twice_changes_nothing() -> None:
    once = with_section(HEAD, "a", "x")
    assert with_section(once, "a", "x") == once


def test_a_table_aligns_figures_to_the_right() -> None:
    assert (
        table(("what", "ms"), [("a", 1), ("b", 22)]) == "| what | ms |\n| --- | ---: |\n| a | 1 |\n| b | 22 |"
    )


def test_the_machine_is_described_without_its_name() -> None:
    said = machine()
    assert "Python" in said
    assert node() not in said


def test_the_overview_has_every_page_and_every_subject() -> None:
    overview = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\((\w+)/RESULTS\.md\)", overview))
    pages = {page.parent.name for page in BENCHMARKS.glob("*/RESULTS.md")}
    subjects = {main.parent.name for main in BENCHMARKS.glob("*/__main__.py")}
    assert linked == pages
    assert {name for name in subjects if not re.search(rf"\b{name}\b", overview)} == set()

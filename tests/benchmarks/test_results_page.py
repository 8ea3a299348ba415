"""The helper that keeps `benchmarks/RESULTS.md`, and the page itself."""

from pathlib import Path
from platform import node

from benchmarks.report import HEADER, machine, table, with_section, write_section


def test_a_section_takes_the_place_of_its_older_self_alone(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    write_section("speed", "old", path=path, where="then.")
    write_section("growth", "kept", path=path, where="there.")
    write_section("speed", "new", path=path, where="now.")
    assert path.read_text() == f"{HEADER}\n## growth\n\nthere.\n\nkept\n\n## speed\n\nnow.\n\nnew\n"


def test_what_was_written_by_hand_is_kept() -> None:
    text = "# Results\n\nBy hand.\n\n## b\n\nhand\n\n### part\n\nmore\n"
    assert with_section(text, "a", "x") == (
        "# Results\n\nBy hand.\n\n## a\n\nx\n\n## b\n\nhand\n\n### part\n\nmore\n"
    )


def test_writing_the_same_twice_changes_nothing() -> None:
    once = with_section(HEADER, "a", "x")
    assert with_section(once, "a", "x") == once


def test_a_table_aligns_figures_to_the_right() -> None:
    assert (
        table(("what", "ms"), [("a", 1), ("b", 22)]) == "| what | ms |\n| --- | ---: |\n| a | 1 |\n| b | 22 |"
    )


def test_the_machine_is_described_without_its_name() -> None:
    said = machine()
    assert "Python" in said
    assert node() not in said

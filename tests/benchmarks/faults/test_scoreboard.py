"""The scoreboard of reliability."""

from pathlib import Path

from benchmarks.faults.scoreboard import read_board, write_board
from testing.faults.figures import Figure

CUTS = Figure(name="acknowledged rows lost", tried=1_200, found=0, target="0", met=True)
RACES = Figure(name="escapes", tried=7, found=2, target="0 of 100,000", met=False)


def test_a_written_board_is_read_back_as_it_was(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    board = {"cuts": (CUTS,), "races": (RACES, CUTS)}

    write_board(board, order=("cuts", "races"), path=page)

    assert read_board(page) == board


def test_parts_that_did_not_run_keep_their_figures_and_their_place(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    write_board({"races": (RACES,)}, order=("cuts", "races"), path=page)

    write_board(read_board(page) | {"cuts": (CUTS,)}, order=("cuts", "races"), path=page)

    assert list(read_board(page)) == ["cuts", "races"]
    assert read_board(page)["races"] == (RACES,)


def test_a_page_without_the_section_has_no_figures(tmp_path: Path) -> None:
    assert read_board(tmp_path / "missing.md") == {}

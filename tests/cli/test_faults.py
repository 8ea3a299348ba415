"""What the environment did to a command, told with a remedy; what is left is a bug."""

import errno
import os
from pathlib import Path

import pytest

from clean_room_agent.cli.main import explain_fault, run
from clean_room_agent.errors import SYSTEM_FAULTS, system_fault


@pytest.mark.parametrize("number", SYSTEM_FAULTS)
def test_a_fault_of_the_system_names_the_file_and_the_remedy(number: int) -> None:
    wrong, remedy = SYSTEM_FAULTS[number]
    known = system_fault(OSError(number, os.strerror(number), "/some/file"))
    assert known is not None
    assert (known.message, known.hint) == (f"{wrong}: {os.strerror(number)}: /some/file", remedy)


@pytest.mark.parametrize(
    "error", [KeyError("x"), FileNotFoundError(errno.ENOENT, "not there", "/file"), ValueError()]
)
def test_what_no_environment_can_do_is_a_bug(error: Exception, tmp_path: Path) -> None:
    assert explain_fault(error, None) is None
    assert explain_fault(error, tmp_path) is None


def test_a_current_folder_that_is_gone_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, gone = Path.cwd(), tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    try:
        for words in (["runs"], ["check"], ["init"], ["solve", "x"], ["config"], ["mcp"]):
            assert run(words) == 2, words
            told = capsys.readouterr().err
            assert told == "error: the current folder no longer exists\n  -> cd to one that does\n", words
        assert run(["help"]) == 0
    finally:
        os.chdir(here)

"""Whatever a command is told to read: what is no file is refused at once, and never waited for."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from testing.repositories import copy_repository
from testing.runs.solving import TILL, Project, project_at

from clean_room_agent.cli.options import OUTPUT_FILE, OUTPUT_FOLDER, TextFileParameter, task_text

CRA = (sys.executable, "-P", "-m", "clean_room_agent")
READS = (
    ("batch", "{odd}"),
    ("solve", "--plan", "{odd}"),
    ("solve", "--meta-plan", "{odd}", "x"),
    ("solve", "--issue", "{odd}"),
    ("plan", "--issue", "{odd}"),
    ("retrieve", "--issue", "{odd}"),
    ("solve", "x", "--budget-config", "{odd}"),
    ("bootstrap", "--manifest", "{odd}", "-o", "made"),
    ("bootstrap", "--exclude", "{odd}", "-o", "made", "x"),
    ("curate-data", "--plan", "{odd}", "-o", "made"),
)


@pytest.fixture(scope="module")
def finished(solved_once: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a complete run, which nobody changes."""
    made, _ = solved_once
    return project_at(copy_repository(made, tmp_path_factory.mktemp("finished") / "till"), TILL)


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_a_fifo_is_refused_where_a_file_is_read(
    finished: Project, tmp_path: Path, words: tuple[str, ...]
) -> None:
    os.mkfifo(tmp_path / "odd")
    code, _, err = finished.run_here(*(word.format(odd=tmp_path / "odd") for word in words))
    assert code == 2, err
    assert "is a FIFO, not a file" in err


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_a_file_that_is_not_utf_8_is_named_with_its_line(
    finished: Project, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "odd").write_bytes(b"# a title\nSplit the caf\xe9's bill\n")
    code, _, err = finished.run_here(*(word.format(odd=tmp_path / "odd") for word in words))
    assert code == 2, err
    assert str(tmp_path / "odd") in err
    assert "line 2 is not UTF-8: byte 0xe9" in err or "is not UTF-8: 'utf-8' codec" in err
    assert "  -> save it as UTF-8" in err


WORDS = (
    ("solve", "{odd}"),
    ("plan", "{odd}"),
    ("retrieve", "{odd}"),
    ("solve", "x", "--check", "{odd}"),
    ("solve", "x", "--test", "{odd}"),
    ("solve", "--resume", "@", "--hint", "{odd}"),
    ("batch", "{file}"),
)


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_words_that_are_no_text_are_refused_before_anything_is_asked(
    till: Project, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """As a terminal that is not set to UTF-8 gives them, or JSON with half a character."""
    till.configure("http://127.0.0.1:1")
    (tmp_path / "file").write_text('{"task": "Split the caf\\udce9 bill"}')
    given = {"odd": "Split the caf\udce9 bill", "file": str(tmp_path / "file")}
    code, _, err = till.run_here(*(word.format(**given) for word in words))
    assert code == 2, err
    assert "is not text in UTF-8: character 14 is '\\udce9'" in err


def test_an_issue_in_what_its_byte_order_mark_says_is_read(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes("Split the café's bill".encode("utf-16"))
    issue = TextFileParameter().convert(str(tmp_path / "odd"), None, None)
    assert task_text(None, issue) == "Split the café's bill"


WRITES = (
    ("plan", "x", "-o", "{place}"),
    ("train-plan", "-o", "{place}"),
    ("report", "-o", "{place}"),
    ("bug-report", "-o", "{place}"),
)
FOLDERS = (
    ("curate-data", "--target", "implement", "-o", "{place}"),
    ("bootstrap", ".", "-o", "{place}"),
    ("bootstrap", ".", "-o", "made", "--work", "{place}"),
    ("train", "1", "--base", "x", "-o", "{place}"),
)


@pytest.mark.parametrize("words", [*WRITES, *FOLDERS], ids=" ".join)
def test_where_a_command_could_not_write_it_does_nothing_first(
    till: Project, tmp_path: Path, words: tuple[str, ...]
) -> None:
    till.configure("http://127.0.0.1:1")  # who asks a model first ends with 3
    (tmp_path / "file").touch()
    places = {"file/new": f"there is no folder {tmp_path / 'file'}"}
    if words in WRITES:
        places |= {"no/new": f"there is no folder {tmp_path / 'no'}", ".": "is a directory"}
    else:
        places |= {"file": "is a file"}
    for place, said in places.items():
        code, out, err = till.run_here(*(word.format(place=tmp_path / place) for word in words))
        assert (code, out) == (2, ""), err
        assert said in err
        assert str(tmp_path / place) in err


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As no other user than root meets it."""
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != tmp_path)
    with pytest.raises(click.BadParameter, match=f"the folder {tmp_path} cannot be written"):
        OUTPUT_FILE.convert(str(tmp_path / "new"), None, None)
    with pytest.raises(click.BadParameter, match=f"the folder {tmp_path} cannot be written"):
        OUTPUT_FOLDER.convert(str(tmp_path / "new" / "folder"), None, None)


def test_a_batch_names_the_line_whose_file_is_none(till: Project, solved: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "odd")
    (tmp_path / "batch.jsonl").write_text('{"issue": "odd"}\n{"plan": "odd"}\n')
    code, _, err = till.run_here("batch", str(tmp_path / "batch.jsonl"))
    assert code == 2
    assert err.count("is a FIFO, not a file") == 2


@pytest.mark.parametrize("name", ["raw.sqlite", "config.toml", "curated.sqlite-wal"])
def test_a_fifo_in_the_folder_is_named(till: Project, solved: str, tmp_path: Path, name: str) -> None:
    path = till.top / ".clean_room" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    report = ("bug-report", "-o", str(tmp_path / "report.zip"))
    for words in (("runs",), ("solve", "x"), ("check",), ("config",), report):
        code, out, err = till.run_here(*words)
        assert "is a FIFO" in out + err or words[0] == "bug-report", words
        assert code == (0 if words[0] == "bug-report" else 2), words


def test_the_user_s_own_configuration_is_not_waited_for(
    till: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "clean-room-agent").mkdir()
    os.mkfifo(tmp_path / "clean-room-agent" / "config.toml", 0o600)
    code, _, err = till.run_here("config")
    assert code == 2
    assert "is not a regular file" in err


def test_what_a_shell_opened_is_read(till: Project) -> None:
    command = f"{' '.join(CRA)} batch <(echo nonsense) --repo {till.top}"
    done = subprocess.run(
        ["bash", "-c", command], env=till.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "line 1: not JSON" in done.stderr

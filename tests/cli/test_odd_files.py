"""Whatever a command is told to read: what is no file is refused at once, and never waited for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testing.runs.solving import Project

CRA = (sys.executable, "-P", "-m", "clean_room_agent")
READS = (
    ("batch", "{odd}"),
    ("solve", "--plan", "{odd}"),
    ("solve", "--meta-plan", "{odd}", "x"),
    ("solve", "--issue", "{odd}"),
    ("plan", "--plan", "{odd}"),
    ("plan", "--issue", "{odd}"),
    ("retrieve", "--issue", "{odd}"),
    ("solve", "x", "--budget-config", "{odd}"),
    ("replay", "@", "--recording", "{odd}"),
    ("bootstrap", "--manifest", "{odd}", "-o", "made"),
    ("bootstrap", "--exclude", "{odd}", "-o", "made", "x"),
    ("curate-data", "--plan", "{odd}", "-o", "made"),
)


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_a_fifo_is_refused_where_a_file_is_read(
    till: Project, solved: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    os.mkfifo(tmp_path / "odd")
    code, _, err = till.run_here(*(word.format(odd=tmp_path / "odd") for word in words))
    assert code == 2, err
    assert "is a FIFO, not a file" in err


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

"""Checks that ask no model server."""

from pathlib import Path

import pytest
from testing.repositories import make_repository

from clean_room_agent.app.record_check import Finding
from clean_room_agent.app.self_check import as_object, local_checks


def test_a_line_says_its_remedy_only_where_it_fails() -> None:
    told = as_object(Finding(name="git", ok=True, text="git 2.40", remedy="update it"))
    assert (told["name"], told["ok"], told["text"]) == ("git", True, "git 2.40")
    failed = as_object(Finding(name="git", ok=False, text="git 1.0", remedy="update it"))
    assert failed["remedy"] == "update it"


def test_a_repository_without_a_configuration_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    top = make_repository(tmp_path / "repo", {"a.py": "1\n"})
    lines = {line.name: line for line in local_checks(top)}
    assert lines["git"].ok
    broken = [line for line in lines.values() if not line.ok]
    assert any("cra init" in line.remedy + line.text for line in broken)

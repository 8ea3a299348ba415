"""The files of figures."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.app.fit.measured import strong

from clean_room_agent.app.fit.fit_file import fit_path, read_fit, write_fit
from clean_room_agent.errors import ConfigError


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_what_was_measured_is_read_back() -> None:
    assert read_fit("coder:3b", "") is None
    write_fit(strong())
    assert read_fit("coder:3b", "") == strong()
    assert fit_path("coder:3b", "").stat().st_mode & 0o077 == 0


def test_a_model_with_other_files_is_not_measured() -> None:
    write_fit(replace(strong(), digest="aa"))
    assert read_fit("coder:3b", "bb") is None
    assert read_fit("coder:3b", "aa") is not None


def test_names_that_look_alike_in_a_file_name_are_told_apart() -> None:
    assert fit_path("a/b", "") != fit_path("a:b", "")
    assert "/" not in fit_path("a/b", "").name


def test_what_another_version_measured_is_not_used() -> None:
    write_fit(replace(strong(), version=99))
    assert read_fit("coder:3b", "") is None


@pytest.mark.parametrize("text", ["", "{", '{"version": 1}', '{"version": "x", "model": 3}'])
def test_a_broken_file_is_one_clear_message(text: str) -> None:
    write_fit(strong())
    path = fit_path("coder:3b", "")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="is not what `cra models fit` writes") as caught:
        read_fit("coder:3b", "")
    assert str(path) in caught.value.message
    assert caught.value.hint == "measure the model again: cra models fit --again"

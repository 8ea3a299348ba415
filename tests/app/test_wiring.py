from pathlib import Path

import pytest

from clean_room_agent.app.wiring import cache_folder


@pytest.mark.parametrize(
    ("named", "folder"), [("/c", "/c"), ("cache", "/home/me/.cache"), ("", "/home/me/.cache")]
)
def test_a_relative_cache_folder_counts_for_nothing(
    named: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", named)
    assert cache_folder() == Path(folder, "cra")

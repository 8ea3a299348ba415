from pathlib import Path

import pytest

from clean_room_agent.app.settings import Settings
from clean_room_agent.app.wiring import cache_folder, router_of
from clean_room_agent.errors import ConfigError


@pytest.mark.parametrize(
    ("named", "folder"), [("/c", "/c"), ("cache", "/home/me/.cache"), ("", "/home/me/.cache")]
)
def test_a_relative_cache_folder_counts_for_nothing(
    named: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", named)
    assert cache_folder() == Path(folder, "cra")


def test_gaps_may_have_a_model_of_their_own() -> None:
    def asked(name: str) -> str:
        models = {
            "base_url": "http://127.0.0.1:1",
            "coding": "c",
            "reasoning": "r",
            "overrides": {name: "c+x"},
        }
        budget = {"context_window": 4096, "reserved_tokens": 1024}
        router = router_of(Settings(source="", data={"models": models, "budget": budget}))
        return router.resolve("coding", name).tag

    assert asked("fill") == "c+x"
    with pytest.raises(ConfigError, match="no prompt or stage"):
        asked("fil")

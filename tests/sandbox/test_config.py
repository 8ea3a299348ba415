import pytest

from clean_room_agent.config import load_slice
from clean_room_agent.errors import ConfigError
from clean_room_agent.sandbox.config import SandboxConfig


def load(**values: object) -> SandboxConfig:
    return load_slice({"sandbox": values}, "sandbox", SandboxConfig, source="config.toml")


def test_a_sandbox_is_used_where_there_is_one_unless_it_is_said_otherwise() -> None:
    assert load().mode == "auto"


@pytest.mark.parametrize("path", ["/opt/data", "~/.config/tool", "~/"])
def test_what_else_may_be_read_is_named_from_the_top_or_from_home(path: str) -> None:
    assert load(read=[path]).read == (path,)


@pytest.mark.parametrize("path", ["data", "./data", "~other/data", "/opt/../etc", "~/../root", ""])
def test_a_path_that_leads_elsewhere_is_refused_and_named(path: str) -> None:
    with pytest.raises(ConfigError, match="neither absolute nor begins with ~/"):
        load(read=[path])


@pytest.mark.parametrize(
    ("name", "value"),
    [("mode", "docker"), ("memory_mb", -1), ("processes", -1), ("scratch_mb", 0), ("reed", ["/"])],
)
def test_values_beyond_their_bounds_and_unknown_keys_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        load(**{name: value})

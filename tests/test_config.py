from pathlib import Path

import pytest
from pydantic import Field

from clean_room_agent.config import ConfigSlice, load_slice, read_toml, refuse_unknown_tables
from clean_room_agent.errors import ConfigError


class Inner(ConfigSlice):
    seconds: float = Field(default=1.0, gt=0)


class Outer(ConfigSlice):
    command: str
    limits: Inner = Field(default_factory=Inner)


def test_a_missing_file_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no configuration") as caught:
        read_toml(tmp_path / "config.toml")
    assert "cra init" in caught.value.hint


def test_broken_toml_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[a]\nb = \n", encoding="utf-8")
    with pytest.raises(ConfigError, match="line 2"):
        read_toml(path)


def test_defaults_stand_where_the_table_says_nothing() -> None:
    slice_ = load_slice({"t": {"command": "x"}}, "t", Outer, source="f")
    assert slice_.limits.seconds == 1.0


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"comand": "x", "command": "x"}, r"\[t\] comand: unknown key \(did you mean 'command'\?\)"),
        (
            {"command": "x", "limits": {"second": 1}},
            r"limits.second: unknown key \(did you mean 'seconds'\?\)",
        ),
        ({}, r"\[t\] command: required"),
        ({"command": "x", "limits": {"seconds": -1}}, r"limits.seconds: .*greater than 0"),
        ("text", r"\[t\] must be a table"),
    ],
)
def test_a_wrong_value_is_named_with_its_key(table: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_slice({"t": table}, "t", Outer, source="f")


def test_an_unknown_table_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'testing'"):
        refuse_unknown_tables({"tseting": {}}, ("models", "testing"), source="f")


@pytest.mark.parametrize("text", ["x = " + "9" * 5000, "x = " + "[" * 5000], ids=["digits", "nesting"])
def test_a_file_that_the_parser_gives_up_on_is_an_error_of_the_configuration(
    text: str, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(ConfigError, match="is not valid TOML"):
        read_toml(tmp_path / "config.toml")

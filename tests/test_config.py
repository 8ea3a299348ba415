from pathlib import Path

import pytest
from pydantic import Field

from clean_room_agent.config import ConfigSlice, load_slice, read_toml, refuse_unknown_tables, with_entry
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


ENTRIES = """\
# mine
[models]
coding = "a"  # small

[models.overrides]    # another model
# scope_judgment = "not this one"
"refilter" = 'x # y'  # kept
implement = "b"

[budget]
"""


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("implement", "c", 'implement = "b"', 'implement = "c"'),
        ("implement", None, 'implement = "b"\n', ""),
        ("refilter", 'q"\\', "\"refilter\" = 'x # y'  # kept", 'refilter = "q\\"\\\\"  # kept'),
        ("scope_judgment", "é:1", "# another model\n", '# another model\nscope_judgment = "é:1"\n'),
        ("absent", None, "", ""),
    ],
)
def test_one_entry_changes_and_nothing_else(key: str, value: str | None, old: str, new: str) -> None:
    assert with_entry(ENTRIES, "models.overrides", key, value) == ENTRIES.replace(old, new, 1)


def test_a_table_that_is_missing_is_added_at_the_end() -> None:
    assert with_entry("[a]\nx = 1", "a.b", "k", "v") == '[a]\nx = 1\n\n[a.b]\nk = "v"\n'
    assert with_entry("[a]\nx = 1", "a.b", "k", None) == "[a]\nx = 1"


@pytest.mark.parametrize(
    "text",
    [
        '[models]\noverrides = { implement = "b" }\n',
        '[models]\noverrides.implement = "b"\n',
        '[models.overrides]\nimplement = """\nb"""\n',
        '[models]\nnote = """\n[models.overrides]\nimplement = "b"\n"""\n[models.overrides]\nimplement = "b"\n',
    ],
)
def test_what_no_single_line_can_change_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="line by line") as caught:
        with_entry(text, "models.overrides", "implement", "c")
    assert 'implement = "c"' in caught.value.hint

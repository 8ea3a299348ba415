from pathlib import Path
from typing import Annotated, Literal

import pytest
from msgspec import Meta, field

from clean_room_agent.config import (
    ConfigSlice,
    NonEmpty,
    check_slice,
    keys_of,
    load_slice,
    load_toml,
    read_toml,
    refuse_unknown_tables,
    with_value,
)
from clean_room_agent.errors import ConfigError


class Inner(ConfigSlice, frozen=True, kw_only=True):
    seconds: Annotated[float, Meta(gt=0, description="of waiting")] = 1.0


class Outer(ConfigSlice, frozen=True, kw_only=True):
    command: NonEmpty
    limits: Inner = field(default_factory=Inner)
    ways: tuple[Literal["each", "batch"], ...] = ()
    place: Path | None = None


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
        ({"command": "x", "limits": {"seconds": -1}}, r"limits.seconds: expected float > 0"),
        (
            {"command": "", "limits": 3},
            r"command: expected str of length >= 1; \[t\] limits: expected a table, got int",
        ),
        (
            {"command": "x", "ways": ["each", "al"]},
            r"ways\[1\]: invalid value 'al': write 'each' or 'batch'",
        ),
        ({"command": "x", "place": 3}, r"place: expected a path"),
        ("text", r"\[t\] must be a table"),
    ],
)
def test_a_wrong_value_is_named_with_its_key(table: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_slice({"t": table}, "t", Outer, source="f")


def test_every_fault_of_a_table_is_named_and_missing_ones_only_where_they_are_needed() -> None:
    table = {"comand": "x", "limits": {"seconds": "3"}}
    with pytest.raises(ConfigError) as caught:
        load_slice({"t": table}, "t", Outer, source="f")
    assert [part.partition(": ")[0] for part in caught.value.message.removeprefix("f: ").split("; ")] == [
        "[t] command",
        "[t] limits.seconds",
        "[t] comand",
    ]
    with pytest.raises(ConfigError) as caught:
        check_slice({"t": table}, "t", Outer, source="f")
    assert "required" not in caught.value.message
    check_slice({"t": {"limits": {"seconds": 3}}}, "t", Outer, source="f")


def test_a_path_is_read_from_its_text() -> None:
    assert load_slice({"t": {"command": "x", "place": "/a"}}, "t", Outer, source="f").place == Path("/a")


def test_a_key_is_described_with_its_default() -> None:
    keys = keys_of(Outer)
    assert [key.name for key in keys.values() if key.required] == ["command"]
    assert (keys["limits"].table, keys["limits"].default) == (Inner, Inner())
    assert keys_of(Inner)["seconds"].description == "of waiting"
    assert keys["place"].default is None


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
        ("refilter", 'q"\\', "\"refilter\" = 'x # y'  # kept", '"refilter" = "q\\"\\\\"  # kept'),
        ("scope_judgment", "é:1", '# scope_judgment = "not this one"', 'scope_judgment = "é:1"'),
        ("absent", None, "", ""),
    ],
)
def test_one_entry_changes_and_nothing_else(key: str, value: str | None, old: str, new: str) -> None:
    assert with_value(ENTRIES, ["models", "overrides"], key, value) == ENTRIES.replace(old, new, 1)


def test_a_table_that_is_not_there_is_added_and_inline_ones_are_changed() -> None:
    assert load_toml(with_value("", ["models", "overrides"], "a", "b")) == {
        "models": {"overrides": {"a": "b"}}
    }
    inline = 'models = { coding = "a" }  # mine\n'
    assert with_value(inline, ["models"], "coding", "b") == 'models = { coding = "b" }  # mine\n'
    text = '[models]\ncoding = "a"\n\n[edit]\n'
    said = '[models]\ncoding = "a"\n\n[models.temperature]\ncoding = 0.5\n\n[edit]\n'
    assert with_value(text, ["models", "temperature"], "coding", 0.5) == said
    assert with_value("[edit]\n", ["solve"], "samples", 3) == "[edit]\n\n[solve]\nsamples = 3\n"


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 20_000 + "=1",
        "[a" + " . 'a.'" * 20_000 + "]",
        "x = {a" + '."\\".a"' * 20_000 + "=1}",
        "\n".join(f"a{number}" + ".a" * 60 + "=1" for number in range(5000)),
    ],
)
def test_keys_with_so_many_parts_that_reading_takes_long_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="too many parts in dotted keys"):
        load_toml(text)


@pytest.mark.parametrize(
    "value",
    [
        "[" + "'a==1.2.3', " * 2000 + "]",
        '"' + "One. Two. " * 3000 + '"',
        '"""\n' + "a.b.c\n" * 3000 + '"""',
        "1.5",
    ],
)
def test_dots_in_values_are_no_parts_of_keys(value: str) -> None:
    assert load_toml(f"a.b.c = {value} # {'x.' * 1000}\n").keys() == {"a"}


@pytest.mark.parametrize("unclosed", ['"', '"""', "'", '"\\', "a", "#", '"\\""'])
def test_counting_parts_takes_linear_time(unclosed: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - what is wrong differs
        load_toml("." * 600 + unclosed * 200_000)

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.languages.jsonc import read_object, read_packages

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('/*",]}\\ab\n'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("/*, a}"), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text("/*, a}"), VALUES, max_size=4))
def test_comments_and_commas_do_not_change_what_is_read(value: dict[str, object]) -> None:
    said = json.dumps(value, indent=1)
    lines = [line if '"' in line else f'{line} // ], "' for line in said.split("\n")]
    commas = "\n".join(lines).replace("}\n", "},\n") if not value else "\n".join(lines)
    assert read_object(f"\ufeff/* {{ */{commas}") == value


def test_commas_at_the_end_are_left_out() -> None:
    assert read_object('{"a": [1, 2, /* x */ ], "b": ",]",\n}') == {"a": [1, 2], "b": ",]"}


@pytest.mark.parametrize("text", [None, "", "[1]", "{", "nope"])
def test_what_is_no_object_is_empty(text: str | None) -> None:
    assert read_object(text) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("packages:\n  - a/*\n  - 'b'\n  - \"!c\"  # not this\n", ("a/*", "b", "!c")),
        ("packages:\n- a\n\n# b\n- c\nother:\n- d\n", ("a", "c")),
        ("packages: [a, 'b/**',\n  \"c\"]\n", ("a", "b/**", "c")),
        ("packages:\r\n  - a\r\n", ("a",)),
        ("catalog:\n  packages: x\n", ()),
        (None, ()),
    ],
)
def test_packages_of_a_pnpm_workspace(text: str | None, expected: tuple[str, ...]) -> None:
    assert read_packages(text) == expected

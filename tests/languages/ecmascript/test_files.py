"""Which file a path without, or with another, suffix stands for."""

import pytest

from clean_room_agent.languages.ecmascript import files


@pytest.mark.parametrize(
    ("base", "paths", "typed", "found"),
    [
        ("src/a", {"src/a.js", "src/a.ts"}, True, "src/a.ts"),
        ("src/a", {"src/a.js", "src/a.ts"}, False, "src/a.js"),
        ("src/a.js", {"src/a.ts"}, True, "src/a.ts"),
        ("src/a.js", {"src/a.js", "src/a.ts"}, True, "src/a.ts"),
        ("src/a.js", {"src/a.js", "src/a.ts"}, False, "src/a.js"),
        ("src/a.mjs", {"src/a.d.mts"}, True, "src/a.d.mts"),
        ("src/a.css", {"src/a.css"}, True, "src/a.css"),
        ("src", {"src/index.ts"}, True, None),
    ],
)
def test_the_best_name_that_is_there_is_taken(
    base: str, paths: set[str], typed: bool, found: str | None
) -> None:
    assert files.find_file(base, paths, typed=typed) == found


def test_an_index_stands_for_its_folder() -> None:
    paths = {"src/index.js", "src/index.tsx", "index.ts"}
    assert files.find_index("src", paths, typed=True) == "src/index.tsx"
    assert files.find_index("src", paths, typed=False) == "src/index.js"
    assert files.find_index("", paths, typed=True) == "index.ts"
    assert files.find_index("other", paths, typed=True) is None


def test_paths_are_joined_from_the_root() -> None:
    assert files.join("a/b", "../c") == "a/c"
    assert files.join("a", "..") == ""
    assert files.join("", "../c") == "../c"


@pytest.mark.parametrize(
    ("path", "stem"), [("dist/a.d.mts", "dist/a"), ("a.d.ts", "a"), ("a.tsx", "a"), ("a.css", "a.css")]
)
def test_a_suffix_of_source_or_of_what_is_built_is_taken_off(path: str, stem: str) -> None:
    assert files.without_suffix(path) == stem


def test_typescript_and_components_look_for_types_first() -> None:
    assert [files.is_typed(name) for name in ("a.ts", "a.vue", "a.js", "a.mjs")] == [True, True, False, False]

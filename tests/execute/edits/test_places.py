import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.execute.edits.places import Places

PLACES = Places(
    ("a.py", "pkg/mod.py", "pkg/deep/x.py", "README.md", "caf\u00e9/a.py"),
    {"link.py": "a link", "lib": "a submodule"},
)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("a.py", True),
        ("pkg/mod.py", False),
        ("new.py", False),
        ("a.py/x.py", False),
        ("tests/test_new.py", True),
        ("conftest.py", False),
    ],
)
def test_where_the_user_names_files_only_these_and_tests_are_changed(path: str, *, allowed: bool) -> None:
    places = Places(("a.py", "pkg/mod.py"), only=frozenset({"a.py"}))
    assert (places.outside(path) == "") is allowed
    assert (places.obstacle(path) == "") is allowed
    if not allowed:
        assert places.outside(path) == f"{path} is none of the files that --file names: a.py"
    assert "pkg/mod.py" in places, "it is there, nevertheless"


@pytest.mark.parametrize(
    ("path", "obstacle"),
    [
        ("a.py", ""),
        ("new.py", ""),
        ("pkg/new.py", ""),
        ("pkg/deep/more/new.py", ""),
        ("a.pyx", ""),
        ("a.py/b.py", "a.py is a file, so nothing can be inside it"),
        ("a.py/b/c.py", "a.py is a file, so nothing can be inside it"),
        ("link.py", "link.py is a link"),
        ("link.py/x.py", "link.py is a link, so nothing can be inside it"),
        ("lib", "lib is a submodule"),
        ("lib/x.py", "lib is a submodule, so nothing can be inside it"),
        ("pkg", "pkg is a folder"),
        ("pkg/deep", "pkg/deep is a folder"),
        ("readme.md", "only letter case or Unicode form tells it from README.md"),
        ("Pkg/new.py", "only letter case or Unicode form tells it from pkg"),
        ("pkg/MOD.py", "only letter case or Unicode form tells it from pkg/mod.py"),
        ("cafe\u0301/b.py", "only letter case or Unicode form tells it from caf\u00e9"),
        ("LIB", "only letter case or Unicode form tells it from lib"),
    ],
)
def test_what_is_in_the_way_is_said(path: str, obstacle: str) -> None:
    assert PLACES.obstacle(path) == obstacle


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("a.py/b.py", {"a.py"}),
        ("readme.md", {"README.md"}),
        ("pkg/deep", {"pkg/deep/x.py"}),
        ("pkg", {"pkg/deep/x.py", "pkg/mod.py"}),
        ("Pkg/new.py", {"pkg/deep/x.py", "pkg/mod.py"}),
    ],
)
def test_what_was_deleted_is_in_nobodys_way(path: str, gone: set[str]) -> None:
    assert PLACES.obstacle(path)
    assert PLACES.obstacle(path, gone=gone) == ""


@pytest.mark.parametrize(
    ("path", "made"),
    [("new/x.py", "new"), ("new", "new/x.py"), ("New.py", "new.py"), ("New/y.py", "new/x.py")],
)
def test_what_was_created_before_is_in_the_way(path: str, made: str) -> None:
    assert PLACES.obstacle(path) == ""
    assert PLACES.obstacle(path, made={made})


PATH = st.lists(st.sampled_from("abA."), min_size=1, max_size=4).map("/".join)


def prefixes(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def is_free(path: str, files: set[str]) -> bool:
    if path in files:
        return True
    every = {prefix for file in files for prefix in prefixes(file)}
    for prefix in prefixes(path):
        if prefix in files:
            return False
        if prefix not in every:
            parent = prefix.rpartition("/")[0]
            return not any(
                other.lower() == prefix.lower() for other in every if other.rpartition("/")[0] == parent
            )
    return False


@given(st.lists(PATH, max_size=8), PATH)
def test_the_search_agrees_with_a_look_at_every_path(paths: list[str], path: str) -> None:
    files = {one for one in paths if not any(other.startswith(f"{one}/") for other in paths)}
    assert (Places(files).obstacle(path) == "") is is_free(path, files)

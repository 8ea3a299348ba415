"""The names that a file looked up tell when it must be resolved again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testing.references.reference_world import ReferenceWorld, read_file

from clean_room_agent.indexer.references.evaluate import Evaluations
from clean_room_agent.indexer.references.resolve import Resolved, resolve_file
from clean_room_agent.languages.interface import changed_names

PATHS = ("a.py", "b.py", "pkg/__init__.py", "pkg/c.py", "pkg/d.py")
MODULES = ("a", "b", "pkg", "pkg.c", ".c", ".d", ".", "outside")
NAMES = ("one", "two", "Three", "Four")

names = st.sampled_from(NAMES)
modules = st.sampled_from(MODULES)
values = st.one_of(
    names,
    names.map("{}()".format),
    st.builds("{}.{}".format, names, names),
    st.builds("{}().{}()".format, names, names),
    st.builds("{}.{}.{}()".format, st.sampled_from(("pkg", "a", "self")), names, names),
    st.builds("super().{}()".format, names),
)
statements = st.one_of(
    st.builds("from {} import {}".format, modules, names),
    st.builds("from {} import {} as {}".format, modules, names, names),
    st.builds("from {} import *".format, modules),
    st.sampled_from(("import pkg", "import pkg.c", "import a", "import pkg.d as one")),
    st.builds("{} = {}".format, names, values),
    st.builds("{}: {} = {}".format, names, names, values),
    st.builds("__all__ = ['{}']".format, names),
    st.builds(
        "def {}(x: {}) -> {}:\n    y = {}\n    return y.{}() or x.{}".format,
        *[names] * 3,
        values,
        names,
        names,
    ),
    st.builds("@{}\ndef {}():\n    return {}".format, names, names, values),
    st.builds(
        "class {}({}):\n    {}: {}\n    def {}(self):\n        self.{} = {}\n        return self.{}.{}()".format,
        *[names] * 6,
        values,
        names,
        names,
    ),
    st.builds(
        "class {}:\n    @property\n    def {}(self) -> {}: ...\n    def {}(self):\n        return {}".format,
        *[names] * 4,
        values,
    ),
)
sources = st.lists(statements, max_size=5).map("\n".join)


def meaning(world: ReferenceWorld, path: str, found: Resolved) -> object:
    """What was found, by qualified names and occurrences instead of places."""

    def told(where: str, place: int) -> tuple[str, str, int]:
        qualified = world.nested[where].names
        return where, qualified[place], qualified[:place].count(qualified[place])

    references = [
        (told(path, caller), told(callee_path, callee), kind, confidence)
        for caller, callee_path, callee, kind, confidence in found.references
    ]
    return sorted(references), found.dependencies


def holder(world: ReferenceWorld, name: str) -> tuple[str, str, int] | None:
    """The one callable of this name, by what it is called in its file."""
    found = world.unique(PATHS[0], name)
    if found is None:
        return None
    path, place = found
    names = world.nested[path].names
    return path, names[place], names[:place].count(names[place])


@given(st.fixed_dictionaries(dict.fromkeys(PATHS, sources)), st.sampled_from(PATHS), sources)
def test_whoever_resolves_otherwise_had_looked_up_what_changed(
    files: dict[str, str], edited: str, text: str
) -> None:
    before, after = ReferenceWorld(files), ReferenceWorld(files | {edited: text})
    changed = changed_names(before.names[edited].interface, after.names[edited].interface)
    unsettled = {name for name in NAMES if holder(before, name) != holder(after, name)}
    for path in PATHS:
        if path == edited:
            continue
        old, new = before.resolve(path), after.resolve(path)
        if meaning(before, path, old) != meaning(after, path, new):
            concerned = (
                old.lookups.get(edited, frozenset()) & changed or old.lookups.get("", frozenset()) & unsettled
            )
            assert concerned, (path, old, new, sorted(changed))


@pytest.mark.parametrize(
    "after",
    [
        "",
        "from .d import *",
        "from .c import *\n__all__ = ['two']",
        "from .c import *\nfrom .d import *\n__all__ = []",
    ],
)
def test_star_imports_on_the_way_to_a_name_are_looked_up(after: str) -> None:
    files = {"a.py": "from pkg import one\ndef f(): one()\n", "b.py": "from pkg import *\ndef g(): one()\n"}
    files |= {"pkg/__init__.py": "from .c import *", "pkg/c.py": "def one(): ...", "pkg/d.py": "two = 2"}
    world = ReferenceWorld(files)
    changed = changed_names(world.names["pkg/__init__.py"].interface, read_file("m.py", after)[1].interface)
    assert changed == {"*"} | ({"__all__"} if "__all__" in after else set())
    assert world.references("b.py") == ["g -> pkg/c.py:one call 0.95"]
    for path in ("a.py", "b.py"):
        assert "*" in world.resolve(path).lookups["pkg/__init__.py"]


@settings(max_examples=30)
@given(st.fixed_dictionaries(dict.fromkeys(PATHS, sources)))
def test_the_same_files_give_the_same_rows(files: dict[str, str]) -> None:
    first, second = ReferenceWorld(files), ReferenceWorld(dict(reversed(files.items())))
    assert first.names == second.names
    for path in PATHS:
        found = first.resolve(path)
        assert found == second.resolve(path)
        keys = [row[:4] for row in found.references]
        assert keys == sorted(set(keys))
        assert all(0.5 <= row[4] <= 1 for row in found.references)
        assert path not in {target for target, _ in found.dependencies}


@given(st.fixed_dictionaries(dict.fromkeys(PATHS, sources)), st.permutations(PATHS))
def test_what_was_resolved_before_changes_nothing(files: dict[str, str], order: list[str]) -> None:
    world = ReferenceWorld(files)
    alone = {path: world.resolve(path) for path in PATHS}
    evaluations = Evaluations(world)
    for path in order:
        assert resolve_file(path, world.names[path], evaluations) == alone[path]

"""A language that nobody heard of: a class that fills `Language`, and its line in the registry."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import tree_sitter_python
from testing.index_dump import dump_of, index
from testing.repositories import make_repository
from tree_sitter import Node

from clean_room_agent import syntax
from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.languages import registry
from clean_room_agent.languages.base import Language, ModuleRef, Modules, Reach, ReadText
from clean_room_agent.languages.interface import FileNames, write_interface, write_uses
from clean_room_agent.languages.nesting import Nested
from clean_room_agent.languages.nodes import Nodes
from clean_room_agent.languages.parsed import Definition, ParsedFile, RawImport, text_of


class ToyModules:
    """`use("a")` is the file `a.toy`."""

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = paths

    def find(self, source: str, target: str) -> ModuleRef | None:
        return ModuleRef(f"{target}.toy", None) if f"{target}.toy" in self._paths else None

    def child(self, ref: ModuleRef, name: str) -> ModuleRef | None:
        return None

    def reach(self, path: str) -> Reach:
        return Reach(everything=True)


class Plain(Language):
    """Definitions alone, as Python's grammar reads them: the least that a language says."""

    suffixes = dict.fromkeys([".plain"], "plain")
    names = dict.fromkeys(["plain"], "plain")
    nodes = Nodes(definitions=frozenset({"function_definition"}), statements=frozenset({"module"}))

    def load(self, grammar: str) -> object:
        return tree_sitter_python.language()

    def query(self, grammar: str) -> str:
        return "(function_definition) @function"

    def read(
        self, root: Node, captures: Mapping[str, Sequence[Node]], source: bytes, grammar: str
    ) -> ParsedFile:
        return ParsedFile(definitions=[definition(node, source) for node in captures.get("function", ())])


class Toy(Plain):
    """Assignments, calls and `use("module")`, as Python's grammar reads them."""

    suffixes = dict.fromkeys([".toy"], "toy")
    names = dict.fromkeys(["toy"], "toy")

    def query(self, grammar: str) -> str:
        return "(function_definition) @function (call) @call"

    def read(
        self, root: Node, captures: Mapping[str, Sequence[Node]], source: bytes, grammar: str
    ) -> ParsedFile:
        uses = [call for call in captures.get("call", ()) if text_of(source, call).startswith("use(")]
        return ParsedFile(
            definitions=[definition(node, source) for node in captures.get("function", ())],
            imports=[RawImport(text_of(source, call)[5:-2], ("run",)) for call in uses],
        )

    def read_names(
        self, captures: Mapping[str, Sequence[Node]], source: bytes, nested: Nested, parsed: ParsedFile
    ) -> FileNames:
        found = {name: (place, "f") for place, name in enumerate(nested.names)}
        imports = {"run": [(one.target, "run") for one in parsed.imports]}
        taken = [(one.target, one.names, one.kind) for one in parsed.imports]
        uses = write_uses({}, taken, [(0, "run(")] if taken else [])
        return FileNames(write_interface(found, imports, [], None), uses)

    def modules(self, paths: Collection[str], read: ReadText) -> Modules:
        return ToyModules(paths)


def definition(node: Node, source: bytes) -> Definition:
    name = node.child_by_field_name("name")
    assert name is not None
    rows = node.start_point.row + 1, node.end_point.row + 1
    return Definition(text_of(source, name), "function", *node.byte_range, *rows, text_of(source, node))


def add(language: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a line in the registry does."""
    monkeypatch.setattr(registry, "LANGUAGES", (*registry.LANGUAGES, language))
    for suffix, grammar in language.suffixes.items():
        monkeypatch.setitem(registry.BY_SUFFIX, suffix, (language, grammar))
        monkeypatch.setitem(registry.BY_GRAMMAR, grammar, language)
    registry.language_and_grammar.cache_clear()


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Which language a path has is remembered: not beyond a test."""
    yield
    registry.language_and_grammar.cache_clear()


def test_a_language_takes_a_class_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(Toy(), monkeypatch)
    a, b = "def main():\n    use('b')\n    run()\n", "def run():\n    pass\n"
    top = make_repository(tmp_path / "repo", {"a.toy": a, "b.toy": b, "c.py": b})
    index(top)
    found = dump_of(top)
    assert [(row[0], row[1]) for row in found["files"]] == [
        ("a.toy", "toy"),
        ("b.toy", "toy"),
        ("c.py", "python"),
    ]
    assert found["dependencies"] == [("a.toy", "b.toy", "import")]
    assert found["symbol_references"] == [("a.toy", "main:0", "b.toy", "run:0", "call", 0.95)]
    assert [one.symbol for one in definitions("a.toy", a)] == ["main"]
    assert syntax.outline_of(a.encode(), "a.toy") is not None


def test_a_language_without_imports_says_nothing_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(Plain(), monkeypatch)
    index(make_repository(tmp_path / "repo", {"a.plain": "def main():\n    run()\n"}))
    found = dump_of(tmp_path / "repo")
    assert [row[1] for row in found["symbols"]] == ["main"]
    assert found["dependencies"] == found["symbol_references"] == []


def test_a_language_that_is_added_has_the_repository_indexed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = make_repository(tmp_path / "repo", {"a.toy": "def main():\n    pass\n"})
    assert index(top).symbols == 0
    add(Toy(), monkeypatch)
    assert index(top).symbols == 1

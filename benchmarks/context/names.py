"""Which names a stretch of code uses, and where the repository defines them: only what is certain without types.

Bare names are followed to the file's own definitions and through its imports; `self.x` and `this.x` to the class around
and to its bases; `module.x` through the import of the module. What is a parameter or is assigned in the stretch itself
is a name of its own.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import PurePosixPath

from msgspec import Struct
from tree_sitter import Node

from benchmarks.context.snapshot import Snapshot, Symbol
from clean_room_agent import syntax

WORD = re.compile(r"[A-Za-z_$][\w$]*")
NAMES = frozenset({"identifier", "type_identifier", "shorthand_property_identifier"})
MEMBERS = frozenset({"attribute", "member_expression"})
IMPORTS = frozenset({"import_statement", "import_from_statement", "future_import_statement"})
OWN = frozenset({"self", "cls", "this"})
REQUIRE = re.compile(
    r"(?:const|let|var)\s+(\{[^}]*\}|[\w$]+)\s*=\s*require\(\s*['\"]([^'\"]+)['\"]\s*\)(?:\.(\w+))?"
)
FROM = re.compile(r"import\s+(?:type\s+)?(.*?)\s*from\s*['\"]([^'\"]+)['\"]", re.DOTALL)
BASES_OF_A_CLASS = re.compile(r"\(([^)]*)\)|\bextends\s+([\w$.]+)")
MAX_BASES = 6
SUFFIXES = ("", ".ts", ".tsx", ".js", ".mjs", ".cjs", ".jsx", "/index.ts", "/index.tsx", "/index.js")


class Use(Struct, frozen=True, kw_only=True):
    """A name that stands in code. `owner` is what stands before its dot: "" where there is none, "this" for all of OWN."""

    name: str
    owner: str
    line: int


class Imported(Struct, frozen=True, kw_only=True):
    """What an import calls a thing here. `name` is "" where it is the module itself."""

    path: str
    name: str


def words_in(text: str) -> frozenset[str]:
    """Everything in the text that could be a name."""
    return frozenset(WORD.findall(text))


class Names:
    """Names of a snapshot's files."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.imports = cache(self._imports)
        self.tree = cache(self._tree)

    def import_lines(self, path: str) -> frozenset[int]:
        """The lines of the file's import statements."""
        root = self.tree(path)
        if root is None:
            return frozenset()
        found = {
            line
            for node in _all_of(root, IMPORTS)
            for line in range(node.start_point.row + 1, node.end_point.row + 2)
        }
        if syntax.grammar_of(path) != "python":
            found |= {n for n, line in enumerate(self.snapshot.lines(path), 1) if REQUIRE.search(line)}
        return frozenset(found)

    def uses(self, path: str, first: int, last: int) -> tuple[Use, ...]:
        """The names that stand in these lines, each once with its owner, without those that the lines bind."""
        root = self.tree(path)
        if root is None:
            return ()
        bound: set[str] = set()
        found: dict[tuple[str, str], Use] = {}
        for node in _within(root, first, last):
            if node.type in MEMBERS:
                _note_member(node, found)
            elif node.type in NAMES and not _is_member_name(node):
                name = _text(node)
                if _is_bound(node):
                    bound.add(name)
                else:
                    found.setdefault(("", name), Use(name=name, owner="", line=node.start_point.row + 1))
        return tuple(use for use in found.values() if use.owner or use.name not in bound)

    def defined(self, path: str, first: int, last: int) -> dict[str, Symbol]:
        """The repository's definitions that these lines use, from outside them, by "path :: qualified name"."""
        found = {}
        for use in self.uses(path, first, last):
            symbol = self._resolve(path, first, use)
            if symbol is not None and not (symbol.path == path and first <= symbol.head <= last):
                found[f"{symbol.path} :: {symbol.qualified}"] = symbol
        return found

    def _resolve(self, path: str, line: int, use: Use) -> Symbol | None:
        if use.owner == "this":
            around = [one for one in self.snapshot.symbols(path) if one.kind == "class" and one.holds(line)]
            return self.member(around[-1], use.name) if around else None
        if use.owner:
            module = self.imports(path).get(use.owner)
            return self._exported(module.path, use.name) if module is not None and not module.name else None
        imported = self.imports(path).get(use.name)
        if imported is None:
            return self._top_level(path, use.name)
        return self._exported(imported.path, imported.name) if imported.name else None

    def _top_level(self, path: str, name: str) -> Symbol | None:
        return next((one for one in self.snapshot.symbols(path) if one.qualified == name), None)

    def _exported(self, path: str, name: str, depth: int = MAX_BASES) -> Symbol | None:
        """The definition behind a name that a module has, through modules that only hand it on."""
        found = self._top_level(path, name)
        further = self.imports(path).get(name)
        if found is not None or further is None or not further.name or not depth:
            return found
        return self._exported(further.path, further.name, depth - 1)

    def member(self, owner: Symbol, name: str, depth: int = MAX_BASES) -> Symbol | None:
        """The class's own member of this name, or the one that it inherits."""
        named = self.snapshot.named(owner.path)
        found = named.get(f"{owner.qualified}.{name}")
        if found is not None or not depth:
            return found
        head = "\n".join(self.snapshot.lines(owner.path)[owner.head - 1 : owner.head_end])
        for match in BASES_OF_A_CLASS.finditer(head):
            for base in (match[1] or match[2] or "").split(","):
                use = base.strip().partition("[")[0].rpartition(".")
                symbol = self._resolve(owner.path, 0, Use(name=use[2], owner=use[0], line=0))
                if symbol is not None and symbol.kind == "class" and symbol != owner:
                    inherited = self.member(symbol, name, depth - 1)
                    if inherited is not None:
                        return inherited
        return None

    def _imports(self, path: str) -> dict[str, Imported]:
        grammar = syntax.grammar_of(path)
        if grammar is None:
            return {}
        return dict(self._python_imports(path) if grammar == "python" else self._script_imports(path))

    def _python_imports(self, path: str) -> Iterator[tuple[str, Imported]]:
        root = self.tree(path)
        for node in _all_of(root, IMPORTS) if root is not None else ():
            if node.type != "import_from_statement":
                continue
            module = _text(node.child_by_field_name("module_name"))
            for child in node.children_by_field_name("name"):
                name, _, alias = _text(child).partition(" as ")
                target = self._module(path, f"{module}.{name}" if module.strip(".") else module + name)
                if target is not None:
                    yield alias or name, Imported(path=target, name="")
                elif (target := self._module(path, module)) is not None:
                    yield alias or name, Imported(path=target, name=name)

    def _module(self, path: str, dotted: str) -> str | None:
        """The file of a Python module, as the file at `path` names it."""
        dots = len(dotted) - len(dotted.lstrip("."))
        parts = [part for part in dotted.split(".") if part]
        if dots:
            folder = (
                PurePosixPath(path).parents[dots - 1] if dots <= len(PurePosixPath(path).parents) else None
            )
            roots = [] if folder is None else [folder]
        else:
            roots = [PurePosixPath(), PurePosixPath("src")]
        for root in roots:
            base = root.joinpath(*parts)
            for candidate in (f"{base}.py", f"{base}/__init__.py"):
                if candidate in self.snapshot.paths:
                    return candidate
        return None

    def _script_imports(self, path: str) -> Iterator[tuple[str, Imported]]:
        text = self.snapshot.text(path)
        found = [(match[1], match[2], "") for match in FROM.finditer(text)]
        found += [(match[1], match[2], match[3] or "") for match in REQUIRE.finditer(text)]
        for names, specifier, member in found:
            target = self._script(path, specifier)
            if target is None:
                continue
            default, _, listed = names.partition("{")
            for part in listed.rstrip("} \n").split(","):
                words = WORD.findall(part.replace("type ", ""))
                if words:
                    yield words[-1], Imported(path=target, name=words[0])
            for word in WORD.findall(default):
                # A default import: named here as it is there, more often than not; else a namespace.
                known = word if self._top_level(target, word) else ""
                yield word, Imported(path=target, name=member or known)

    def _script(self, path: str, specifier: str) -> str | None:
        """The file that a relative specifier names."""
        if not specifier.startswith("."):
            return None
        parts: list[str] = []
        for part in (*PurePosixPath(path).parent.parts, *specifier.split("/")):
            if part == "..":
                parts = parts[:-1]
            elif part != ".":
                parts.append(part)
        base = "/".join(parts)
        written = re.sub(r"\.[cm]?js$", "", base)  # TypeScript writes the suffix of what it compiles to
        tried = (*(base + end for end in SUFFIXES), *(written + end for end in SUFFIXES))
        return next((name for name in tried if name in self.snapshot.paths), None)

    def _tree(self, path: str) -> Node | None:
        grammar = syntax.grammar_of(path)
        if grammar is None or path not in self.snapshot.paths:
            return None
        try:
            return syntax.parse(self.snapshot.text(path).encode(), grammar).root_node
        except syntax.ParseGivenUp:
            return None


def _text(node: Node | None) -> str:
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def _all_of(root: Node, kinds: frozenset[str]) -> Iterator[Node]:
    """Nodes of these kinds in the order of the source, none inside another."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type in kinds:
            yield node
        else:
            waiting.extend(reversed(node.named_children))


def _within(root: Node, first: int, last: int) -> Iterator[Node]:
    """All named nodes that begin in these lines, in the order of the source."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.end_point.row + 1 < first or node.start_point.row + 1 > last:
            continue
        if node.start_point.row + 1 >= first:
            yield node
        waiting.extend(reversed(node.named_children))


def _note_member(node: Node, found: dict[tuple[str, str], Use]) -> None:
    parts: Sequence[Node | None] = (
        node.child_by_field_name("object"),
        node.child_by_field_name("attribute") or node.child_by_field_name("property"),
    )
    owner, name = (_text(part) for part in parts)
    owner = "this" if owner in OWN or owner.startswith("super") else owner
    if WORD.fullmatch(owner) and WORD.fullmatch(name):
        found.setdefault((owner, name), Use(name=name, owner=owner, line=node.start_point.row + 1))


def _is_member_name(node: Node) -> bool:
    parent = node.parent
    if parent is None:
        return False
    if parent.type == "attribute":
        return parent.child_by_field_name("attribute") == node
    return parent.type == "keyword_argument" and parent.child_by_field_name("name") == node


def _is_bound(node: Node) -> bool:
    """Whether the name is given to something here: a parameter, an assignment, a loop, a definition."""
    child, parent = node, node.parent
    while parent is not None:
        if parent.type in {"parameters", "formal_parameters", "lambda_parameters"}:
            return _is_parameter(node)
        side = parent.child_by_field_name("left") or parent.child_by_field_name("name")
        if parent.type in {
            "assignment",
            "for_statement",
            "for_in_clause",
            "for_in_statement",
            "variable_declarator",
        }:
            return side == child
        if parent.type in {"function_definition", "class_definition", "as_pattern_target", "catch_clause"}:
            return side == child or parent.type == "as_pattern_target"
        if parent.type not in BINDING:
            return False
        child, parent = parent, parent.parent
    return False


BINDING = frozenset(
    {
        "pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern", "identifier", "object_pattern",
        "array_pattern", "default_parameter", "typed_parameter", "typed_default_parameter",
        "dictionary_splat_pattern", "required_parameter", "optional_parameter", "rest_pattern",
        "assignment_pattern", "object_assignment_pattern", "shorthand_property_identifier_pattern",
    }
)  # fmt: skip
"""Nodes between a name and what binds it."""


def _is_parameter(node: Node) -> bool:
    """Whether a name among parameters is one, not a type or a default value of one."""
    parent = node.parent
    if parent is None or parent.type in {"type", "type_annotation"}:
        return False
    value = parent.child_by_field_name("value") or parent.child_by_field_name("right")
    return value != node

"""What the running Python says of a file's text: its first syntax error, and the names that nothing defines."""

import ast
import builtins
import re
import symtable
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

NEWER_SYNTAX: tuple[tuple[tuple[int, int], re.Pattern[str]], ...] = (
    ((3, 12), re.compile(r"^\s*(?:class|(?:async\s+)?def)\s+\w+\s*\[|^\s*type\s+\w+")),
    ((3, 12), re.compile(r"\b(?:[fF][rR]?|[rR][fF])[\"']")),
    ((3, 13), re.compile(r"^\s*(?:class|(?:async\s+)?def|type)\s+\w+\s*\[.*=")),
    ((3, 14), re.compile(r"^\s*except\*?\s+[\w.]+\s*,|\b(?:[tT][rR]?|[rR][tT])[\"']")),
    ((3, 15), re.compile(r"^\s*lazy\s+(?:import|from)\b|[\[({]\s*\*{1,2}[^\n]*\bfor\b")),
)
"""Lines that only Python from this version on can read, or reads in another way."""
NEWER_NAMES = frozenset({"EncodingWarning", "PythonFinalizationError"})
"""Of Python's builtins, what the oldest supported version lacks."""
INSTALLED = frozenset({"_", "reveal_locals", "reveal_type"})
"""What programs add to the builtins, such as gettext's function, and what only type checkers know."""
DYNAMIC = frozenset({"exec", "globals"})
"""A module that uses these may define any name."""
CATCHES_NAME_ERRORS = frozenset({"NameError", "Exception", "BaseException"})
MOST_ABOVE = 8
"""Lines that one statement may have taken until its error."""


def syntax_error(text: str) -> SyntaxError | None:
    """What the running Python says about a module's text; None if it can be compiled, or is too deeply nested to say."""
    try:
        compile(text, "<edit>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    except ValueError as error:  # a null byte
        return SyntaxError(str(error))
    except (RecursionError, MemoryError):
        return None
    return None


@lru_cache(maxsize=2)  # many answers are compared with one text
def undefined_names(text: str) -> Mapping[str, int] | None:
    """The global names that a module uses and nothing defines, each with its first line; None if that cannot be known."""
    try:
        tree = ast.parse(text)
        table = symtable.symtable(text, "<edit>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    nodes = list(ast.walk(tree))
    if _may_define_anything(nodes):
        return None
    scopes = list(_walk_scopes(table))
    defined = {one.get_name() for one in table.get_symbols() if _binds_name(one)}
    defined |= {
        one.get_name()
        for scope in scopes
        for one in scope.get_symbols()
        if one.is_declared_global() and _binds_name(one)
    }
    used = {
        one.get_name()
        for scope in scopes
        for one in scope.get_symbols()
        if one.is_referenced() and (one.is_global() or scope is table)
    }
    unknown = used - defined - set(dir(builtins)) - NEWER_NAMES - INSTALLED - _excused_names(tree, nodes)
    lines: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in unknown:
            lines[node.id] = min(node.lineno, lines.get(node.id, node.lineno))
    return {name: line for name, line in lines.items() if not (name.startswith("__") and name.endswith("__"))}


def _binds_name(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_parameter()


def _walk_scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _walk_scopes(child)


def _may_define_anything(nodes: Iterable[ast.AST]) -> bool:
    return any(
        (isinstance(node, ast.ImportFrom) and node.names[0].name == "*")
        or (isinstance(node, ast.Name) and node.id in DYNAMIC)
        for node in nodes
    )


def _excused_names(tree: ast.Module, nodes: Iterable[ast.AST]) -> set[str]:
    """Names that may be missing: they are tried, or stand in annotations that are never evaluated."""
    tried = {
        name.id
        for node in nodes
        if isinstance(node, ast.Try) and any(map(_catches_name_errors, node.handlers))
        for statement in node.body
        for name in ast.walk(statement)
        if isinstance(name, ast.Name)
    }
    postponed = any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and node.names[0].name == "annotations"
        for node in tree.body
    )
    if not postponed:
        return tried
    annotated = [one for node in nodes for one in _annotations(node)]
    inside = [one for node in annotated for one in ast.walk(node) if isinstance(one, ast.Name)]
    places = {(one.lineno, one.col_offset) for one in inside}
    evaluated = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and (node.lineno, node.col_offset) not in places
    }
    return tried | ({one.id for one in inside} - evaluated)


def _catches_name_errors(handler: ast.ExceptHandler) -> bool:
    caught = ast.walk(handler.type) if handler.type is not None else ()
    return handler.type is None or any(
        isinstance(node, ast.Name) and node.id in CATCHES_NAME_ERRORS for node in caught
    )


def _annotations(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
        yield node.annotation
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
        yield node.returns


def may_be_newer(text: str, error: SyntaxError) -> bool:
    """Whether the error may be of a Python that is newer than the running one: by its line, alone or with lines above it."""
    lines = text.split("\n")
    last = min(error.lineno or 1, len(lines))
    near = [" ".join(lines[first:last]) for first in range(max(last - MOST_ABOVE, 0), last)]
    return any(
        pattern.search(line)
        for version, pattern in NEWER_SYNTAX
        if version > sys.version_info[:2]
        for line in near
    )

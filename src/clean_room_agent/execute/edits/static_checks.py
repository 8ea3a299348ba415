"""What is certainly wrong with the new text of a file, found without running anything: it cannot be parsed, or it uses a name
that nothing defines.

Nothing valid is refused: what one parser does not know may be newer than that parser. So Python's own compiler judges
Python, unless the text has syntax that came after it. An error node of tree-sitter is only a suspicion; what convicts are
brackets and quotes that do not pair off, as in an answer that lost a line. The tests decide on the rest.
"""

import ast
import builtins
import re
import symtable
import sys
from collections.abc import Iterator

from clean_room_agent.artifacts.names import listed
from clean_room_agent.syntax import MAX_PARSED_BYTES, grammar_of, parses_cleanly, tree_of

PYTHON = "python"
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
PAIRS = {")": "(", "]": "[", "}": "{"}
OPENING = {"(": "(", "[": "[", "{": "{", "${": "{"}
QUOTES = frozenset({'"', "'", "`"})
MOST_ABOVE = 8
"""Lines that one statement may have taken until its error."""
MOST_NAMES = 3
"""Undefined names that a message has."""
MOST_QUOTED = 200


def fault_of(path: str, before: str, after: str) -> str:
    """Why the new text `after` of the file is refused, in words; "" if nothing is known to be wrong with it. `before` is
    its text without the edits, "" for a new file: what was wrong there may stay so.
    """
    return syntax_fault(path, before, after) or name_fault(path, before, after)


def syntax_fault(path: str, before: str, after: str) -> str:
    """The first syntax error in `after`, in words, if `before` had none; else ""."""
    grammar = grammar_of(path)
    if grammar is None or max(map(len, (before, after))) > MAX_PARSED_BYTES:
        return ""
    if grammar == PYTHON and python_error(before) is None:
        error = python_error(after)
        if error is None:
            return ""
        if not _may_be_newer(after, error):
            return _in_words(after, error.lineno or 1, error.msg)
    return _unpaired(path, before, after)


def name_fault(path: str, before: str, after: str) -> str:
    """Which names `after` leaves undefined that `before` did not, in words; "" if none is known to be."""
    found = undefined_names(path, before, after)
    if not found:
        return ""
    names = [
        f"{name} (line {line})" for name, line in sorted(found.items(), key=lambda one: (one[1], one[0]))
    ]
    return f"nothing defines {listed(names, MOST_NAMES)} in this file: define or import what is used, or do without it"


def undefined_names(path: str, before: str, after: str) -> dict[str, int]:
    """The names that `after` leaves undefined and `before` did not, each with its first line; none where that cannot be known."""
    grammar = grammar_of(path)
    if grammar is None or max(map(len, (before, after))) > MAX_PARSED_BYTES:
        return {}
    if grammar != PYTHON:
        from clean_room_agent.execute.edits.script_names import undefined_in_script

        return undefined_in_script(path, before, after)
    known, now = undefined_in_python(before), undefined_in_python(after)
    return {} if known is None or now is None else {one: now[one] for one in now if one not in known}


def python_error(text: str) -> SyntaxError | None:
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


def undefined_in_python(text: str) -> dict[str, int] | None:
    """The global names that a module uses and nothing defines, each with its first line; None if that cannot be known."""
    try:
        tree = ast.parse(text)
        table = symtable.symtable(text, "<edit>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if _may_define_anything(tree):
        return None
    scopes = list(_scopes(table))
    defined = {one.get_name() for one in table.get_symbols() if _binds(one)}
    defined |= {
        one.get_name()
        for scope in scopes
        for one in scope.get_symbols()
        if one.is_declared_global() and _binds(one)
    }
    used = {
        one.get_name()
        for scope in scopes
        for one in scope.get_symbols()
        if one.is_referenced() and (one.is_global() or scope is table)
    }
    unknown = used - defined - set(dir(builtins)) - NEWER_NAMES - INSTALLED - _excused(tree)
    lines: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in unknown:
            lines[node.id] = min(node.lineno, lines.get(node.id, node.lineno))
    return {name: line for name, line in lines.items() if not (name.startswith("__") and name.endswith("__"))}


def _binds(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_parameter()


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def _may_define_anything(tree: ast.Module) -> bool:
    return any(
        (isinstance(node, ast.ImportFrom) and node.names[0].name == "*")
        or (isinstance(node, ast.Name) and node.id in DYNAMIC)
        for node in ast.walk(tree)
    )


def _excused(tree: ast.Module) -> set[str]:
    """Names that may be missing: they are tried, or stand in annotations that are never evaluated."""
    tried = {
        name.id
        for node in ast.walk(tree)
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
    annotated = [one for node in ast.walk(tree) for one in _annotations(node)]
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


def _may_be_newer(text: str, error: SyntaxError) -> bool:
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


def _unpaired(path: str, before: str, after: str) -> str:
    """The first bracket or quote without its other half, if tree-sitter suspects `after` and did not suspect `before`."""
    new = tree_of(after.encode("utf-8", "replace"), path)
    if (
        new is None
        or not new.root_node.has_error
        or not parses_cleanly(before.encode("utf-8", "replace"), path)
    ):
        return ""
    open_: list[tuple[str, int]] = []
    stack = [new.root_node]
    while stack:
        node = stack.pop()
        row = node.start_point.row
        if node.is_missing:
            continue
        if node.children:
            stack.extend(reversed(node.children))
        elif node.type in QUOTES:
            if open_ and open_[-1][0] == node.type:
                open_.pop()
            else:
                open_.append((node.type, row))
        elif node.type in OPENING:
            open_.append((OPENING[node.type], row))
        elif node.type in PAIRS:
            if not open_:
                return _in_words(after, row + 1, f"nothing opens this {node.type}")
            opened, at = open_.pop()
            if opened != PAIRS[node.type]:
                return _in_words(
                    after, at + 1, f"this {opened} is not closed before the {node.type} of line {row + 1}"
                )
    return _in_words(after, open_[-1][1] + 1, f"this {open_[-1][0]} is never closed") if open_ else ""


def _in_words(text: str, line: int, said: str) -> str:
    lines = text.split("\n")
    shown = lines[min(max(line, 1), len(lines)) - 1].strip()
    return (
        f"the file no longer parses; the first syntax error is at line {line}: {shown[:MOST_QUOTED]} ({said})"
    )

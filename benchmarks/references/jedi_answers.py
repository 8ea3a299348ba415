"""What jedi says each name of some files stands for, as JSON lines; runs under an interpreter that has jedi.

    PYTHON_WITH_JEDI -m benchmarks.references.jedi_answers ROOT OUTPUT SEARCH_PATH... < paths, one a line

A line of output: `[path, [[line, name, is_attribute, [[path, line, name, kind], ...]], ...]]`. Of one dotted expression
only the first occurrence in a function, a class body or a statement at module level is asked for. A name that the
function binds itself, as a parameter or by an assignment, is no symbol and is not asked for. It imports nothing else
of this repository, so that any interpreter can run it.
"""

import ast
import builtins
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BUILTINS = frozenset(dir(builtins))
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def main() -> None:
    """Ask for every path given."""
    jedi = importlib.import_module("jedi")

    root, output, searched = sys.argv[1], sys.argv[2], sys.argv[3:]
    project = jedi.Project(path=root, added_sys_path=[str(Path(root) / one) for one in searched])
    with Path(output).open("w", encoding="utf-8") as file:
        for path in sys.stdin.read().split("\n"):
            if path:
                source = (Path(root) / path).read_bytes().decode("utf-8")
                script = jedi.Script(source, path=Path(root) / path, project=project)
                file.write(json.dumps([path, list(answers(script, source, Path(root)))]) + "\n")
                file.flush()


def answers(script: Any, source: str, root: Path) -> Iterator[list[Any]]:
    """What jedi says of each occurrence."""
    lines = source.split("\n")
    for line, column, name, is_attribute in occurrences(source):
        characters = len(lines[line - 1].encode()[:column].decode())
        try:
            found = script.goto(line, characters, follow_imports=True)
        except Exception as exc:  # noqa: BLE001 - jedi fails in many ways; each is no answer
            print(script.path, line, repr(exc)[:200], file=sys.stderr)
            found = []
        yield [line, name, is_attribute, [target(one, root) for one in found]]


def target(found: Any, root: Path) -> list[Any]:
    """Where a definition stands: "" for what is outside of the repository."""
    path = found.module_path
    inside = path is not None and path.is_relative_to(root)
    return [str(path.relative_to(root)) if inside else "", found.line or 0, found.name, found.type]


def occurrences(source: str) -> list[tuple[int, int, str, bool]]:
    """Line, column in bytes, name and whether it is an attribute, of those names that are read; in order."""
    found: dict[tuple[int, str], tuple[int, int, str, bool]] = {}
    for scope, own, node in walk(ast.parse(source), 0, frozenset()):
        if isinstance(node, ast.Name):
            if node.id not in own and node.id not in BUILTINS and isinstance(node.ctx, ast.Load):
                found.setdefault((scope, node.id), (node.lineno, node.col_offset, node.id, False))
        elif isinstance(node, ast.Attribute) and node.end_lineno and node.end_col_offset is not None:
            column = node.end_col_offset - len(node.attr.encode())
            if isinstance(node.ctx, ast.Load):
                found.setdefault((scope, ast.unparse(node)), (node.end_lineno, column, node.attr, True))
    return sorted(found.values())


def walk(node: ast.AST, scope: int, own: frozenset[str]) -> Iterator[tuple[int, frozenset[str], ast.AST]]:
    """Every node with a number for the scope that it stands in and the names which that scope's functions bind."""
    for child in ast.iter_child_nodes(node):
        inner, names = scope, own
        if isinstance(node, ast.Module):
            inner = child.lineno if isinstance(child, ast.stmt) else 0
        if isinstance(child, SCOPES):
            inner = child.lineno * 1000 + child.col_offset + 1_000_000
            if not isinstance(child, ast.ClassDef):
                names = own | bound(child)
        elif isinstance(node, ast.ClassDef) and isinstance(child, ast.stmt):
            inner = child.lineno * 1000 + 999 + 1_000_000
        yield inner, names, child
        yield from walk(child, inner, names)


def bound(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """Parameters and names that are assigned in the function, those that it imports or defines left out."""
    arguments = function.args
    names = {
        one.arg
        for one in (
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        )
        if one
    }
    others: set[str] = set()
    pending: list[ast.AST] = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            others.update(node.names)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            others.update((one.asname or one.name).partition(".")[0] for one in node.names)
        if isinstance(node, SCOPES):
            if not isinstance(node, ast.Lambda):
                others.add(node.name)
        else:
            pending.extend(ast.iter_child_nodes(node))
    return frozenset(names - others)


if __name__ == "__main__":
    main()

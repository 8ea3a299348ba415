"""What others name in source files: Python's `ast`, the TypeScript compiler, universal-ctags."""

import ast
import json
import subprocess
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

SCRIPT = Path(__file__).with_name("typescript.mjs")
CTAGS_KINDS = {
    "function": "function",
    "generator": "function",
    "class": "class",
    "interface": "interface",
    "enum": "enum",
    "alias": "type_alias",
    "method": "method",
    "member": "method",
    "getter": "method",
    "setter": "method",
}


class Thing(NamedTuple):
    """A named piece of a file."""

    name: str
    kind: str
    start: int
    """First line, decorators included where the peer says; 1-based."""
    end: int
    """Last line; 0 where the peer does not say."""
    place: str = ""
    """What the peer says of where it stands; "" for nothing special."""


Named = dict[str, list[Thing]]
"""By path, in the peer's order; files that the peer cannot parse are missing."""


def by_ast(top: Path, paths: Sequence[str]) -> Named:
    """Functions, classes and methods by Python's own parser."""
    named: Named = {}
    for path in paths:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse((top / path).read_bytes())
        except (SyntaxError, ValueError):
            continue
        named[path] = list(_in_scope(tree, holder=""))
    return named


def _in_scope(node: ast.AST, *, holder: str) -> Iterator[Thing]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            start = min([child.lineno, *(one.lineno for one in child.decorator_list)])
            kind = (
                "class" if isinstance(child, ast.ClassDef) else "method" if holder == "class" else "function"
            )
            yield Thing(child.name, kind, start, child.end_lineno or start)
            yield from _in_scope(child, holder="class" if kind == "class" else "function")
        else:
            yield from _in_scope(child, holder=holder)


def by_typescript(top: Path, paths: Sequence[str], work: Path) -> Named:
    """All that the TypeScript compiler's parser names; `work` gets the compiler where it has none."""
    if not (work / "node_modules" / "typescript").exists():
        work.mkdir(parents=True, exist_ok=True)
        install = (
            "npm",
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--prefix",
            str(work),
            "typescript@5",
        )
        subprocess.run(install, check=True)
    files = "\0".join(str(top / path) for path in paths)
    run = subprocess.run(
        ["node", str(SCRIPT), str(work)], input=files, capture_output=True, text=True, check=True
    )
    named: Named = {}
    for path, line in zip(paths, run.stdout.splitlines(), strict=True):
        read = json.loads(line)
        if not read["broken"]:
            named[path] = [Thing(*row) for row in read["rows"]]
    return named


def by_ctags(top: Path, paths: Sequence[str]) -> Named:
    """Functions, classes, methods, interfaces, aliases and enums by universal-ctags, without parameters."""
    options = ("--output-format=json", "--fields=+neK", "--sort=no", "-L", "-", "-f", "-")
    files = "\n".join(path for path in paths if "\n" not in path)
    run = subprocess.run(
        ["ctags", *options], cwd=top, input=files, capture_output=True, text=True, check=True
    )
    named: Named = {path: [] for path in paths}
    for line in run.stdout.splitlines():
        tag = json.loads(line)
        kind = CTAGS_KINDS.get(tag.get("kind", ""))
        if tag.get("_type") == "tag" and kind is not None and tag["path"] in named:
            named[tag["path"]].append(Thing(tag["name"], kind, tag["line"], tag.get("end", 0)))
    return named

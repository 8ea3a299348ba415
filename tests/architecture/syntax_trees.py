"""The program's sources as Python reads them, each parsed once: parsing all of them takes a second and a half."""

import ast
import gc
import re
from functools import cache
from pathlib import Path


@cache
def sources_with(folder: Path, pattern: str) -> tuple[Path, ...]:
    """The modules below the folder whose text has a match: what holds none need not be parsed."""
    found = re.compile(pattern)
    return tuple(
        path for path in sorted(folder.rglob("*.py")) if found.search(path.read_text(encoding="utf-8"))
    )


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of the module, the module first, each before those below it."""
    text = path.read_text(encoding="utf-8")
    gc.disable()  # looking for garbage among so many nodes took longer than to make them
    try:
        return tuple(ast.walk(ast.parse(text)))
    finally:
        gc.enable()

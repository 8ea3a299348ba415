"""The program's sources as Python reads them, each parsed once: parsing all of them takes a second and a half."""

import ast
from functools import cache
from pathlib import Path


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of the module, the module first, each before those below it."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))

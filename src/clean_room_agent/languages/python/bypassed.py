"""What a changed function leaves without effect: code that is never reached any more, parameters that it no longer uses.

    def is_arity(n, func):                  def is_arity(n, func):
        varargs = has_varargs(func)             return True
        if varargs:                             if varargs:
            return False                            return False
        return n == required(func)              return n == required(func)

An example or two are green with it, and it is seldom what was meant.
"""

import ast
from collections.abc import Iterator
from functools import lru_cache

Function = ast.FunctionDef | ast.AsyncFunctionDef
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
BLOCKS = ("body", "orelse", "finalbody")


def bypassed(symbol: str, before: str, after: str) -> str:
    """What of the function `symbol` (qualified) has an effect in the text `before` and none in `after`, in words; "" for nothing,
    and where that cannot be known.
    """
    old, new = _find_function(before, symbol), _find_function(after, symbol)
    if old is None or new is None:
        return ""
    name = symbol.rpartition(".")[2]
    if _count_unreached(new) > _count_unreached(old):
        return f"a part of {name} is never reached"
    dropped = sorted((_parameters(old) & _parameters(new) & _used_names(old)) - _used_names(new))
    return f"{name} no longer uses {dropped[0]}" if dropped else ""


def _find_function(text: str, symbol: str) -> Function | None:
    """The last definition of that name, as the interpreter would find it."""
    scope: ast.AST | None = _parse(text)
    for part in symbol.split("."):
        found = [one for one in _own_definitions(scope) if one.name == part] if scope else []
        scope = found[-1] if found else None
    return scope if isinstance(scope, Function) else None


@lru_cache(maxsize=2)  # many answers are compared with one text
def _parse(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _own_definitions(scope: ast.AST) -> Iterator[Function | ast.ClassDef]:
    """Those in its blocks, not those within them."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, Function | ast.ClassDef):
            yield child
        else:
            yield from _own_definitions(child)


def _count_unreached(function: Function) -> int:
    """The blocks in which something follows a statement that always leaves them."""
    blocks = (getattr(node, name, None) for node in ast.walk(function) for name in BLOCKS)
    return sum(isinstance(block, list) and any(map(_always_leaves, block[:-1])) for block in blocks)


def _always_leaves(statement: ast.stmt) -> bool:
    match statement:
        case ast.If(body=body, orelse=[*_, last]):
            return _always_leaves(body[-1]) and _always_leaves(last)
        case ast.With(body=body) | ast.AsyncWith(body=body):
            return _always_leaves(body[-1])
        case _:
            return isinstance(statement, LEAVES)


def _parameters(function: Function) -> set[str]:
    given = function.args
    single = [one for one in (given.vararg, given.kwarg) if one is not None]
    return {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, *single)}


def _used_names(function: Function) -> set[str]:
    nodes = (node for statement in function.body for node in ast.walk(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}

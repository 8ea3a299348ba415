"""Small faults of a Python file, each one textual change within a function."""

import ast
from collections.abc import Iterator
from itertools import accumulate

from clean_room_agent.languages.mutation import Mutation

COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">"),
    ast.LtE: ("<", ">="),
    ast.Gt: (">=", "<"),
    ast.GtE: (">", "<="),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
Functions = ast.FunctionDef | ast.AsyncFunctionDef
Located = ast.expr | ast.stmt


class MutableText:
    """A file's text and where its nodes are in it."""

    def __init__(self, text: str) -> None:
        self.raw = text.encode()
        self.tree = ast.parse(text)
        self._lines = list(accumulate(map(len, self.raw.splitlines(keepends=True)), initial=0))

    def start(self, node: Located) -> int:
        """Its first byte."""
        return self._lines[node.lineno - 1] + node.col_offset

    def end(self, node: Located) -> int:
        """The byte after its last one."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: Located) -> str:
        """As it is written."""
        return self.raw[self.start(node) : self.end(node)].decode()

    def replaced(self, kind: str, node: Located, new: str) -> Mutation:
        """`new` in the place of the node."""
        return Mutation(kind=kind, start=self.start(node), end=self.end(node), new=new)

    def between(self, kind: str, left: Located, right: Located, new: str) -> Iterator[Mutation]:
        """`new` in the place of the operator between two operands, unless there are brackets or lines in between."""
        start, end = self.end(left), self.start(right)
        if not set(self.raw[start:end].decode()) & set("()\n#"):
            yield Mutation(kind=kind, start=start, end=end, new=f" {new} ")


def mutations(text: str) -> list[Mutation]:
    """Every mutation of the file's functions, in order; docstrings are left alone. Not every result need parse: to try
    them all takes minutes in a long file.

    Raises:
        SyntaxError: the file does not parse.
    """
    source = MutableText(text)
    found: set[Mutation] = set()
    for function in ast.walk(source.tree):
        if isinstance(function, Functions):
            names = local_names(function)
            for statement in function.body:
                if not is_docstring(statement):
                    for node in ast.walk(statement):
                        found.update(_of_node(source, node, names))
    return sorted(found)


def local_names(function: Functions) -> list[str]:
    """Parameters and variables of the function, sorted."""
    parameters = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
    stored = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return sorted((parameters | stored) - {"self", "cls"})


def is_docstring(statement: ast.stmt) -> bool:
    """Whether it is a string on its own."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _of_node(source: MutableText, node: ast.AST, names: list[str]) -> Iterator[Mutation]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            for new in COMPARISONS[type(operator)]:
                yield from source.between("comparison", left, right, new)
        case ast.BinOp(op=ast.Add() | ast.Sub(), left=left, right=ast.Constant(value=1)):
            yield source.replaced("off by one", node, source.text(left))
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            yield source.replaced("off by one", node, str(number + 1))
        case ast.Assign() | ast.AugAssign() | ast.Raise() | ast.Expr(value=ast.Call()):
            yield source.replaced("dropped statement", node, "pass")
        case ast.Name(id=name, ctx=ast.Load()) if name in names and len(names) > 1:
            yield source.replaced("wrong name", node, names[(names.index(name) + 1) % len(names)])
        case ast.Call():
            yield from _of_call(source, node)
        case ast.Dict(keys=[_, _, *_]):
            key, value = node.keys[-1], node.values[-1]
            if key is not None:
                start = source.end(node.values[-2])
                yield Mutation(kind="lost key", start=start, end=source.end(value), new="")


def _of_call(source: MutableText, call: ast.Call) -> Iterator[Mutation]:
    match call.args:
        case [first, second, *_] if not isinstance(first, ast.Starred) and not isinstance(
            second, ast.Starred
        ):
            new = f"{source.text(second)}, {source.text(first)}"
            start, end = source.start(first), source.end(second)
            yield Mutation(kind="swapped arguments", start=start, end=end, new=new)
    if call.keywords and call.keywords[-1].arg is not None and len(call.args) + len(call.keywords) > 1:
        before = call.keywords[-2].value if len(call.keywords) > 1 else call.args[-1]
        start, end = source.end(before), source.end(call.keywords[-1].value)
        yield Mutation(kind="lost key", start=start, end=end, new="")

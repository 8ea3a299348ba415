"""What the oracle declares: of what a commit adds, the signatures, with each body a stub."""

from collections.abc import Collection, Iterator, Sequence

from tree_sitter import Node

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.execute.edits.stubs import scaffold_faults
from clean_room_agent.syntax import grammar_of, nodes_of, parse
from clean_room_agent.training.gold_edits import (
    GoldFile,
    ShownPiece,
    edits_for,
)

PYTHON_STUB, OTHER_STUB = "raise NotImplementedError", 'throw new Error("not implemented");'


def scaffold_of(file: GoldFile) -> str | None:
    """The text of a file that the commit creates, once the oracle has declared what is in it; None where that is nothing that a
    scaffold may hold, or the file is not new.
    """
    if file.after is None or file.before is not None or grammar_of(file.path) is None:
        return None
    text = _with_stubs(file.path, file.after)
    return None if scaffold_faults(file.path, text) else text


def new_names(file: GoldFile) -> list[str]:
    """Qualified names of what the commit adds with the file, where a scaffold may declare it."""
    return list(dict.fromkeys(one.symbol for one in definitions(file.path, scaffold_of(file) or "")))


def added_names(file: GoldFile) -> set[str]:
    """Names, without those of their classes, of all that the commit defines in the file and that was not there."""

    def names(text: str | None) -> set[str]:
        return {one.symbol.rpartition(".")[2] for one in definitions(file.path, text or "")}

    return names(file.after) - names(file.before)


def bodies_for(file: GoldFile, symbols: Sequence[str], shown: Sequence[ShownPiece]) -> list[PatchEdit]:
    """The edits that write these of the scaffold's stubs; of a file without a scaffold, all of its change."""
    if scaffold_of(file) is None:
        return edits_for(file, shown)
    after = file.after or ""
    bodies = {one.symbol: after[one.start : one.end] for one in definitions(file.path, after)}
    return [
        PatchEdit(kind="symbol", file_path=file.path, symbol=symbol, replacement=bodies[symbol])
        for symbol in symbols
        if symbol in bodies
    ]


def _with_stubs(path: str, text: str) -> str:
    """The text with a stub for the body of each function, its docstring kept."""
    source, grammar = text.encode(), grammar_of(path) or ""
    spans: list[tuple[int, int, bytes]] = []
    for node in _outermost(parse(source, grammar).root_node, nodes_of(path).functions):
        body = node.child_by_field_name("body")
        if body is None or body.type not in {"block", "statement_block"}:
            continue
        statements = [child for child in body.named_children if child.type != "comment"]
        if grammar == "python":
            first = statements[0]
            kept = first.type == "expression_statement" and first.named_children[0].type == "string"
            if kept and len(statements) == 1:
                indent = b" " * first.start_point.column
                spans.append((first.end_byte, first.end_byte, b"\n" + indent + PYTHON_STUB.encode()))
            else:
                begin = statements[1] if kept else first
                spans.append((begin.start_byte, body.end_byte, PYTHON_STUB.encode()))
        else:
            spans.append((body.start_byte, body.end_byte, f"{{ {OTHER_STUB} }}".encode()))
    for start, end, stub in sorted(spans, reverse=True):
        source = source[:start] + stub + source[end:]
    return source.decode()


def _outermost(node: Node, functions: Collection[str]) -> Iterator[Node]:
    """Each function that is in no other."""
    for child in node.named_children:
        if child.type in functions:
            yield child
        else:
            yield from _outermost(child, functions)

"""What the oracle declares: of what a commit adds, the signatures, with each body a stub."""

import difflib
from collections.abc import Collection, Iterator, Sequence

from tree_sitter import Node

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.execute.edits.stubs import FUNCTIONS, scaffold_faults, stub_names
from clean_room_agent.syntax import grammar_of, parse
from clean_room_agent.training.gold_edits import (
    GoldFile,
    Group,
    Shown,
    edit_groups,
    edits_for,
    lines_of,
    touches,
)

PYTHON_STUB, OTHER_STUB = "raise NotImplementedError", 'throw new Error("not implemented");'


def scaffold_of(file: GoldFile) -> str | None:
    """The file's text once the oracle has declared what the commit adds to it; None where that is nothing that a scaffold may
    hold.
    """
    if file.after is None or grammar_of(file.path) is None:
        return None
    before = file.before or ""
    stubbed = _with_stubs(file.path, before, file.after)
    text = stubbed if file.before is None else _additions(before, stubbed, file.path)
    return None if text == before or scaffold_faults(file.path, before, text) else text


def scaffolded(file: GoldFile) -> GoldFile:
    """The rest of the file's change once its scaffold stands."""
    text = scaffold_of(file)
    return file if text is None else GoldFile(path=file.path, before=text, after=file.after)


def new_names(file: GoldFile) -> list[str]:
    """Qualified names of what the commit adds to the file, where a scaffold may declare it."""
    text = scaffold_of(file)
    known = {one.symbol for one in definitions(file.path, file.before or "")}
    found = () if text is None else definitions(file.path, text)
    return list(dict.fromkeys(one.symbol for one in found if one.symbol not in known))


def added_names(file: GoldFile) -> set[str]:
    """Names, without those of their classes, of all that the commit defines in the file and that was not there."""

    def names(text: str | None) -> set[str]:
        return {one.symbol.rpartition(".")[2] for one in definitions(file.path, text or "")}

    return names(file.after) - names(file.before)


def bodies_for(file: GoldFile, symbols: Sequence[str], shown: Sequence[Shown]) -> list[PatchEdit]:
    """The edits that write these of the scaffold's stubs; with all of them or none, also the rest of the file's change."""
    rest = scaffolded(file)
    before, after = rest.before or "", rest.after or ""
    new = {one.symbol: after[one.start : one.end] for one in definitions(file.path, after)}
    known = stub_names(file.path, file.before or "")
    stubs = {
        one.symbol: range(before.count("\n", 0, one.start), before.count("\n", 0, one.end) + 1)
        for one in definitions(file.path, before)
        if one.symbol in stub_names(file.path, before) and one.symbol not in known
    }
    groups = edit_groups(rest)
    places = [place for place, group in enumerate(groups) if _holds_more(rest, group, stubs.values())]
    whole = set(symbols) >= set(stubs)
    # What stands in a change that holds more is written with it, where both are asked for.
    apart = [
        symbol
        for symbol in symbols
        if symbol in new
        and symbol in stubs
        and not (
            whole
            and touches([groups[place] for place in places], stubs[symbol].start + 1, stubs[symbol].stop)
        )
    ]
    edits = [
        PatchEdit(kind="symbol", file_path=file.path, symbol=symbol, replacement=new[symbol])
        for symbol in apart
    ]
    if symbols and not whole and set(symbols) <= set(stubs):
        return edits
    if not symbols:
        places = [
            place
            for place in places
            if not any(touches([groups[place]], span.start + 1, span.stop) for span in stubs.values())
        ]
    return edits + edits_for(rest, shown, places)


def _holds_more(file: GoldFile, group: Group, stubs: Collection[range]) -> bool:
    """Whether the change, which may be several that stand near each other, changes lines outside of the stubs."""
    old, new = (
        lines_of(file.before or "")[group[0] : group[1]],
        lines_of(file.after or "")[group[2] : group[3]],
    )
    changed = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for tag, i1, i2, _, _ in changed:
        lines = range(group[0] + i1, group[0] + max(i2, i1 + 1))
        inside = any(lines.start in span and lines.stop - 1 in span for span in stubs)
        behind = i1 == i2 and any(lines.start - 1 in span for span in stubs)  # belongs to the stub
        if tag != "equal" and not (inside or behind):
            return True
    return False


def _with_stubs(path: str, before: str, text: str) -> str:
    """The text with each function as it was `before`; a new one's body is a stub, its docstring kept."""
    source, grammar = text.encode(), grammar_of(path) or ""
    known = {
        name: node.text or b"" for name, node in _outermost(parse(before.encode(), grammar).root_node, "")
    }
    spans: list[tuple[int, int, bytes]] = []
    for name, node in _outermost(parse(source, grammar).root_node, ""):
        body = node.child_by_field_name("body")
        if name in known:
            spans.append((node.start_byte, node.end_byte, known[name]))
            continue
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


def _outermost(node: Node, holder: str) -> Iterator[tuple[str, Node]]:
    """Name and node of each function that is in no other."""
    for child in node.named_children:
        name_node = child.child_by_field_name("name")
        named = name_node is not None and child.type != "decorator"
        name = (
            f"{holder}.{(name_node.text or b'').decode()}".removeprefix(".")
            if named and name_node
            else holder
        )
        if child.type in FUNCTIONS:
            yield name, child
        else:
            yield from _outermost(child, name)


def _additions(before: str, stubbed: str, path: str) -> str:
    """`before` with those changes made that add lines alone, each only where a scaffold may hold it."""
    old, new = lines_of(before), lines_of(stubbed)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    taken: list[tuple[int, int, int, int]] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        group = i1, i2, j1, j2
        if tag == "insert" and not scaffold_faults(path, before, _made(old, new, [*taken, group])):
            taken.append(group)
    return _made(old, new, taken) if taken else before


def _made(old: list[str], new: list[str], groups: list[tuple[int, int, int, int]]) -> str:
    lines: list[str] = []
    place = 0
    for i1, i2, j1, j2 in groups:
        lines += old[place:i1] + new[j1:j2]
        place = i2
    return "\n".join(lines + old[place:]) + "\n"

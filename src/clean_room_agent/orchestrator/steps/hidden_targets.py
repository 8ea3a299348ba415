"""What a step is to change and its prompt has no place for."""

import re

from clean_room_agent.artifacts.package import ContextPackage, DroppedItem
from clean_room_agent.artifacts.plans import PlanStep
from clean_room_agent.execute.edits.definitions import definition_spans
from clean_room_agent.orchestrator.commit_tree import Tree

PIECE = re.compile(r"(?P<symbol>.*?)(?: \((?:head|lines (?P<first>\d+)-(?P<last>\d+))\))?", re.DOTALL)
"""What a context calls a piece: a symbol, its head, or some lines of it where it is divided."""
LINES = re.compile(r" \(lines [\d, -]+\)\Z")


def unshown_targets(step: PlanStep, package: ContextPackage) -> tuple[str, ...]:
    """The files and symbols that the step names and the context had to leave out, in its order.

    A symbol is `path::symbol`; where only some of its lines are left out, `path::symbol (lines 4-90)`.
    """
    shown = {(item.path, item.symbol) for item in package.primary()}
    paths = {path for path, _ in shown}
    found: dict[str, list[tuple[int, int]]] = {}
    for item in package.dropped:
        if item.detail != "primary" or (item.path, item.symbol) in shown or not _is_target(item, step):
            continue
        if item.symbol is not None:
            symbol, lines = _parts(item.symbol)
            found.setdefault(f"{item.path}::{symbol}", []).extend(lines)
        elif item.path not in paths:
            found.setdefault(item.path, [])
    return tuple(name + _in_words(lines) for name, lines in found.items())


def unchanged(names: tuple[str, ...], before: Tree, after: Tree) -> tuple[str, ...]:
    """Those of `names` (as `unshown_targets` gives them) whose text is the same in both trees."""
    return tuple(name for name in names if _text(name, before) == _text(name, after))


def _is_target(item: DroppedItem, step: PlanStep) -> bool:
    if item.path not in {target.path for target in step.target_files}:
        return False
    return item.symbol is None or any(_is_same(_parts(item.symbol)[0], name) for name in step.target_symbols)


def _is_same(symbol: str, name: str) -> bool:
    """Whether a plan's `name`, which may leave out the class, is that of the symbol."""
    return symbol == name or symbol.endswith(f".{name}")


def _parts(piece: str) -> tuple[str, list[tuple[int, int]]]:
    """The symbol, and the lines of it where the piece is some of them."""
    match = PIECE.fullmatch(piece)
    assert match is not None, "the pattern fits every text"
    lines = [(int(match["first"]), int(match["last"]))] if match["first"] else []
    return match["symbol"], lines


def _in_words(lines: list[tuple[int, int]]) -> str:
    """The lines, neighbours joined; "" for none."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(lines):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return f" (lines {', '.join(f'{first}-{last}' for first, last in joined)})" if joined else ""


def _text(name: str, tree: Tree) -> tuple[str, ...]:
    """The text of the file, or of each definition with the symbol's name; nothing where it is not there."""
    path, _, symbol = LINES.sub("", name).partition("::")
    texts, _ = tree.texts((path,))
    if path not in texts or not symbol:
        return tuple(texts.values())
    text = texts[path]
    return tuple(
        text[span.start : span.end] for span in definition_spans(path, text) if span.symbol == symbol
    )

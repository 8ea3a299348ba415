"""What a step is to change and its prompt has no room for."""

from clean_room_agent.artifacts.package import ContextPackage, DroppedItem
from clean_room_agent.artifacts.plans import PlanStep
from clean_room_agent.execute.edits.definitions import definition_spans
from clean_room_agent.orchestrator.tree import Tree


def unshown_targets(step: PlanStep, room: ContextPackage) -> tuple[str, ...]:
    """The files and symbols (`path::symbol`) that the step names and the room had to leave out, in the room's order."""
    shown = {(item.path, item.symbol) for item in room.primary()}
    paths = {path for path, _ in shown}
    names = []
    for item in room.dropped:
        if item.detail != "primary" or (item.path, item.symbol) in shown or not _is_target(item, step):
            continue
        if item.symbol is not None:
            names.append(f"{item.path}::{item.symbol}")
        elif item.path not in paths:
            names.append(item.path)
    return tuple(dict.fromkeys(names))


def unchanged(names: tuple[str, ...], before: Tree, after: Tree) -> tuple[str, ...]:
    """Those of `names` (as `unshown_targets` gives them) whose text is the same in both trees."""
    return tuple(name for name in names if _text(name, before) == _text(name, after))


def _is_target(item: DroppedItem, step: PlanStep) -> bool:
    if item.path not in {target.path for target in step.target_files}:
        return False
    return item.symbol is None or any(_is_same(item.symbol, name) for name in step.target_symbols)


def _is_same(symbol: str, name: str) -> bool:
    """Whether a plan's `name`, which may leave out the class, is that of the symbol."""
    return symbol == name or symbol.endswith(f".{name}")


def _text(name: str, tree: Tree) -> tuple[str, ...]:
    """The text of the file, or of each definition with the symbol's name; nothing where it is not there."""
    path, _, symbol = name.partition("::")
    texts, _ = tree.texts((path,))
    if path not in texts or not symbol:
        return tuple(texts.values())
    text = texts[path]
    return tuple(
        text[span.start : span.end] for span in definition_spans(path, text) if span.symbol == symbol
    )

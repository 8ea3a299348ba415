"""Updates a context once a scaffold is written, so that it shows the present text of the scaffold's files."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextItem, ContextPackage
from clean_room_agent.artifacts.edits import Stub
from clean_room_agent.execute.edits.definitions import Definition, definitions, only_row
from clean_room_agent.syntax import import_lines

REASON = "declared by the step's scaffold"
FRAME_TOKENS = 12
IMPORTS = "(imports)"
"""What a context calls the imports of a file."""


def scaffolded_package(
    package: ContextPackage,
    before: Mapping[str, str],
    after: Mapping[str, str],
    count: Callable[[str], int],
) -> ContextPackage:
    """The context with the files of `after` as they are now; `before` are those of them that existed before.

    A file that is new, or was shown whole, is shown whole. Of any other, what was shown stays, at its new place, and
    what is new is added. `count` estimates the tokens of a text.
    """
    items = [item for item in package.items if item.path not in after or item.detail != "primary"]
    shown: dict[str, list[ContextItem]] = {path: [] for path in after}
    for item in package.primary():
        if item.path in after:
            shown[item.path].append(item)
    added: list[ContextItem] = []
    for path, text in sorted(after.items()):
        if path not in before or any(item.symbol is None for item in shown[path]):
            added.append(_item(path, text, (1, len(_lines(text))), None, count))
            continue
        moved = [one for item in shown[path] if (one := _moved(item, text, count)) is not None]
        covered = [(item.start_line, item.end_line) for item in moved]
        new = [
            _item(path, text, span, symbol, count)
            for symbol, span in _new_spans(path, before[path], text)
            if not any(first <= span[0] and span[1] <= last for first, last in covered)
        ]
        added += _adjoined([*moved, *new], text)
    return replace(package, items=(*items, *added))


def reduced_package(
    package: ContextPackage, after: Mapping[str, str], stub: Stub, count: Callable[[str], int]
) -> ContextPackage:
    """The context with only the stub, and the imports of its file, from the scaffold's own files."""
    items = [item for item in package.items if item.path not in after or item.detail != "primary"]
    text = after[stub.path]
    spans = [
        (one.symbol, _span(text, one)) for one in definitions(stub.path, text) if one.symbol == stub.symbol
    ]
    imports = _imports(stub.path, text)
    if imports is not None:
        spans.insert(0, (IMPORTS, imports))
    return replace(
        package, items=(*items, *(_item(stub.path, text, span, symbol, count) for symbol, span in spans))
    )


def _moved(item: ContextItem, text: str, count: Callable[[str], int]) -> ContextItem | None:
    """The item at its new place in the text; None if neither its lines nor its definition occur there exactly once."""
    imports = _imports(item.path, text) if item.symbol == IMPORTS else None
    if imports is not None:
        return _item(item.path, text, imports, item.symbol, count)
    lines, wanted = _lines(text), _lines(item.text)
    row = item.start_line - 1
    if lines[row : row + len(wanted)] != wanted:
        row = only_row(text, wanted)
    named = [one for one in definitions(item.path, text) if one.symbol == item.symbol]
    whole = _span(text, named[0]) if len(named) == 1 else None
    if row < 0:
        return None if whole is None else _item(item.path, text, whole, item.symbol, count)
    last = row + len(wanted)
    if whole is not None and whole[1] > last:  # something was added at the end of a class
        return _item(item.path, text, (row + 1, whole[1]), item.symbol, count)
    return replace(item, start_line=row + 1, end_line=last, adjoins=False)


def _adjoined(items: Iterable[ContextItem], text: str) -> list[ContextItem]:
    """The items in order of place; those with only blank lines between them are joined, so that an edit may span them."""
    lines, last, found = _lines(text), 0, list[ContextItem]()
    for item in sorted(items, key=lambda one: (one.start_line, -one.end_line)):
        between = lines[last : item.start_line - 1]
        adjoins = 0 < last < item.start_line and not any(line.strip() for line in between)
        found.append(replace(item, adjoins=adjoins))
        last = max(last, item.end_line)
    return found


def _new_spans(path: str, before: str, after: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Name and lines of each outermost definition that is new."""
    known = {one.symbol for one in definitions(path, before)}
    new = [one for one in definitions(path, after) if one.symbol not in known]
    inside = {one.symbol for one in new}
    for one in new:
        if not any(holder in inside for holder in _holders(one.symbol)):
            yield one.symbol, _span(after, one)


def _holders(symbol: str) -> Iterator[str]:
    while "." in symbol:
        symbol = symbol.rpartition(".")[0]
        yield symbol


def _imports(path: str, text: str) -> tuple[int, int] | None:
    spans = import_lines(text.encode("utf-8", "replace"), path)
    return (spans[0][0], spans[-1][1]) if spans else None


def _span(text: str, one: Definition) -> tuple[int, int]:
    return text.count("\n", 0, one.start) + 1, text.count("\n", 0, one.end) + 1


def _item(
    path: str, text: str, span: tuple[int, int], symbol: str | None, count: Callable[[str], int]
) -> ContextItem:
    part = "".join(f"{line}\n" for line in _lines(text)[span[0] - 1 : span[1]])
    return ContextItem(
        path=path,
        detail="primary",
        symbol=symbol,
        start_line=span[0],
        end_line=span[1],
        text=part,
        tier=0,
        score=1.0,
        reason=REASON,
        tokens=count(part) + FRAME_TOKENS,
        content_hash=hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
    )


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")

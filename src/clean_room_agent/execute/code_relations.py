"""Finds how two pieces of code in a context depend on each other, from their text and imports, without a model.

A place uses another if its code has the other's name and, across files, its file imports the other or its name:

    till/receipt.py  from till.money import total
                     def receipt(...): ... total(shares) ...      receipt uses total; total does not use receipt

If the context does not show the code, or the imports, the answer is None, and a model has to be asked.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from msgspec import Struct

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.execute.edits.definitions import definition_spans

IMPORT = re.compile(r"^\s*(?:import\b|from\b.+\bimport\b|export\b.+\bfrom\b|.*\brequire\()", re.MULTILINE)
PACKAGE_FILES = frozenset({"__init__", "index", "mod"})
"""Names of files that are imported by the name of their folder."""
SHORT = 3
"""Names of at most this length are too common to show anything."""
EXCERPT_LINES = 30
"""Lines of a place's code in a question about it."""
HEAD_LINES = 18
"""Lines from the beginning of a longer one."""


class Place(Struct, frozen=True, kw_only=True):
    """A definition, or a whole file if `symbol` is ""."""

    path: str
    symbol: str = ""

    @property
    def name(self) -> str:
        """What other code calls it."""
        if self.symbol:
            return self.symbol.rpartition(".")[2]
        return module_name(self.path)

    def __str__(self) -> str:
        return f"{self.symbol} in {self.path}" if self.symbol else self.path


class ShownCode:
    """The code of a context, by place."""

    def __init__(self, package: ContextPackage) -> None:
        self._items = tuple(item for item in package.items if item.section == "code")
        self._tests = tuple(item for item in package.items if item.section == "tests")

    def definitions(self) -> tuple[Place, ...]:
        """The definitions whose code is shown, in order."""
        found: dict[Place, None] = {}
        for item in self._items:
            if item.symbol is not None:
                found[Place(path=item.path, symbol=item.symbol)] = None
            elif item.detail == "primary":
                found |= {
                    Place(path=item.path, symbol=span.symbol): None
                    for span in definition_spans(item.path, item.text)
                }
        return tuple(found)

    def code(self, place: Place) -> str:
        """The place's code as far as it is shown; "" if none of it is."""
        if not place.symbol:
            return "\n".join(item.text for item in self._items if item.path == place.path)
        for item in self._items:
            if item.path != place.path:
                continue
            if item.symbol == place.symbol:
                return item.text
            if item.symbol is None and item.detail == "primary":
                for span in definition_spans(item.path, item.text):
                    if span.symbol == place.symbol:
                        return item.text[span.start : span.end]
        return ""

    def excerpt(self, place: Place, others: Sequence[Place] = ()) -> str:
        """The place's code; if it is long, its first lines and those that name one of `others`. "" if it is not shown."""
        lines = self.code(place).rstrip("\n").split("\n")
        if len(lines) <= EXCERPT_LINES:
            return "\n".join(lines)
        names = {other.name for other in others} - {place.name}
        later = [
            number
            for number, line in enumerate(lines)
            if number >= HEAD_LINES and any(_has(line, name) for name in names)
        ]
        kept = [*range(HEAD_LINES), *later[: EXCERPT_LINES - HEAD_LINES]]
        shown = [lines[0]]
        for before, number in pairwise((*kept, len(lines))):
            shown += ["[...]"] if number > before + 1 else []
            shown += [lines[number]] if number < len(lines) else []
        return "\n".join(shown)

    def uses(self, user: Place, used: Place) -> bool | None:
        """Whether the code of `user` uses `used`; None if that is not visible."""
        code = self.code(user)
        if not code or len(used.name) < SHORT:
            return None
        named = _has(code, used.name)
        if user.path == used.path:
            return named
        if used.symbol and not named:
            return False
        imports = self._imports(user.path)
        imported = any(_has(line, module_name(used.path)) or _has(line, used.name) for line in imports or ())
        if imported:
            return True
        # A method is called on an object, whose class need not be imported.
        return None if imports is None or "." in used.symbol else False

    def tested_together(self, one: Place, other: Place) -> str:
        """The name of a failing test that uses both; "" if none is shown."""
        for item in self._tests:
            if item.symbol and _has(item.text, one.name) and _has(item.text, other.name):
                return item.symbol
        return ""

    def _imports(self, path: str) -> tuple[str, ...] | None:
        """The file's import lines; None if the context may not show them."""
        own = [item for item in self._items if item.path == path]
        lines = tuple(line for item in own for line in item.text.split("\n") if IMPORT.match(line))
        whole = any(item.symbol is None and item.detail == "primary" for item in own)
        return lines if lines or whole else None


def module_name(path: str) -> str:
    """The name by which a file is imported: its own, or its folder's."""
    pure = PurePosixPath(path)
    stem = pure.name.split(".")[0]
    return pure.parent.name if stem in PACKAGE_FILES and pure.parent.name else stem


def folder(path: str) -> str:
    """The file's folder."""
    return str(PurePosixPath(path).parent)


def _has(text: str, name: str) -> bool:
    return len(name) >= SHORT and re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text) is not None

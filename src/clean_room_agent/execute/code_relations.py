"""How pieces of code in a context depend on each other, from their text and imports, without a model."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from msgspec import Struct

from clean_room_agent.artifacts.context import ContextPackage, fence_for, frame
from clean_room_agent.artifacts.names import item_name
from clean_room_agent.artifacts.prompt_sources import PromptSource, joined, sourced, without_line_end
from clean_room_agent.execute.edits.definitions import definitions

IMPORT = re.compile(r"^\s*(?:import\b|from\b.+\bimport\b|export\b.+\bfrom\b|.*\brequire\()", re.MULTILINE)
PACKAGE_FILES = frozenset({"__init__", "index", "mod"})
"""Names of files that are imported by the name of their folder."""
SHORT = 3
"""Shorter names are too common to show anything."""
EXCERPT_LINES = 30
"""Lines of a place's code in a question about it."""
HEAD_LINES = 18
"""Lines from the beginning of a longer one."""


class CodePlace(Struct, frozen=True, kw_only=True):
    """A definition, or a whole file if `symbol` is ""."""

    path: str
    symbol: str = ""

    @property
    def name(self) -> str:
        """What other code calls it: the definition's own name, or that by which the file is imported."""
        if self.symbol:
            return self.symbol.rpartition(".")[2]
        pure = PurePosixPath(self.path)
        stem = pure.name.split(".")[0]
        return pure.parent.name if stem in PACKAGE_FILES and pure.parent.name else stem

    def __str__(self) -> str:
        return f"{self.symbol} in {self.path}" if self.symbol else self.path


class PlanPiece(Struct, frozen=True, kw_only=True):
    """A change, a part or a step, with the places that it is about."""

    id: str
    words: str
    places: tuple[CodePlace, ...]

    def __str__(self) -> str:
        return f"{self.id}: {self.words}"


class ShownCode:
    """The code of a context, and how pieces of it depend on each other, by their text and imports.

    A place uses another if its code has the other's name and, across files, its file imports the other or its name:

        till/receipt.py  from till.money import total
                         def receipt(...): ... total(shares) ...      receipt uses total; total does not use receipt
    """

    def __init__(self, package: ContextPackage) -> None:
        self._items = tuple(item for item in package.items if item.section == "code")
        self._tests = tuple(item for item in package.items if item.section == "tests")
        self.definitions: dict[CodePlace, str] = {}
        """The definitions whose code is shown, in order, with that code."""
        for item in self._items:
            if item.symbol is not None:
                self.definitions.setdefault(CodePlace(path=item.path, symbol=item.symbol), item.text)
            elif item.detail == "primary":
                for span in definitions(item.path, item.text):
                    place = CodePlace(path=item.path, symbol=span.symbol)
                    self.definitions.setdefault(place, item.text[span.start : span.end])

    def code(self, place: CodePlace) -> str:
        """The place's code as far as it is shown; "" if none of it is."""
        if place.symbol:
            return self.definitions.get(place, "")
        return "\n".join(item.text for item in self._items if item.path == place.path)

    def excerpt(self, place: CodePlace, others: Sequence[CodePlace]) -> str:
        """The place's code; if it is long, its first lines and those that name one of `others`. "" if it is not shown."""
        lines = self.code(place).rstrip("\n").split("\n")
        if len(lines) <= EXCERPT_LINES:
            return "\n".join(lines)
        names = {other.name for other in others} - {place.name}
        later = [
            number
            for number, line in enumerate(lines)
            if number >= HEAD_LINES and any(_mentions_name(line, name) for name in names)
        ]
        kept = [*range(HEAD_LINES), *later[: EXCERPT_LINES - HEAD_LINES]]
        shown = [lines[0]]
        for before, number in pairwise((*kept, len(lines))):
            shown += ["[...]"] if number > before + 1 else []
            shown += lines[number : number + 1]
        return "\n".join(shown)

    def uses(self, user: CodePlace, used: CodePlace) -> bool | None:
        """Whether the code of `user` uses `used`; None if that is not visible, and a model has to be asked."""
        code = self.code(user)
        if not code or len(used.name) < SHORT:
            return None
        named = _mentions_name(code, used.name)
        if user.path == used.path:
            return named
        if used.symbol and not named:
            return False
        imports = self._import_lines(user.path)
        file = CodePlace(path=used.path).name
        if any(_mentions_name(line, file) or _mentions_name(line, used.name) for line in imports or ()):
            return True
        # A method is called on an object, whose class need not be imported.
        return None if imports is None or "." in used.symbol else False

    def tested_together(self, one: CodePlace, other: CodePlace) -> str:
        """The name of a failing test that uses both; "" if none is shown."""
        names = (one.name, other.name)
        using = (
            test.symbol for test in self._tests if all(_mentions_name(test.text, name) for name in names)
        )
        return next(filter(None, using), "")

    def waits(self, piece: PlanPiece, other: PlanPiece) -> tuple[bool, str] | None:
        """Whether `piece` has to wait for `other`, and why: it uses what is changed there, and not the other way round. Two
        pieces at one file keep their order. None if the context does not show it.
        """
        if not {place.path for place in piece.places}.isdisjoint(place.path for place in other.places):
            later = int(piece.id[1:]) > int(other.id[1:])
            return later, "the same file: in the order of the plan"
        there = {(one, two): self.uses(one, two) for one in piece.places for two in other.places}
        back = any(self.uses(two, one) for one in piece.places for two in other.places)
        used = next((pair for pair, uses in there.items() if uses), None)
        if used and not back:
            return True, f"{used[0]} uses {used[1].symbol or used[1].path}"
        if used or None in there.values():
            return None
        why = "only the other uses what is changed here" if back else "it uses nothing that is changed there"
        return False, why

    def with_code(
        self, one: PlanPiece, other: PlanPiece, words: tuple[str, str]
    ) -> tuple[tuple[str, str], ...]:
        """The words of both with the beginning of the code at their places, and without it."""
        fence = fence_for(self.code(place) for place in (*one.places, *other.places))

        def text(said: str, places: Sequence[CodePlace], others: Sequence[CodePlace]) -> str:
            frames = []
            for place in dict.fromkeys(places):
                if self.code(place):
                    path, symbol = place.path, place.symbol
                    excerpt = sourced(
                        self.excerpt(place, others), PromptSource.OUTLINE, path=path, symbol=symbol
                    )
                    title = f"reference: {item_name(path, symbol)}"
                    frames.append(frame(title, excerpt, fence, path=path, symbol=symbol))
            return without_line_end(joined("\n", (said, *frames)))

        shown = (text(words[0], one.places, other.places), text(words[1], other.places, one.places))
        return shown, words

    def _import_lines(self, path: str) -> tuple[str, ...] | None:
        """The file's import lines; None if the context may not show them."""
        own = [item for item in self._items if item.path == path]
        lines = tuple(line for item in own for line in item.text.split("\n") if IMPORT.match(line))
        whole = any(item.symbol is None and item.detail == "primary" for item in own)
        return lines if lines or whole else None


def _mentions_name(text: str, name: str) -> bool:
    return len(name) >= SHORT and re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text) is not None

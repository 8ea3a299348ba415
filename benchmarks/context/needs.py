"""What the change of a commit needs to be seen: which lines of which files, and which names explained."""

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from benchmarks.context.goals import Goal
from benchmarks.context.names import Names, words_in
from benchmarks.context.snapshot import Snapshot, Symbol
from clean_room_agent.training.gold_edits import GoldFile, edit_groups, lines_of

LINES_AROUND = 3
"""Of a change outside functions: enough to say where it belongs."""
LONG_FUNCTION = 150
"""Lines from which on a function is seen as those inside it."""
SHORT_VALUE = 10
"""Lines up to which a constant or a type is needed whole."""


class Changed(Struct, frozen=True, kw_only=True):
    """A function that the commit changes, or a few lines outside functions."""

    path: str
    name: str
    """Qualified; "" for lines outside functions."""
    first: int
    last: int


class Needs:
    """What one commit needs of a snapshot."""

    def __init__(
        self, gold: Sequence[GoldFile], goals: Sequence[Goal], snapshot: Snapshot, names: Names
    ) -> None:
        self.snapshot = snapshot
        self.names = names
        self.goals = goals
        self.changed = tuple(place for file in gold for place in _changed(file, snapshot))
        self.used: dict[str, Symbol] = {}
        for place in self.changed:
            if place.name:
                self.used |= names.defined(place.path, place.first, place.last)
        self.used = {key: one for key, one in sorted(self.used.items()) if self._is_outside(one)}
        self._words = _words_of(gold, self.changed, snapshot)
        functions = {place.name.rpartition(".")[2] for place in self.changed if place.name}
        self._call = re.compile(
            rf"(?<![\w$])(?:{'|'.join(map(re.escape, sorted(functions))) or '(?!)'})(?![\w$])"
        )
        self._lines: dict[str, frozenset[int]] = {}

    def lines(self, path: str) -> frozenset[int]:
        """The file's lines that are worth showing."""
        if path not in self._lines:
            self._lines[path] = frozenset(self._needed(path))
        return self._lines[path]

    def _is_outside(self, symbol: Symbol) -> bool:
        """Whether a definition is neither shown with the changed functions nor an import."""
        inside = any(
            place.path == symbol.path and place.first <= symbol.head and symbol.last <= place.last
            for place in self.changed
        )
        return not inside and symbol.head not in self.names.import_lines(symbol.path)

    def _needed(self, path: str) -> set[int]:
        found: set[int] = set()
        spans = [(one.first, one.last) for one in self.changed if one.path == path]
        spans += [span for goal in self.goals if goal.path == path for span in goal.spans]
        for first, last in spans:
            found.update(range(first, last + 1))
        if spans:
            found |= self.names.import_lines(path)
        for symbol in self.snapshot.symbols(path):
            around = symbol.kind == "class" and any(symbol.holds(first) for first, _ in spans)
            if around or symbol.name in self._words:
                found.update(described(symbol, self.snapshot))
        lines = self.snapshot.lines(path)
        found.update(n for n, line in enumerate(lines, 1) if self._call.search(line))
        return found


def described(symbol: Symbol, snapshot: Snapshot) -> range:
    """The lines that say what a definition is: its signature and the first line of its docstring, or a short value."""
    if symbol.last - symbol.first < SHORT_VALUE and not symbol.is_function:
        return range(symbol.first, symbol.last + 1)
    following = snapshot.lines(symbol.path)[symbol.head_end : symbol.head_end + 1]
    documented = bool(following) and following[0].strip().startswith(('"""', 'r"""', "'''"))
    return range(symbol.head, symbol.head_end + 1 + documented)


def _changed(file: GoldFile, snapshot: Snapshot) -> list[Changed]:
    """The functions that hold the file's changes, each once; else the lines around the change."""
    if file.before is None or file.after is None:
        return []
    functions = [symbol for symbol in snapshot.symbols(file.path) if symbol.is_function]
    total = len(lines_of(file.before))
    found: dict[tuple[int, int], Changed] = {}
    for group in edit_groups(file):
        held = _held(file, group, functions)
        for function in held:
            if function is not None:
                span = (function.first, function.last)
                found[span] = Changed(path=file.path, name=function.qualified, first=span[0], last=span[1])
        if None in held:
            span = (max(1, group[0] + 1 - LINES_AROUND), min(total, group[1] + LINES_AROUND))
            found.setdefault(span, Changed(path=file.path, name="", first=span[0], last=span[1]))
    return [found[span] for span in sorted(found)]


def _held(
    file: GoldFile, group: tuple[int, int, int, int], functions: Sequence[Symbol]
) -> set[Symbol | None]:
    """The functions around the lines of a change; None for lines outside functions."""
    before, after = lines_of(file.before or ""), lines_of(file.after or "")
    i1, i2, j1, j2 = group
    if i2 > i1:
        return {_function(functions, n) for n in range(i1 + 1, i2 + 1) if before[n - 1].strip()} or {None}
    added = min((_indent(line) for line in after[j1:j2] if line.strip()), default=0)
    around = [
        one
        for one in functions
        if one.holds(i1) and (one.holds(i1 + 1) or added > _indent(before[one.head - 1]))
    ]
    return {_function(around, i1)}


def _function(functions: Iterable[Symbol], line: int) -> Symbol | None:
    """The function around the line, not one of those inside it, unless it is a very long one."""
    around = [one for one in functions if one.holds(line)]
    short = [one for one in around if one.last - one.first < LONG_FUNCTION]
    return max(short, key=_length, default=min(around, key=_length, default=None))


def _length(symbol: Symbol) -> int:
    return symbol.last - symbol.first


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _words_of(gold: Sequence[GoldFile], changed: Sequence[Changed], snapshot: Snapshot) -> frozenset[str]:
    """Every word of the changed functions, and of the lines that the commit adds."""
    words: set[str] = set()
    for place in changed:
        words |= words_in("\n".join(snapshot.lines(place.path)[place.first - 1 : place.last]))
    for file in gold:
        after = lines_of(file.after or "")
        for _, _, j1, j2 in edit_groups(file):
            words |= words_in("\n".join(after[j1:j2]))
    return frozenset(words)

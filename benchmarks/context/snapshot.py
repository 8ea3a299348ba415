"""A commit's base with its tests, as the run that is measured saw it: files, lines and definitions."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from benchmarks.commits.checkouts import git
from clean_room_agent.indexer.extract import FileFacts, extract

FUNCTIONS = ("function", "method")
MAX_BYTES = 1_000_000


class Symbol(Struct, frozen=True, kw_only=True):
    """A definition; lines are 1-based and inclusive."""

    path: str
    name: str
    qualified: str
    kind: str
    first: int
    """Decorators included."""
    head: int
    """Where the signature begins."""
    head_end: int
    last: int

    @property
    def is_function(self) -> bool:
        """Whether it is called, and has a body."""
        return self.kind in FUNCTIONS

    def holds(self, line: int) -> bool:
        """Whether the line is one of its own."""
        return self.first <= line <= self.last


class Snapshot:
    """The files below `top`, which nobody changes meanwhile. Texts and definitions are read on first use."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self._texts: dict[str, str] = {}
        self._symbols: dict[str, tuple[Symbol, ...]] = {}

    @cached_property
    def paths(self) -> frozenset[str]:
        """What git lists, untracked files included."""
        listed = git(self.top, "ls-files", "-co", "--exclude-standard", "-z").split("\0")
        return frozenset(path for path in listed if path and (self.top / path).is_file())

    def text(self, path: str) -> str:
        """The file's text; "" where it is none."""
        if path not in self._texts:
            data = (self.top / path).read_bytes() if path in self.paths else b""
            self._texts[path] = "" if b"\0" in data else data[:MAX_BYTES].decode("utf-8", errors="replace")
        return self._texts[path]

    def lines(self, path: str) -> Sequence[str]:
        """The file's lines; the first one has the number 1."""
        return self.text(path).split("\n")

    def symbols(self, path: str) -> tuple[Symbol, ...]:
        """The file's definitions, outer ones first."""
        if path not in self._symbols:
            facts = extract(self.top, path, max_bytes=MAX_BYTES)
            self._symbols[path] = (
                _symbols_of(path, facts, self.lines(path)) if isinstance(facts, FileFacts) else ()
            )
        return self._symbols[path]

    def named(self, path: str) -> Mapping[str, Symbol]:
        """The file's definitions by qualified name; of overloads, the last."""
        return {symbol.qualified: symbol for symbol in self.symbols(path)}


def _symbols_of(path: str, facts: FileFacts, lines: Sequence[str]) -> tuple[Symbol, ...]:
    found = []
    for one in facts.symbols:
        beginning = one.signature.split("\n")[0].strip()
        span = range(one.start_line, one.end_line + 1)
        head = next((n for n in span if beginning and beginning in lines[n - 1]), one.start_line)
        found.append(
            Symbol(
                path=path,
                name=one.name,
                qualified=one.qualified_name,
                kind=one.kind,
                first=one.start_line,
                head=head,
                head_end=min(one.end_line, head + one.signature.count("\n")),
                last=one.end_line,
            )
        )
    return tuple(found)

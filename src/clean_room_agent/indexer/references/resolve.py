"""References, dependencies and look-ups of one file, from the stored texts of all files."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clean_room_agent.indexer.imports.python import ModuleRef
from clean_room_agent.indexer.references.evaluate import HEAD, STEP, Evaluator
from clean_room_agent.indexer.references.interface import (
    STAR,
    FileNames,
    Interface,
    changed_names,
    parse_interface,
)
from clean_room_agent.indexer.references.scan import COMMON
from clean_room_agent.indexer.references.values import Value, World

__all__ = ["Interface", "Resolved", "World", "changed_names", "parse_interface", "resolve_file"]

Reference = tuple[int, str, int, str, float]
"""Caller's place, callee's path and place, kind, confidence."""
Target = tuple[str, int, str, float]
"""The same without the caller."""
MARKS = {"@": "decorator", "<": "inheritance"}
UNIQUE = 0.5
MODULE = "?"
"""Before a word in the look-ups of "": a module of that name was looked for on behalf of another file."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What one file refers to."""

    references: tuple[Reference, ...]
    """Sorted; one for each caller, callee and kind."""
    dependencies: tuple[tuple[str, str], ...]
    """Path and import or type_ref, sorted."""
    lookups: Mapping[str, frozenset[str]]
    """Path of another file -> the keys that were asked for, found or not.

    Under "" stand the names that were hoped to be unique in the repository, and after `?` the words of modules whose
    coming or going matters here although this file's own imports do not mention them (`imports.reach.words_of`).
    """


def resolve_file(path: str, names: FileNames, world: World) -> Resolved:
    """All references and dependencies of the file at `path`; they change only if a key that was looked up does."""
    inner, imports, uses = json.loads(names.uses)
    evaluator = Evaluator(path, parse_interface(names.interface), inner, world)
    tokens = _Tokens(evaluator)
    found: dict[tuple[int, str, int, str], float] = {}
    known, resolve = tokens.known, tokens.resolve
    for caller, text in uses:
        for token in text.split(" "):
            for target in known[token] if token in known else resolve(token):
                callee_path, place, kind, confidence = target
                if place == caller and kind != "call" and callee_path == path:
                    continue
                key = (caller, callee_path, place, kind)
                if found.get(key, 0.0) < confidence:
                    found[key] = confidence
    dependencies = _dependencies(evaluator, imports)
    lookups = {where: frozenset(keys) for where, keys in evaluator.lookups.items() if where != path}
    anywhere = tokens.unique.union(f"{MODULE}{word}" for word in evaluator.modules)
    if anywhere:
        lookups[""] = frozenset(anywhere)
    return Resolved(
        tuple((*key, confidence) for key, confidence in sorted(found.items())), dependencies, lookups
    )


class _Tokens:
    """Tokens resolved, each distinct one once."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.known: dict[str, tuple[Target, ...]] = {}
        """Those that were resolved."""
        self.unique: set[str] = set()

    def resolve(self, token: str) -> tuple[Target, ...]:
        """The symbols that the visible part of the token names."""
        found = self.known[token] = tuple(self._resolve(token))
        return found

    def _resolve(self, token: str) -> Iterable[Target]:
        last = "call" if token[-1] == "(" else ""
        text = token[:-1] if last else token
        if text[0] in MARKS:
            last, text = MARKS[text[0]], text[1:]
        hidden, bar, shown = text.partition("|")
        evaluator = self._evaluator
        value: Value | None = None
        if bar:
            if hidden != "?":
                value = evaluator.evaluate(evaluator.path, hidden)
            if "(" in shown or "[" in shown:
                yield from self._chain(value, STEP.findall(shown), last)
            else:
                yield from self._attributes(value, shown[1:].split("."), last)
            return
        head = HEAD.match(text)
        if head is not None:
            value = evaluator.head(evaluator.path, head)
            names = text[head.end() + 1 :].split(".") if head.end() < len(text) else []
            if value is not None and value.place >= 0:
                yield value.path, value.place, "name" if names else last or "name", value.confidence
            yield from self._attributes(value, names, last)

    def _attributes(self, value: Value | None, names: Sequence[str], last: str) -> Iterable[Target]:
        """The symbols that the names stand for, each an attribute of what comes before it."""
        for number, name in enumerate(names, start=1):
            kind = (last or "attribute") if number == len(names) else "attribute"
            if value is not None:
                if value.kind == "x":
                    return
                value = self._evaluator.member(value, name)
            if value is None:
                target = self._unique(name)
                if target is not None:
                    yield *target, kind, UNIQUE
            elif value.place >= 0:
                yield value.path, value.place, kind, value.confidence

    def _chain(self, value: Value | None, steps: Sequence[str], last: str) -> Iterable[Target]:
        """The symbols that a chain with calls in it names; it ends where nothing more is known."""
        evaluator = self._evaluator
        for number, step in enumerate(steps, start=1):
            if value is None or value.kind == "x":
                return
            value = evaluator.step(value, step)
            if value is not None and value.place >= 0 and step[0] == ".":
                following = steps[number] if number < len(steps) else ""
                kind = "call" if following == "()" or (not following and last) else "attribute"
                yield value.path, value.place, kind, value.confidence

    def _unique(self, name: str) -> tuple[str, int] | None:
        if name in COMMON or len(name) < 3:
            return None
        self.unique.add(name)
        return self._evaluator.world.unique(name)


def _dependencies(
    evaluator: Evaluator, imports: Sequence[tuple[str, Sequence[str], str]]
) -> tuple[tuple[str, str], ...]:
    """The files that the imports name, and those where what they take is defined."""
    found: dict[str, str] = {}
    path, world = evaluator.path, evaluator.world
    for target, names, kind in imports:
        reached: set[str] = set()
        ref = world.find(path, target)
        if ref is None:
            continue
        if ref.file is not None:
            reached.add(ref.file)
        for name in names:
            if name != STAR:
                reached.update(_origins(evaluator, ref, name))
        for one in reached:
            if one != path and (kind == "import" or one not in found):
                found[one] = kind
    return tuple(sorted(found.items()))


def _origins(evaluator: Evaluator, ref: ModuleRef, name: str) -> Iterable[str]:
    value = evaluator.member(Value("m", ref.file or "", module=ref), name)
    if value is not None and value.path:
        yield value.path

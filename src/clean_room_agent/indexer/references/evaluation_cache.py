"""Evaluates expressions with a cache that lives as long as no file changes."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from clean_room_agent.indexer.references.evaluate import MAX_DEPTH, Evaluator, Lookup, Order
from clean_room_agent.indexer.references.values import Value, World
from clean_room_agent.languages.interface import Interface, Written

Key = tuple[str, ...] | tuple[str, str, str, str, float]
Given = TypeVar("Given")
NEVER = MAX_DEPTH + 1


class _CachedAnswer(NamedTuple):
    """An answer, and what finding it depended on."""

    value: Value | Order | None
    trace: frozenset[Lookup]
    height: int
    """How many questions stand on one another in it, itself included."""
    lowest: int
    """The lowest of the open questions that came up again on the way, by the number below it; -1: it was cut off
    where too many were open; NEVER: none came up."""


class Evaluations(Evaluator):
    """Cached answers about all files, as other files see them.

    An answer does not depend on what was asked before. If questions form a cycle, the question that is reached again has
    no answer. What was found inside the cycle is valid only until the question that started it is answered, and is then
    forgotten:

        # a.py: from b import x       a.x -> b.x -> a.x, which is still open: no answer, so a.x has none either.
        # b.py: from a import x       That b.x has none was found inside the cycle; it is not kept.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.interfaces: dict[str, Interface | None] = {}
        """As far as they are known."""
        self._known: dict[Key, _CachedAnswer] = {}
        self._circles: dict[Key, _CachedAnswer] = {}
        """Answers to questions that begin a circle: right if nothing else is open."""
        self._passing: dict[Key, _CachedAnswer] = {}
        """Answers from within a circle whose beginning is open."""
        self._open: dict[Key, int] = {}
        self._depth = 0
        self._deepest = 0
        self._lowest = NEVER

    def interface(self, path: str) -> Interface | None:
        """The file's interface; cached."""
        try:
            return self.interfaces[path]
        except KeyError:
            found = self.interfaces[path] = self.world.interface(path)
            return found

    def entry(self, path: str, name: str) -> Written | None:
        """The file's definition with this qualified name, as other files see it."""
        self.trace.add((path, name))
        interface = self.interfaces[path] if path in self.interfaces else self.interface(path)
        return None if interface is None else interface.definitions.get(name)

    def evaluate(self, path: str, expression: str) -> Value | None:
        """The value of the expression; cached."""
        return self._ask(("e", path, expression), None, self._evaluated, path, expression)

    def name(self, path: str, name: str) -> Value | None:
        """The value of the name; cached."""
        return self._ask(("n", path, name), None, self._named, path, name)

    def export(self, path: str, name: str) -> Value | None:
        """The value of the export; cached."""
        return self._ask(("x", path, name), None, self._exported, path, name)

    def order(self, path: str, name: str) -> Order:
        """The class followed by its bases; only the class if the question is part of a cycle or nested too deeply."""
        cut: Order = ((path, name),), self._depth >= MAX_DEPTH
        return self._ask(("c", path, name), cut, self._ordered, path, name)

    def class_member(self, value: Value, name: str) -> Value | None:
        """The attribute; cached."""
        key = (value.kind, value.path, value.name, name, value.confidence)
        return self._ask(key, None, self._class_member, value, name)

    def _ask(self, key: Key, cut: Given, find: Callable[..., Given], *what: object) -> Given:
        depth = self._depth
        known = self._known.get(key)
        if known is not None and not depth:
            self.trace |= known.trace
            return known.value  # type: ignore[return-value]
        known = known or (self._passing if depth else self._circles).get(key)
        if known is not None and depth + known.height <= MAX_DEPTH:
            self.trace |= known.trace
            self._deepest = max(self._deepest, depth + known.height)
            self._lowest = min(self._lowest, known.lowest)
            return known.value  # type: ignore[return-value]
        if depth >= MAX_DEPTH or key in self._open:
            self._lowest = min(self._lowest, self._open.get(key, -1))
            return cut
        outer = self.trace, self._deepest, self._lowest
        passing = len(self._passing)
        self.trace, self._deepest, self._lowest = set(), depth + 1, NEVER
        self._open[key] = depth
        self._depth += 1
        value = find(*what)
        self._depth = depth
        del self._open[key]
        lowest = self._lowest
        found = _CachedAnswer(value, frozenset(self.trace), self._deepest - depth, lowest)  # type: ignore[arg-type]
        self._keep(key, found, depth, passing)
        self.trace = outer[0]
        self.trace |= found.trace
        self._deepest = max(outer[1], self._deepest)
        self._lowest = min(outer[2], lowest if lowest < depth else NEVER)
        return value

    def _keep(self, key: Key, found: _CachedAnswer, depth: int, passing: int) -> None:
        if found.lowest == NEVER:
            self._known[key] = found
        elif found.lowest < depth and depth > 0:
            self._passing[key] = found
        else:
            self._circles[key] = found._replace(lowest=NEVER)
            while len(self._passing) > passing:
                self._passing.popitem()

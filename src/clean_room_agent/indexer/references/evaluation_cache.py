"""Evaluates expressions with answers cached: those about all files, as long as none changes, and those about one file."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from clean_room_agent.indexer.references.evaluate import MAX_DEPTH, Evaluator, Lookup, Order, Value, World
from clean_room_agent.languages.base import ModuleRef
from clean_room_agent.languages.interface import Interface, Written

Key = tuple[str, ...] | tuple[str, str, str, str, float]
Given = TypeVar("Given")
NEVER = MAX_DEPTH + 1


class _Found(NamedTuple):
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
        self._known: dict[Key, _Found] = {}
        self._circles: dict[Key, _Found] = {}
        """Answers to questions that begin a circle: right if nothing else is open."""
        self._passing: dict[Key, _Found] = {}
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
        found = _Found(value, frozenset(self.trace), self._deepest - depth, lowest)  # type: ignore[arg-type]
        self._keep(key, found, depth, passing)
        self.trace = outer[0]
        self.trace |= found.trace
        self._deepest = max(outer[1], self._deepest)
        self._lowest = min(outer[2], lowest if lowest < depth else NEVER)
        return value

    def _keep(self, key: Key, found: _Found, depth: int, passing: int) -> None:
        if found.lowest == NEVER:
            self._known[key] = found
        elif found.lowest < depth and depth > 0:
            self._passing[key] = found
        else:
            self._circles[key] = found._replace(lowest=NEVER)
            while len(self._passing) > passing:
                self._passing.popitem()


class FileEvaluator(Evaluator):
    """Evaluates in one file, which can also see into its own functions; other files are left to `Evaluations`.

    Answers about its own file are cached only in this object.
    """

    def __init__(self, path: str, inner: Mapping[str, Written], others: Evaluations) -> None:
        super().__init__(others.world)
        self.path = path
        others.trace = self.trace
        self._others = others
        self._own = others.interface(path)
        self._inner = inner
        self._definitions: Mapping[str, Written] = {} if self._own is None else self._own.definitions
        self._names: dict[str, Value | None] = {}
        self._expressions: dict[str, Value | None] = {}
        self._orders: dict[str, Order] = {}
        self._depth = 0

    def interface(self, path: str) -> Interface | None:
        """The file's interface."""
        return self._others.interface(path)

    def entry(self, path: str, name: str) -> Written | None:
        """The definition with this qualified name; in its own file, also of those inside functions."""
        if path != self.path:
            return self._others.entry(path, name)
        return self._inner.get(name) or self._definitions.get(name)

    def evaluate(self, path: str, expression: str) -> Value | None:
        """The value of the expression."""
        if path != self.path:
            return self._others.evaluate(path, expression)
        known = self._expressions
        if expression in known:
            return known[expression]
        if self._depth > MAX_DEPTH:
            return None
        known[expression] = None
        self._depth += 1
        found = known[expression] = self._evaluated(path, expression)
        self._depth -= 1
        return found

    def name(self, path: str, name: str) -> Value | None:
        """The value of the name."""
        if path != self.path:
            return self._others.name(path, name)
        known = self._names
        if name in known:
            return known[name]
        if self._depth > MAX_DEPTH:
            return None
        known[name] = None
        self._depth += 1
        found = known[name] = self._named(path, name)
        self._depth -= 1
        return found

    def export(self, path: str, name: str) -> Value | None:
        """The value of the export."""
        return self._others.export(path, name)

    def order(self, path: str, name: str) -> Order:
        """The class followed by its bases; only the class if the question is part of a cycle or nested too deeply."""
        if path != self.path:
            return self._others.order(path, name)
        known = self._orders.get(name)
        if known is not None:
            return known
        alone = ((path, name),)
        if self._depth > MAX_DEPTH:
            return alone, True
        self._orders[name] = alone, False
        self._depth += 1
        found = self._orders[name] = self._ordered(path, name)
        self._depth -= 1
        return found

    def class_member(self, value: Value, name: str) -> Value | None:
        """The attribute."""
        if value.path != self.path:
            return self._others.class_member(value, name)
        return self._class_member(value, name)

    def _find(self, path: str, target: str) -> ModuleRef | None:
        # What the file's own imports mention need not be recorded as a lookup.
        return self.world.find(path, target) if path == self.path else super()._find(path, target)

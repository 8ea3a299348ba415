"""Evaluates names and expressions in the file whose references are being resolved."""

from collections.abc import Mapping

from clean_room_agent.indexer.references.evaluate import MAX_DEPTH, Evaluator, Order
from clean_room_agent.indexer.references.evaluation_cache import Evaluations
from clean_room_agent.indexer.references.values import Value
from clean_room_agent.languages.base import ModuleRef
from clean_room_agent.languages.interface import Interface, Written


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

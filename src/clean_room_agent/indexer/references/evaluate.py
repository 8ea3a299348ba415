"""Expressions evaluated over the interfaces of files, with a note of every name that was looked up."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from clean_room_agent.indexer.imports.python import ModuleRef
from clean_room_agent.indexer.imports.reach import words_of
from clean_room_agent.indexer.references.interface import STAR, Entry, Interface, Written
from clean_room_agent.indexer.references.values import OUTSIDE, Value, World

STEP = re.compile(r"\.[^.()\[\]:@!?%]+|\(\)|\[\]|[:@!?%]")
HEAD = re.compile(r"=([^;]*);|#([^;]*);([^;]*);|[^.()\[\]:@!?%;]+")
SURE = {"@": 0.9, "?": 0.7, "%": 0.8}
IMPORTED = 0.95
INHERITED = 0.9
TYPED = 0.85
MAX_DEPTH = 50

Class = tuple[str, str]
"""Path and qualified name."""


class Evaluator:
    """Evaluates in one file; what it learns of others is kept only as long as itself."""

    def __init__(self, path: str, own: Interface, inner: Mapping[str, Written], world: World) -> None:
        self.path = path
        self.world = world
        self.lookups: dict[str, set[str]] = defaultdict(set)
        """Path -> keys of its interface that were asked for."""
        self.modules: set[str] = set()
        """The words by which other files than this one were asked for, there or not."""
        self._inner = inner
        self._interfaces: dict[str, Interface | None] = {path: own}
        self._names: dict[tuple[str, str], Value | None] = {}
        self._expressions: dict[tuple[str, str], Value | None] = {}
        self._orders: dict[Class, tuple[tuple[Class, ...], bool]] = {}
        self._depth = 0

    def evaluate(self, path: str, expression: str, receiver: Value | None = None) -> Value | None:
        """What the expression comes to in the file at `path`; None if that is not known."""
        if not expression:
            return None
        if expression[0] == "~":
            return self._steps(receiver, STEP.findall(expression, 1))
        key = (path, expression)
        if key in self._expressions:
            return self._expressions[key]
        if self._depth > MAX_DEPTH:
            return None
        self._expressions[key] = None
        self._depth += 1
        head = HEAD.match(expression)
        value = None
        if head is not None:
            value = self.head(path, head)
            value = self._steps(value, STEP.findall(expression, head.end()))
        self._depth -= 1
        self._expressions[key] = value
        return value

    def head(self, path: str, head: re.Match[str]) -> Value | None:
        """What an expression's first part comes to."""
        text = head[0]
        if text[0] == "=":
            return self._definition(path, head[1])
        if text[0] == "#":
            return self._imported(path, head[2], head[3])
        return self.name(path, text)

    def _steps(self, value: Value | None, steps: Sequence[str]) -> Value | None:
        for step in steps:
            if value is None or value.kind == "x":
                return value
            value = self.step(value, step)
        return value

    def step(self, value: Value, step: str) -> Value | None:
        """What one step leads to from the value."""
        if step[0] == ".":
            return self.member(value, step[1:])
        sure = SURE.get(step)
        if sure is not None and step != "@":
            return value._replace(confidence=min(value.confidence, sure))
        if step == "()":
            return self._called(value)
        return self._of_class(value, step)

    def _of_class(self, value: Value, step: str) -> Value | None:
        """An object of the class, its bases, or with its parameters filled in itself."""
        held = self.held(value)
        if held is None or held.kind != "c":
            return held if step == "[]" and held is not None and held.kind == "x" else None
        if step == "[]":
            return held._replace(place=-1)
        if step == "!":
            return Value("s", held.path, held.name, INHERITED)
        return _object(held, SURE.get(step, TYPED))

    def _called(self, value: Value) -> Value | None:
        if value.kind == "c":
            return _object(value, TYPED)
        if value.kind == "f":
            entry = self._entry(value.path, value.name)
            if entry is None or isinstance(entry.types, list):
                return None
            found = self.evaluate(value.path, str(entry.types), value.receiver)
            return None if found is None else _lowered(found, min(value.confidence, TYPED))
        if value.kind in "vp":
            held = self.held(value)
            return None if held is None or held.kind in "vp" else self.step(held, "()")
        if value.kind == "o":
            method = self.member(value, "__call__")
            return self._called(method) if method is not None and method.kind == "f" else None
        return None

    def held(self, value: Value) -> Value | None:
        """What a variable, an attribute or a property holds."""
        for _ in range(MAX_DEPTH):
            if value.kind not in "vp":
                return value
            entry = self._entry(value.path, value.name)
            if entry is None or not entry.types:
                return None
            found = self.evaluate(value.path, str(entry.types), value.receiver)
            if found is None:
                return None
            value = _lowered(found, min(value.confidence, TYPED))
        return None

    def member(self, value: Value, name: str) -> Value | None:
        """The attribute `name` of the value."""
        kind = value.kind
        if kind == "m":
            assert value.module is not None, "a module's value holds it"
            found = None if not value.path else self.name(value.path, name)
            if found is None:
                self.modules.add(name)
                child = self.world.child(value.module, name)
                found = None if child is None else _module(child)
            return None if found is None else _lowered(found, min(value.confidence, IMPORTED))
        if kind in "vp":
            held = self.held(value)
            return (
                held
                if held is None or held.kind == "x"
                else self.member(held, name)
                if held.kind not in "vp"
                else None
            )
        if kind not in "cos":
            return OUTSIDE if kind == "x" else None
        return self._class_member(value, name)

    def _class_member(self, value: Value, name: str) -> Value | None:
        order, outside = self.order(value.path, value.name)
        sure, member = value.confidence, f".{name}"
        for number, (path, owner) in enumerate(order):
            if number == 0 and value.kind == "s":
                continue
            entry = self._entry(path, owner + member)
            if entry is not None:
                receiver = (
                    value if value.kind == "o" else Value("o", value.path, value.name, value.confidence)
                )
                if number and sure > INHERITED:
                    sure = INHERITED
                return Value(entry.kind, path, owner + member, sure, entry.place, receiver)
        return OUTSIDE if outside else None

    def order(self, path: str, name: str) -> tuple[tuple[Class, ...], bool]:
        """The class and its bases in the order of look-up, and whether some base is not of this repository."""
        key = (path, name)
        known = self._orders.get(key)
        if known is not None:
            return known
        if self._depth > MAX_DEPTH:
            return (key,), True
        self._depth += 1
        self._orders[key] = ((key,), False)
        entry = self._entry(path, name)
        found: list[Class] = []
        outside = False
        for base in entry.types if entry is not None and entry.kind == "c" else ():
            value = self.evaluate(path, base)
            if value is not None and value.kind in "vp":
                value = self.held(value)
            if value is None or value.kind != "c":
                outside = True
                continue
            inner, open_ = self.order(value.path, value.name)
            outside = outside or open_
            found.extend(inner)
        if len(found) > 1:
            found = list(dict.fromkeys(reversed(found)))[::-1]
        order = ((key, *(one for one in found if one != key)), outside)
        self._orders[key] = order
        self._depth -= 1
        return order

    def name(self, path: str, name: str) -> Value | None:
        """What a name means at the module level of the file at `path`."""
        key = (path, name)
        if key in self._names:
            return self._names[key]
        if self._depth > MAX_DEPTH:
            return None
        self._depth += 1
        self._names[key] = None
        found = self._named(path, name)
        self._names[key] = found
        self._depth -= 1
        return found

    def _named(self, path: str, name: str) -> Value | None:
        own = self._definition(path, name)
        if own is not None:
            return own
        interface = self._interface(path)
        if interface is None:
            return None
        bound = interface.imports.get(name)
        if bound is not None:
            found = {self._imported(path, target, taken) for target, taken in bound}
            inside = {one for one in found if one is not None and one.kind != "x"}
            if inside:
                return inside.pop() if len(inside) == 1 else None
            return OUTSIDE if OUTSIDE in found else None
        outside = False
        if path != self.path:
            self.lookups[path].add(STAR)
        for target in interface.stars:
            ref = self._find(path, target)
            if ref is None or ref.file is None:
                outside = outside or ref is None
                continue
            value = self._taken_by_star(ref.file, name)
            if value is not None:
                return _lowered(value, IMPORTED)
        return OUTSIDE if outside else None

    def _taken_by_star(self, path: str, name: str) -> Value | None:
        if path != self.path:
            self.lookups[path].add(STAR)
        interface = self._interface(path)
        if interface is None:
            return None
        shown = not name.startswith("_") if interface.exported is None else name in interface.exported
        value = self.name(path, name) if shown else None
        return None if value is None or value.kind == "x" else value

    def _imported(self, path: str, target: str, name: str) -> Value | None:
        ref = self._find(path, target)
        if ref is None:
            return OUTSIDE
        module = _module(ref)
        if not name:
            return module
        value = self.member(module, name)
        return None if value is None else _lowered(value, IMPORTED)

    def _find(self, path: str, target: str) -> ModuleRef | None:
        if path != self.path:
            self.modules.update(words_of(target))
        return self.world.find(path, target)

    def _definition(self, path: str, name: str) -> Value | None:
        entry = self._entry(path, name)
        return None if entry is None else Value(entry.kind, path, name, 1.0, entry.place)

    def _interface(self, path: str) -> Interface | None:
        if path not in self._interfaces:
            self._interfaces[path] = self.world.interface(path)
        return self._interfaces[path]

    def _entry(self, path: str, name: str) -> Entry | None:
        if path != self.path:
            self.lookups[path].add(name)
        elif name in self._inner:
            return Entry(*self._inner[name])
        interface = self._interfaces[path] if path in self._interfaces else self._interface(path)
        written = None if interface is None else interface.definitions.get(name)
        return None if written is None else Entry(*written)


def _module(ref: ModuleRef) -> Value:
    return Value("m", ref.file or "", "", IMPORTED, -1, None, ref)


def _object(of: Value, sure: float) -> Value:
    return Value("o", of.path, of.name, min(of.confidence, sure))


def _lowered(value: Value, sure: float) -> Value:
    return value if value.confidence <= sure else value._replace(confidence=sure)

"""Evaluates expressions over the interfaces of files, and records every name that was looked up."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from clean_room_agent.languages.base import ModuleRef
from clean_room_agent.languages.interface import DEFAULT, EXPORT, EXPORTS, STAR, WHOLE, Interface, Written
from clean_room_agent.languages.registry import language_at


class Value(NamedTuple):
    """The value of an expression."""

    kind: str
    """m: module; c: class; e: enum; o: object of a class; s: its bases, as `super()`; f: function; p: property;
    v: variable or attribute; x: not of this repository."""
    path: str = ""
    name: str = ""
    """Of a definition, or of the class of an object: the qualified name in the file."""
    confidence: float = 1.0
    place: int = -1
    """Of the symbol that the expression names; -1 where it names none."""
    receiver: "Value | None" = None
    """Of a member: the object on which it was found."""
    module: ModuleRef | None = None


OUTSIDE = Value("x")


class World(Protocol):
    """All files, as the resolver asks about them."""

    def find(self, source: str, target: str) -> ModuleRef | None:
        """The module that `target`, as written in `source`, refers to; None if it is not in this repository."""

    def child(self, ref: ModuleRef, name: str) -> ModuleRef | None:
        """The submodule `name`."""

    def interface(self, path: str) -> Interface | None:
        """The file's interface, if it has one."""

    def unique(self, source: str, name: str) -> tuple[str, int] | None:
        """Path and place of the only symbol of this name that `source` could mean; None unless there is exactly one."""


STEP = re.compile(r"\.[^.()\[\]:@!?%]+|\(\)|\[\]|[:@!?%]")
HEAD = re.compile(r"=([^;]*);|#([^;]*);([^;]*);|[^.()\[\]:@!?%;]+")
SURE = {"@": 0.9, "?": 0.7, "%": 0.8}
IMPORTED = 0.95
INHERITED = 0.9
ALIAS = "a"
CONSTRUCTOR = "constructor"
TYPED = 0.85
MAX_DEPTH = 50

MODULE = "?"
"""Before a module, as it was asked for, in the place of a name."""

Class = tuple[str, str]
"""Path and qualified name."""
Order = tuple[tuple[Class, ...], bool]
Lookup = tuple[str, str]
"""A file and the name that was asked of it; or, after `?`, the module that was looked for on its behalf. With no file,
a submodule, after `?` as well."""


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


class Evaluations:
    """Evaluates expressions and names of all files, as other files see them, with a cache that lives as long as no file changes.

    An answer does not depend on what was asked before. If questions form a cycle, the question that is reached again has
    no answer. What was found inside the cycle is valid only until the question that started it is answered, and is then
    forgotten:

        # a.py: from b import x       a.x -> b.x -> a.x, which is still open: no answer, so a.x has none either.
        # b.py: from a import x       That b.x has none was found inside the cycle; it is not kept.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.trace: set[Lookup] = set()
        """What was asked of files."""
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
        return self._find_cached(("e", path, expression), None, self._evaluate_uncached, path, expression)

    def name(self, path: str, name: str) -> Value | None:
        """The value of the name; cached."""
        return self._find_cached(("n", path, name), None, self._resolve_name, path, name)

    def export(self, path: str, name: str) -> Value | None:
        """The value of the export; cached."""
        return self._find_cached(("x", path, name), None, self._resolve_export, path, name)

    def order(self, path: str, name: str) -> Order:
        """The class followed by its bases; only the class if the question is part of a cycle or nested too deeply."""
        cut: Order = ((path, name),), self._depth >= MAX_DEPTH
        return self._find_cached(("c", path, name), cut, self._class_order, path, name)

    def class_member(self, value: Value, name: str) -> Value | None:
        """The attribute; cached."""
        key = (value.kind, value.path, value.name, name, value.confidence)
        return self._find_cached(key, None, self._class_member, value, name)

    def _find_cached(self, key: Key, cut: Given, find: Callable[..., Given], *what: object) -> Given:
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
        self._store_answer(key, found, depth, passing)
        self.trace = outer[0]
        self.trace |= found.trace
        self._deepest = max(outer[1], self._deepest)
        self._lowest = min(outer[2], lowest if lowest < depth else NEVER)
        return value

    def _store_answer(self, key: Key, found: _CachedAnswer, depth: int, passing: int) -> None:
        if found.lowest == NEVER:
            self._known[key] = found
        elif found.lowest < depth and depth > 0:
            self._passing[key] = found
        else:
            self._circles[key] = found._replace(lowest=NEVER)
            while len(self._passing) > passing:
                self._passing.popitem()

    def _class_member(self, value: Value, name: str) -> Value | None:
        order, outside = self.order(value.path, value.name)
        member = f".{name}"
        entry_of, sure = self.entry, value.confidence
        number = 0
        for own, owner in order:
            for path in self._package_files(own) if number or value.kind != "s" else ():
                qualified = owner + member
                entry = entry_of(path, qualified)
                if entry is not None and entry[1] == ALIAS:
                    return self._alias_target(path, entry, sure)
                if entry is not None:
                    receiver = value if value.kind == "o" else Value("o", value.path, value.name, sure)
                    sure = min(sure, INHERITED) if number else sure
                    return Value(entry[1], path, qualified, sure, entry[0], receiver)
            number = 1
        return OUTSIDE if outside else None

    def _evaluate_uncached(self, path: str, expression: str) -> Value | None:
        head = HEAD.match(expression)
        if head is None:
            return None
        value = self.head(path, head)
        end = head.end()
        return value if end == len(expression) else self._follow_steps(value, STEP.findall(expression, end))

    def _evaluate_type(self, path: str, expression: str, receiver: Value | None) -> Value | None:
        """Evaluate a definition's type, with `~` standing for the receiver."""
        if not expression:
            return None
        if expression[0] == "~":
            return self._follow_steps(receiver, STEP.findall(expression, 1))
        return self.evaluate(path, expression)

    def head(self, path: str, head: re.Match[str]) -> Value | None:
        """The value of an expression's first part."""
        text = head[0]
        if text[0] == "=":
            return self.definition(path, head[1])
        if text[0] == "#":
            return self.imported(path, head[2], head[3])
        return self.name(path, text)

    def _follow_steps(self, value: Value | None, steps: Sequence[str]) -> Value | None:
        for step in steps:
            if value is None or value.kind == "x":
                return value
            value = self.step(value, step)
        return value

    def step(self, value: Value, step: str) -> Value | None:
        """Follow one step from the value."""
        if step[0] == ".":
            return self.member(value, step[1:])
        sure = SURE.get(step)
        if sure is not None and step != "@":
            return lowered(value, sure)
        if step == "()":
            return self._call_result(value)
        return self._of_class(value, step)

    def _of_class(self, value: Value, step: str) -> Value | None:
        """For a class: an instance of it, its bases, or the class itself with type arguments."""
        held = self.held(value)
        if held is None or held.kind != "c":
            if held is not None and held.kind == "o" and step == ":":
                return held  # a type used as an object
            return held if step == "[]" and held is not None and held.kind == "x" else None
        if step == "[]":
            return held._replace(place=-1)
        if step == "!":
            return Value("s", held.path, held.name, INHERITED)
        return _instance_of(held, SURE.get(step, TYPED))

    def _call_result(self, value: Value) -> Value | None:
        if value.kind == "c":
            return _instance_of(value, TYPED)
        if value.kind == "f":
            entry = self.entry(value.path, value.name)
            if entry is None or len(entry) < 3 or not isinstance(entry[2], str):
                return None
            found = self._evaluate_type(value.path, entry[2], value.receiver)
            return None if found is None else lowered(found, min(value.confidence, TYPED))
        if value.kind in "vp":
            held = self.held(value)
            return None if held is None or held.kind in "vp" else self.step(held, "()")
        if value.kind == "o":
            method = self.member(value, "__call__")
            return self._call_result(method) if method is not None and method.kind == "f" else None
        return None

    def held(self, value: Value) -> Value | None:
        """The value that a variable, attribute or property holds."""
        for _ in range(MAX_DEPTH):
            if value.kind not in "vp":
                return value
            entry = self.entry(value.path, value.name)
            if entry is None or len(entry) < 3:
                return None
            found = self._evaluate_type(value.path, str(entry[2]), value.receiver)
            if found is None:
                return None
            value = lowered(found, min(value.confidence, TYPED))
        return None

    def member(self, value: Value, name: str) -> Value | None:
        """The attribute `name` of the value."""
        kind = value.kind
        if kind in "cos":
            if kind == "o" and name == CONSTRUCTOR and _offers_exports(value.path):
                return value._replace(kind="c", place=-1)
            return self.class_member(value, name)
        if kind == "m":
            assert value.module is not None, "a module's value holds it"
            return self.module_member(value.module, name, value.confidence)
        if kind in "fvp":
            return self._own_member(value, name) or self._held_member(value, name)
        return OUTSIDE if kind in "xe" else None

    def _own_member(self, value: Value, name: str) -> Value | None:
        """A member of a JavaScript object or function itself: `o.m` after `o = {m() {}}` or `o.m = …`."""
        if value.place < 0 or not _offers_exports(value.path):
            return None
        own = self.definition(value.path, f"{value.name}.{name}")
        return None if own is None else lowered(own, value.confidence)

    def _held_member(self, value: Value, name: str) -> Value | None:
        """The attribute of the value that a variable, attribute or property holds."""
        held = None if value.kind == "f" else self.held(value)
        if held is None or held.kind == "x":
            return held
        return None if held.kind in "vp" else self.member(held, name)

    def _package_files(self, path: str) -> Sequence[str]:
        """The file, and the other files of its package, whose definitions may be members of its types."""
        language = language_at(path)
        package = (
            self._find_module(path, language.own_package)
            if language is not None and language.own_package
            else None
        )
        return (path,) if package is None else (path, *(one for one in package.files if one != path))

    def _first_definition(self, files: Sequence[str], name: str) -> Value | None:
        """The name in the first file that defines it."""
        found = (self.definition(path, name) for path in files)
        return next((one for one in found if one is not None), None)

    def module_member(self, module: ModuleRef, name: str, sure: float = IMPORTED) -> Value | None:
        """The name in the module: one of its own, or a submodule."""
        if module.file is not None and _offers_exports(module.file):
            exported = self.export(module.file, name)
            return None if exported is None else lowered(exported, min(IMPORTED, sure))
        if module.files:
            found = self._first_definition(module.files, name)
            return None if found is None else lowered(found, min(IMPORTED, sure))
        found = None if module.file is None else self.name(module.file, name)
        if found is None:
            self.trace.add(("", f"{MODULE}{name}"))
            child = self.world.child(module, name)
            if child is None:
                return None
            found = module_value(child)
        return lowered(found, min(IMPORTED, sure))

    def _class_order(self, path: str, name: str) -> Order:
        entry = self.entry(path, name)
        found: list[Class] = []
        outside = False
        bases = entry[2] if entry is not None and len(entry) > 2 and entry[1] == "c" else ()
        for base in bases:
            value = self._evaluate_type(path, base, None)
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
        key = (path, name)
        return (key, *[one for one in found if one != key]), outside

    def _resolve_name(self, path: str, name: str) -> Value | None:
        own = self.definition(path, name)
        if own is not None:
            return own
        interface = self.interface(path)
        if interface is None:
            return None
        bound = interface.imports.get(name)
        if bound is None:
            return self._by_star(path, interface, name) if interface.exports is None else None
        if len(bound) == 1:
            ((target, taken),) = bound
            return self.imported(path, target, taken)
        found = {one for one in (self.imported(path, *each) for each in bound) if one is not None}
        inside = {one for one in found if one.kind != "x"}
        if inside:
            return inside.pop() if len(inside) == 1 else None
        return OUTSIDE if found else None

    def _by_star(self, path: str, interface: Interface, name: str) -> Value | None:
        outside = False
        self.trace.add((path, STAR))
        for target in interface.stars:
            ref = self._find_module(path, target)
            if ref is not None and ref.files:
                value = self._first_definition(ref.files, name)
                if value is not None:
                    return value
            if ref is None or ref.file is None:
                outside = outside or ref is None
                continue
            value = self._taken_by_star(ref.file, name)
            if value is not None:
                return lowered(value, IMPORTED)
        return OUTSIDE if outside else None

    def _taken_by_star(self, path: str, name: str) -> Value | None:
        self.trace.add((path, STAR))
        interface = self.interface(path)
        if interface is None:
            return None
        shown = not name.startswith("_") if interface.exported is None else name in interface.exported
        value = self.name(path, name) if shown else None
        return None if value is None or value.kind == "x" else value

    def _resolve_export(self, path: str, name: str) -> Value | None:
        interface = self.interface(path)
        if interface is None or interface.exports is None:
            return OUTSIDE
        self.trace.add((path, f"{EXPORT}{name}"))
        exports = interface.exports
        if name in exports:
            target, taken = exports[name]
            return self.imported(path, target, taken) if target else self.name(path, taken)
        found = None if name == DEFAULT else self._passed_on(path, interface, name)
        if found is not None or name == WHOLE:
            return found
        whole = self._whole_module(path)
        return whole if whole is None or name == DEFAULT else self.member(whole, name)

    def _passed_on(self, path: str, interface: Interface, name: str) -> Value | None:
        """The name as `export * from` provides it."""
        outside = False
        self.trace.add((path, STAR))
        for target in interface.stars:
            ref = self._find_module(path, target)
            if ref is None or ref.file is None:
                outside = True
                continue
            value = self.export(ref.file, name)
            if value is not None and value.kind != "x":
                return value
            outside = outside or value is not None
        return OUTSIDE if outside else None

    def export_names(self, path: str) -> set[str]:
        """Names that a JavaScript or TypeScript file exports, including those of `export * from`."""
        names, seen, waiting = set[str](), {path}, [path]
        while waiting:
            one = waiting.pop()
            self.trace |= {(one, EXPORTS), (one, STAR)}
            interface = self.interface(one)
            if interface is None or interface.exports is None:
                continue
            names |= interface.exports.keys() if one == path else interface.exports.keys() - {DEFAULT, WHOLE}
            found = (self._find_module(one, target) for target in interface.stars)
            following = {ref.file for ref in found if ref is not None and ref.file is not None} - seen
            seen |= following
            waiting.extend(following)
        return names

    def _whole_module(self, path: str) -> Value | None:
        """The value that is the whole module (`module.exports = …`), if there is one."""
        interface = self.interface(path)
        self.trace.add((path, f"{EXPORT}{WHOLE}"))
        has = interface is not None and interface.exports is not None and WHOLE in interface.exports
        return self.export(path, WHOLE) if has else None

    def imported(self, path: str, target: str, name: str) -> Value | None:
        """What an import in the file at `path` takes from the module; the module itself if `name` is ""."""
        ref = self._find_module(path, target)
        if ref is None:
            return OUTSIDE
        if name:
            return self.module_member(ref, name)
        whole = self._whole_module(ref.file) if ref.file is not None and _offers_exports(ref.file) else None
        return module_value(ref) if whole is None else lowered(whole, IMPORTED)

    def _find_module(self, path: str, target: str) -> ModuleRef | None:
        self.trace.add((path, f"{MODULE}{target}"))
        return self.world.find(path, target)

    def definition(self, path: str, name: str) -> Value | None:
        """The symbol or attribute with that qualified name."""
        entry = self.entry(path, name)
        if entry is not None and entry[1] == ALIAS:
            return self._alias_target(path, entry, 1.0)
        return None if entry is None else Value(entry[1], path, name, 1.0, entry[0])

    def _alias_target(self, path: str, entry: Written, sure: float) -> Value | None:
        """What an alias refers to, or the alias itself if that is outside the repository."""
        meant = str(entry[2]) if len(entry) > 2 else ""
        found = self.evaluate(path, meant) if meant else None
        if found is None or found.kind == "x":
            return OUTSIDE._replace(path=path, place=entry[0], confidence=sure)
        return lowered(found, sure)


def _offers_exports(path: str) -> bool:
    """Whether a file offers only what it exports, and objects have members of their own, as in JavaScript; a file that
    is not parsed (a component, data) is reached only from there.
    """
    language = language_at(path)
    return language is None or language.explicit_exports


def module_value(ref: ModuleRef) -> Value:
    """The module as a value."""
    return Value("m", ref.file or "", "", IMPORTED, -1, None, ref)


def _instance_of(of: Value, sure: float) -> Value:
    return Value("o", of.path, of.name, min(of.confidence, sure))


def lowered(value: Value, sure: float) -> Value:
    """Cap the confidence of the value at `sure`."""
    kind, path, name, confidence, place, receiver, module = value
    return value if confidence <= sure else Value(kind, path, name, sure, place, receiver, module)

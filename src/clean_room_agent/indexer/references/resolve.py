"""Resolves the references, dependencies and look-ups of one file from the stored names of all files.

A worked example, by hand:

    # shop/items.py            # shop/cart.py                     # app.py
    class Item:                from .items import Item            from shop.cart import Cart
        def price(self): ...
                               class Cart:                        def total(cart: Cart):
                                   def first(self) -> Item: ...       return cart.first().price()

*Reading* (`languages.python.references`) sees one file at a time. Of each it stores what others may ask of it, its interface:
definitions (place, kind, type), imports, star imports, `__all__`; and the names that its own symbols use, as tokens.

    shop/items.py  {"Item": [0, "c"], "Item.price": [1, "f"]}
    shop/cart.py   {"Cart": [0, "c"], "Cart.first": [1, "f", "Item:"]}, {"Item": [[".items", "Item"]]}
    app.py         0 (total) uses: Cart   Cart:|.first(   Cart:.first()|.price(

`cart` is a parameter and says nothing; but it is annotated, so that it is resolved as `Cart:`, an object of `Cart`.
What stands before the bar is evaluated, what stands behind it is referred to. Where nothing is known of a value, a token
begins with `?`, which means anything: `?|.price(`.

*Resolving* takes the tokens of `total` one by one:

1. `Cart` is no definition of `app.py` but an import: the module `shop.cart` is `shop/cart.py`, whose interface has the
   class: `total -> shop/cart.py:Cart name 0.95`, as sure as an import is.
2. `Cart:` is an object of it (0.85, as sure as an annotation is); its member `first` is looked for in the class, then in its
   bases: `total -> shop/cart.py:Cart.first call 0.85`.
3. `Cart:.first()`: the interface says that `first` gives `Item:`, which is evaluated in `shop/cart.py`, where it was
   written: an import of `.items`, so the class of `shop/items.py`, so an object of it. Of that, `price`:
   `total -> shop/items.py:Item.price call 0.85`.
4. Had `first` no annotation, nothing would be known of its result: if there is one `price` in the repository, it may be
   meant (0.5). Were there two, there would be none: no guess among several.

What was asked on the way is stored as look-ups: `Cart`, `Cart.first` and `Item` of `shop/cart.py`; `Item` and `Item.price` of
`shop/items.py`; and of the repository where a module `items` is. An edit that changes none of
these leaves the references of `app.py` as they are; one that does has them resolved again, from what is stored.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain

from msgspec import Struct

from clean_room_agent.indexer.references.evaluate import (
    ALIAS,
    HEAD,
    MAX_DEPTH,
    MODULE,
    Evaluations,
    Lookup,
    Order,
    Value,
)
from clean_room_agent.languages.base import WORD, ModuleRef
from clean_room_agent.languages.interface import (
    DEFAULT,
    STAR,
    WHOLE,
    FileNames,
    Interface,
    Written,
    parse_interface,
)
from clean_room_agent.languages.registry import language_at

Reference = tuple[int, str, int, str, float]
"""Caller's place, callee's path and place, kind, confidence."""
Target = tuple[str, int, str, float]
"""The same without the caller."""
MARKS = {"@": "decorator", "<": "inheritance"}
UNIQUE = 0.5


class Resolved(Struct, frozen=True):
    """Everything one file refers to."""

    references: tuple[Reference, ...]
    """Sorted; one for each caller, callee and kind."""
    dependencies: tuple[tuple[str, str], ...]
    """Path and import or type_ref, sorted."""
    lookups: Mapping[str, frozenset[str]]
    """Path of another file -> the keys that were asked for, found or not.

    Under "" stand the names that were hoped to be unique in the repository, and after `?` the words of modules whose
    coming or going matters here although this file's own imports do not mention them (`languages.base.WORD`).
    """
    reexports: tuple[tuple[str, str, int], ...] = ()
    """Name, path and place (-1: the whole module) of what is passed on from other files, by name."""


class FileEvaluator(Evaluations):
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
        return self._memoized_value(self._expressions, expression, self._evaluate_uncached)

    def name(self, path: str, name: str) -> Value | None:
        """The value of the name."""
        if path != self.path:
            return self._others.name(path, name)
        return self._memoized_value(self._names, name, self._resolve_name)

    def _memoized_value(
        self, known: dict[str, Value | None], asked: str, find: Callable[[str, str], Value | None]
    ) -> Value | None:
        if asked in known:
            return known[asked]
        if self._depth > MAX_DEPTH:
            return None
        known[asked] = None  # the answer where it is asked again on the way
        self._depth += 1
        found = known[asked] = find(self.path, asked)
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
        found = self._orders[name] = self._class_order(path, name)
        self._depth -= 1
        return found

    def class_member(self, value: Value, name: str) -> Value | None:
        """The attribute."""
        if value.path != self.path:
            return self._others.class_member(value, name)
        return self._class_member(value, name)

    def _find_module(self, path: str, target: str) -> ModuleRef | None:
        # What the file's own imports mention need not be recorded as a lookup.
        return self.world.find(path, target) if path == self.path else super()._find_module(path, target)


def resolve_file(path: str, names: FileNames, evaluations: Evaluations) -> Resolved:
    """Resolve all references and dependencies of the file; the result changes only if a key in `lookups` does.

    Pass the same `evaluations` for several files of one world, so that nothing is evaluated twice.
    """
    inner, imports, uses = json.loads(names.uses)
    if evaluations.interfaces.get(path) is None:
        evaluations.interfaces[path] = parse_interface(names.interface)
    tokens = _Tokens(FileEvaluator(path, inner, evaluations))
    rows: list[Reference] = []
    for caller, text in uses:
        before: Target | None = None
        for target in sorted(set(chain.from_iterable(map(tokens.__getitem__, text.split(" "))))):
            where, place, kind, confidence = target
            if place == caller and kind != "call" and where == path:
                continue
            if before is not None and before[:3] == target[:3]:
                # The same reference with a lower confidence: the surest sorts last.
                rows.pop()
            before = target
            rows.append((caller, where, place, kind, confidence))
    evaluator = tokens.evaluator
    dependencies, reexports = _dependencies(evaluator, imports), tuple(_reexports(evaluator))
    return Resolved(
        tuple(rows), dependencies, _group_lookups(path, evaluator.trace, tokens.unique), reexports
    )


def _reexports(evaluator: FileEvaluator) -> Iterator[tuple[str, str, int]]:
    interface = evaluator.interface(evaluator.path)
    if interface is None or interface.exports is None or not (interface.exports or interface.stars):
        return
    definitions, exports = interface.definitions, interface.exports
    names = evaluator.export_names(evaluator.path)
    if DEFAULT in names:
        names.discard(WHOLE)
    for name in sorted(names):
        module, there = exports.get(name, ("", ""))
        if not module and there in definitions and definitions[there][1] != ALIAS:
            continue  # its own
        value = evaluator.export(evaluator.path, name)
        if value is None or value.path in {"", evaluator.path}:
            continue
        if value.kind == "m" or (value.kind != "x" and value.place >= 0):
            yield DEFAULT if name == WHOLE else name, value.path, value.place


def _group_lookups(path: str, trace: Iterable[Lookup], unique: set[str]) -> dict[str, frozenset[str]]:
    lookups: dict[str, list[str]] = defaultdict(list)
    anywhere = unique
    for where, key in trace:
        if where != path:
            if key[0] != MODULE:
                lookups[where].append(key)
            elif where:
                anywhere |= _module_words(key)
            else:
                anywhere.add(key)
    if anywhere:
        lookups[""] = list(anywhere)
    return {where: frozenset(keys) for where, keys in lookups.items()}


@lru_cache(maxsize=4096)
def _module_words(module: str) -> frozenset[str]:
    return frozenset(f"{MODULE}{word}" for word in WORD.findall(module[len(MODULE) :]))


class _Tokens(dict[str, Sequence[Target]]):
    """Token -> the symbols that its visible part refers to, resolved when first asked for."""

    def __init__(self, evaluator: FileEvaluator) -> None:
        super().__init__()
        self.evaluator = evaluator
        self.unique: set[str] = set()
        language = language_at(evaluator.path)
        self._common = frozenset[str]() if language is None else language.common_members()

    def __missing__(self, token: str) -> Sequence[Target]:
        last = "call" if token[-1] == "(" else ""
        text = token[:-1] if last else token
        if text[0] in MARKS:
            last, text = MARKS[text[0]], text[1:]
        hidden, bar, shown = text.partition("|")
        evaluator = self.evaluator
        found: list[Target] = []
        if not bar:
            self._resolve_plain(text, last, found)
        else:
            value = None if hidden == "?" or not hidden else evaluator.evaluate(evaluator.path, hidden)
            self._resolve_attributes(value, shown[1:].split("."), last, found)
        self[token] = found
        return found

    def _resolve_plain(self, text: str, last: str, found: list[Target]) -> None:
        """Resolve a token without a hidden part."""
        evaluator = self.evaluator
        if text[0] == "=" and text[-1] == ";":
            entry = evaluator.entry(evaluator.path, text[1:-1])
            if entry is not None and entry[0] >= 0:
                found.append((evaluator.path, entry[0], last or "name", 1.0))
            return
        if text.isidentifier():
            value = evaluator.name(evaluator.path, text)
            if value is not None and value.place >= 0:
                found.append((value.path, value.place, last or "name", value.confidence))
            return
        head = HEAD.match(text)
        if head is None:
            return
        value = evaluator.head(evaluator.path, head)
        names = text[head.end() + 1 :].split(".") if head.end() < len(text) else []
        if value is not None and value.place >= 0:
            found.append((value.path, value.place, "name" if names else last or "name", value.confidence))
        self._resolve_attributes(value, names, last, found)

    def _resolve_attributes(
        self, value: Value | None, names: Sequence[str], last: str, found: list[Target]
    ) -> None:
        """Resolve names that are each an attribute of the one before."""
        count = len(names)
        for number, name in enumerate(names, start=1):
            if value is not None:
                if value.kind == "x":
                    return
                value = self.evaluator.member(value, name)
            if value is None:
                target = self._unique_symbol(name)
                if target is not None:
                    found.append((*target, (last or "attribute") if number == count else "attribute", UNIQUE))
            elif value.place >= 0:
                kind = (last or "attribute") if number == count else "attribute"
                found.append((value.path, value.place, kind, value.confidence))

    def _unique_symbol(self, name: str) -> tuple[str, int] | None:
        if name in self._common or len(name) < 3:
            return None
        self.unique.add(name)
        return self.evaluator.world.unique(self.evaluator.path, name)


def _dependencies(
    evaluator: FileEvaluator, imports: Sequence[tuple[str, Sequence[str], str]]
) -> tuple[tuple[str, str], ...]:
    """The files that the imports name, and those that define what is imported."""
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
                value = evaluator.module_member(ref, name)
                if value is not None and value.path:
                    reached.add(value.path)
        for one in reached:
            if one != path and (kind == "import" or one not in found):
                found[one] = kind
    return tuple(sorted(found.items()))

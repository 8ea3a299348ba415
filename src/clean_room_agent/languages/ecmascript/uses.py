"""Names that each symbol of a JavaScript or TypeScript file uses, as tokens that resolve without its scopes."""

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence

from tree_sitter import Node

from clean_room_agent.languages.ecmascript.binding import Binds
from clean_room_agent.languages.ecmascript.builtin_members import COMMON_MEMBERS
from clean_room_agent.languages.ecmascript.expressions import BETWEEN, STEPS, WORD, of_value
from clean_room_agent.languages.ecmascript.regions import base_nodes
from clean_room_agent.languages.interface import MAX_LENGTH

CALLED = r"(\s*+!?\s*+(?:\?\.)?(?:<[^<>()=;]*+>)?\(|`)?+"
CHAIN = re.compile(rf"({WORD})({STEPS}){CALLED}")
"""A name, its members, and whether the last of them is called."""
FOLLOWING = re.compile(rf"({STEPS}){CALLED}")
CALLED_FIRST = re.compile(r"#[^;]*;;|[^#():?%@]*(?:\(\)|[:?%@])")
"""What an expression begins with that is more than names."""
MEMBER = re.compile(rf"(.+)(\.#?{WORD})")
UNKNOWN = "?|"
"""The head of a token whose beginning is a value of which nothing is known."""
LOCAL = "|"
"""The head of a local whose value nobody asked for yet: alone, it says nothing."""
COMMON_STEPS = frozenset(f".{name}{call}" for name in COMMON_MEMBERS for call in ("", "("))
ELEMENT = "/"
"""Marks the name of a JSX element: its component is called."""
SPECIAL = frozenset({"super", "exports"})
DECORATOR = "@"
BASE = "<"


class Uses:
    """Collects the tokens of one file (`resolve._Tokens` explains them)."""

    def __init__(
        self, binds: Binds, captures: Mapping[str, Sequence[Node]], module_names: Container[str]
    ) -> None:
        self._binds = binds
        self._captures = captures
        self._module_names = module_names
        self._tokens: dict[int, set[str]] = defaultdict(set)

    def read(self) -> list[tuple[int, str]]:
        """(place of a symbol, its sorted tokens separated by spaces) for each symbol with any."""
        self._names()
        self._chains()
        return [(place, " ".join(sorted(found))) for place, found in sorted(self._tokens.items())]

    def _marks(self) -> dict[int, str]:
        """First byte -> mark of uses that are not plain names."""
        captures = self._captures
        marks = {node.start_byte: ELEMENT for node in captures.get("use.element", ())}
        marks |= {node.start_byte + 1: DECORATOR for node in captures.get("decorator", ())}
        for node in captures.get("use.bases", ()):
            if node.parent is not None:
                marks |= {base.start_byte: BASE for base in base_nodes(node.parent)}
        return marks

    def _written(self) -> Iterator[tuple[int, int, int, re.Match[str]]]:
        """Yield first byte, symbol, scope and text of each use that starts with a name, `this` or `super`."""
        binds = self._binds
        text, declared, match = binds.text, binds.declared, CHAIN.match
        pieces = binds.regions.pieces()
        place, scope, end = -1, 0, 0
        for start in sorted([node.start_byte for node in self._captures.get("use.name", ())]):
            while start >= end:
                place, scope, end = next(pieces)
            if place < 0 or start in declared:
                continue
            if text[start - 1] == "." and text[start - 2] != ".":
                continue  # the last name of a dotted type
            chain = match(text, start)
            if chain is not None:
                yield start, place, scope, chain

    def _names(self) -> None:
        marks, is_value = self._marks(), self._binds.scopes.is_value
        heads: dict[int, dict[str, str]] = defaultdict(dict)
        for start, place, scope, chain in self._written():
            head, steps, call = chain.groups()
            if head in SPECIAL:
                head, steps = self._special(head, steps)
            known = heads[scope]
            prefix = known.get(head)
            bare = not steps and not call and start not in marks
            if prefix is None or (prefix == LOCAL and not bare):
                prefix = known[head] = LOCAL if bare and is_value(head, scope) else self._prefix(head, scope)
            if not prefix or (bare and prefix[-1] == "|"):
                continue
            if steps:
                steps = BETWEEN.sub("", steps)
            if start in marks:
                if marks[start] != ELEMENT or steps or not head[0].islower():  # `<div>` is the browser's
                    self._marked(marks[start], prefix, steps, place)
            elif steps or prefix[-1] != "|":
                self._add(place, prefix, f"{steps}(" if call else steps)
            elif call and (called := self._called_local(prefix)):
                self._tokens[place].add(called)

    def _special(self, head: str, steps: str) -> tuple[str, str]:
        """Treat `super(…)` as a call of the constructor, and members of `exports` as names of the module."""
        if head == "super":
            return head, steps or ".constructor"
        name, dot, rest = BETWEEN.sub("", steps)[1:].partition(".")
        return (name, dot + rest) if name in self._module_names else (head, steps)

    def _add(self, place: int, prefix: str, steps: str) -> None:
        if prefix != UNKNOWN or steps not in COMMON_STEPS:
            self._tokens[place].add(prefix + steps)

    def _marked(self, mark: str, prefix: str, steps: str, place: int) -> None:
        if prefix[-1] == "|" and not steps:
            return
        if mark == ELEMENT:
            self._add(place, prefix, f"{steps}(")
        else:
            self._add(place, mark + prefix, steps)

    def _prefix(self, head: str, scope: int) -> str:
        """What replaces a use's first name in a token; "" if the name is not from this repository."""
        meaning = self._binds.scopes.head(head, scope)
        if meaning is None:
            return head if head in self._module_names else ""
        if meaning and meaning[0] in "=#" and meaning[-1] == ";" and head != "this":
            return meaning
        return f"{meaning}|" if meaning and len(meaning) < MAX_LENGTH else UNKNOWN

    def _called_local(self, prefix: str) -> str:
        """What calling a local calls: the member it was taken from, or the function it is an alias of."""
        meaning = prefix[:-1]
        taken = MEMBER.fullmatch(meaning)
        if taken is not None:
            return f"{taken[1]}|{taken[2]}("
        return f"{meaning}(" if meaning in self._module_names else ""

    def _chains(self) -> None:
        """Add tokens for members of call results."""
        binds = self._binds
        longest: dict[int, Node] = {}
        for node in self._captures.get("use.chain", ()):
            known = longest.get(node.start_byte)
            if known is None or known.end_byte < node.end_byte:
                longest[node.start_byte] = node
        for start, node in longest.items():
            place, scope = binds.regions.at(start)
            if place < 0:
                continue
            written = of_value(node, binds.text)
            split = CALLED_FIRST.match(written)
            head = binds.scopes.canonical(split[0], scope) if split else ""
            following = FOLLOWING.match(binds.text, node.end_byte)
            steps = "" if following is None else BETWEEN.sub("", following[1])
            call = "(" if following is not None and following[2] else ""
            if head and split:
                self._add(place, f"{head}|", f"{written[split.end() :]}{steps}{call}")
            elif name := node.child_by_field_name("property"):
                self._add(place, UNKNOWN, f".{binds.string(name)}{steps}{call}")

"""The names that each symbol of a file uses, as tokens that can be resolved without knowing its scopes.

`indexer.references.resolve` works through an example; `resolve._Tokens` explains the tokens.
"""

import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import ClassVar

from tree_sitter import Node

from clean_room_agent.languages.bindings import Bindings
from clean_room_agent.languages.interface import MAX_LENGTH

MEMBER = re.compile(r"(.+)(\.[^.()\[\]:@!?%]+)")
UNKNOWN = "?|"
"""The head of a token whose beginning is a value of which nothing is known."""
LOCAL = "|"
"""The head of a local whose value nobody asked for yet: alone, it says nothing."""
DECORATOR = "@"
BASE = "<"
WrittenUse = tuple[int, int, int, re.Match[str]]
"""First byte, symbol, scope and text of a use that begins with a name."""


class Uses(ABC):
    """Collects the tokens of one file."""

    chain: ClassVar[re.Pattern[str]]
    """A name (group 1), its members, and, if the last of them is called, what shows that."""
    following: ClassVar[re.Pattern[str]]
    """The same without the name."""
    between: ClassVar[re.Pattern[str]] = re.compile(r"\s+")
    """What may stand between members, and means nothing."""
    member_field: ClassVar[str]
    """The field of a captured `use.chain` that holds the member's name; its value is `object`."""
    common: ClassVar[frozenset[str]]
    """Names of members that say nothing of what is meant where nothing is known of the value."""

    def __init__(self, captures: Mapping[str, Sequence[Node]], bindings: Bindings) -> None:
        self._captures = captures
        self._text = bindings.text
        self._definitions = bindings.nested.definitions
        self._regions = bindings.regions
        self._scopes = bindings.scopes
        self._declared = bindings.declared
        self._module_names: Container[str] | None = ()
        self._tokens: dict[int, set[str]] = defaultdict(set)

    def read(self, module_names: Container[str] | None) -> list[tuple[int, str]]:
        """(place of a symbol, its sorted tokens separated by spaces) for each symbol with any.

        `module_names` are those that the file defines or imports; None if it may import any.
        """
        self._module_names = module_names
        self._add_names()
        self._add_chains()
        self._share_tokens()
        return [(place, " ".join(sorted(found))) for place, found in sorted(self._tokens.items())]

    def _share_tokens(self) -> None:
        """Give what a statement uses to all variables that it sets, not just to the last."""
        spans = [(one.start, one.end) for one in self._definitions]
        for place in range(len(spans) - 1, 0, -1):
            if place in self._tokens and spans[place - 1] == spans[place]:
                self._tokens[place - 1] |= self._tokens[place]

    @abstractmethod
    def marks(self) -> dict[int, str]:
        """First byte -> mark of uses that are not plain names."""

    def parts(self, chain: re.Match[str]) -> tuple[str, str, str]:
        """The first name, the members and the sign of a call; the name is "" if nothing is used."""
        head, steps, call = chain.groups()
        return head, steps, call or ""

    @abstractmethod
    def is_receiver(self, name: str) -> bool:
        """Whether the name stands for the object that a method was called on, or for its class."""

    def add_marked(self, mark: str, prefix: str, steps: str, place: int) -> None:
        """Add what a marked use says."""
        if prefix[-1] != "|" or steps:
            self.add(place, mark + prefix, steps)

    def add(self, place: int, prefix: str, steps: str) -> None:
        """Add a token, unless it says nothing."""
        if prefix != UNKNOWN or steps.rstrip("(")[1:] not in self.common:
            self._tokens[place].add(prefix + steps)

    def written(self) -> Iterator[WrittenUse]:
        """Each use that begins with a name, or with a word such as `super`."""
        text, declared, match = self._text, self._declared, self.chain.match
        pieces = self._regions.pieces()
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

    def _add_names(self) -> None:
        marks, is_value = self.marks(), self._scopes.is_value
        heads: dict[int, dict[str, str]] = defaultdict(dict)
        for start, place, scope, chain in self.written():
            head, steps, call = self.parts(chain)
            if not head:
                continue
            known = heads[scope]
            prefix = known.get(head)
            bare = not steps and not call and start not in marks
            if prefix is None or (prefix == LOCAL and not bare):
                prefix = known[head] = (
                    LOCAL if bare and is_value(head, scope) else self._token_prefix(head, scope)
                )
            if not prefix or (bare and prefix[-1] == "|"):
                continue
            steps = self.between.sub("", steps)
            if start in marks:
                self.add_marked(marks[start], prefix, steps, place)
            elif steps or prefix[-1] != "|":
                self.add(place, prefix, f"{steps}(" if call else steps)
            elif call and (called := self._called_local(prefix)):
                self._tokens[place].add(called)

    def _token_prefix(self, head: str, scope: int) -> str:
        """What replaces a use's first name in a token; "" if the name is not from this repository."""
        meaning = self._scopes.head(head, scope)
        if meaning is None:
            return head if self.is_module_name(head) else ""
        if meaning and meaning[0] in "=#" and meaning[-1] == ";" and not self.is_receiver(head):
            return meaning
        return f"{meaning}|" if meaning and len(meaning) < MAX_LENGTH else UNKNOWN

    def _called_local(self, prefix: str) -> str:
        """What calling a local calls: the member it was taken from, or the function it is an alias of."""
        meaning = prefix[:-1]
        taken = MEMBER.fullmatch(meaning)
        if taken is not None:
            return f"{taken[1]}|{taken[2]}("
        return f"{meaning}(" if meaning.isidentifier() and self.is_module_name(meaning) else ""

    def is_module_name(self, name: str) -> bool:
        """Whether the name may be one of the module."""
        return self._module_names is None or name in self._module_names

    def _add_chains(self) -> None:
        """Add tokens for members of call results and of other values without a name."""
        for node in self._captures.get("use.chain", ()):
            place, scope = self._regions.at(node.start_byte)
            value, name = node.child_by_field_name("object"), node.child_by_field_name(self.member_field)
            following = self.following.match(self._text, node.end_byte)
            if place < 0 or value is None or name is None or following is None:
                continue
            written = self._scopes.value(value)
            known = self._scopes.canonical(written, scope) if written else ""
            prefix = f"{known}|" if known and len(known) < MAX_LENGTH else UNKNOWN
            member = self._text[name.start_byte : name.end_byte]
            steps = f".{member}{self.between.sub('', following[1])}"
            self.add(place, prefix, f"{steps}(" if following[2] else steps)

"""Reads one parsed Python file: its interface for other files, and the names that each symbol uses."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from tree_sitter import Node

from clean_room_agent.json_values import to_json
from clean_room_agent.languages.interface import MAX_LENGTH, STAR, FileNames, Written, write_interface
from clean_room_agent.languages.latin1 import as_bytes, import_as_bytes, real_name
from clean_room_agent.languages.nesting import Nested, innermost
from clean_room_agent.languages.parsed import RawImport
from clean_room_agent.languages.python import binding
from clean_room_agent.languages.python.binding import Binds, read_binds
from clean_room_agent.languages.python.expressions import CHAIN, chain_of, split
from clean_room_agent.languages.python.name_scan import (
    BUILTINS,
    COMMON,
    KEYWORDS,
    WORD,
    mentions,
    mentions_of,
)
from clean_room_agent.languages.python.parameters import arguments
from clean_room_agent.languages.python.scopes import EMPTY, FUNCTIONS, bindings

QUERY = binding.QUERY + "(attribute object: (call)) @use.chain\n"
GROWS = re.compile(r"^__all__\s*(?:\+=|\.)", re.MULTILINE)
QUOTED = re.compile(r"[\"']([^\"'\n]+)[\"']")
PROPERTY = re.compile(r"@(?:[\w.]*\.)?(?:\w*property\w*|memoized_attribute|setter|getter|deleter)\b")
FOLLOWING = re.compile(rf"(?:\.{WORD})*+\(?")
MAX_CHAIN = 60
"""Steps of one expression that are followed."""
SUPER = "super("
MARKED = "@"
"""In place of a head that depends on what follows."""
UNKNOWN = "?|"
"""The head of a token whose beginning is a value of which nothing is known."""
HIDDEN_WORDS = frozenset(f"{name}{call}" for name in KEYWORDS | BUILTINS for call in ("", "(")) | {""}
COMMON_STEPS = frozenset(f".{name}{call}" for name in COMMON for call in ("", "("))


def read_names(
    captures: Mapping[str, Sequence[Node]], source: bytes, nested: Nested, imports: Sequence[RawImport]
) -> FileNames:
    """Turn what `QUERY` captured in a Python file into its interface and uses."""
    text = source.decode("latin-1")
    if not source.isascii():
        nested, imports = as_bytes(nested), [import_as_bytes(one) for one in imports]
    binds = read_binds(captures, nested, text)
    places = innermost((one.start for one in imports), nested)
    outside: dict[str, list[tuple[str, str]]] = {}
    stars: list[str] = []
    for one, place in zip(imports, places, strict=True):
        for bound, name, target in bindings(one):
            if place >= 0 and bound != STAR:
                binds.scopes.bind_import(place, bound, f"#{target};{name};")
            elif name == STAR:
                stars.append(target)
            elif (target, name) not in outside.setdefault(bound, []):
                outside[bound].append((target, name))
    binds.scopes.finish()
    reachable, inner = _definitions(binds)
    exported = None if binds.exported and GROWS.search(text) else binds.exported
    hidden = HIDDEN_WORDS
    if stars:
        hidden = KEYWORDS | {""}
    elif rebound := [name for name in BUILTINS if name in reachable or name in outside]:
        hidden = HIDDEN_WORDS.difference(rebound, [f"{name}(" for name in rebound])
    uses = _Uses(binds, hidden).read()
    taken = [(one.target, one.names, one.kind) for one in imports]
    return FileNames(
        real_name(write_interface(reachable, outside, list(dict.fromkeys(stars)), exported)),
        real_name(to_json([inner, taken, uses])),
    )


def _definitions(binds: Binds) -> tuple[dict[str, Written], dict[str, Written]]:
    """Definitions by qualified name: first those visible to other files, then those inside functions."""
    nested = binds.nested
    kinds, parents = nested.kinds, nested.parents
    reachable: dict[str, Written] = {}
    inner: dict[str, Written] = {}
    local: set[int] = set()
    repeated = len(set(nested.names)) < len(nested.names)
    counts = Counter(nested.names) if repeated else {}
    seen: Counter[str] = Counter()
    for place, name in enumerate(nested.names):
        parent = parents[place]
        if parent >= 0 and (parent in local or kinds[parent] in FUNCTIONS):
            local.add(place)
        into = inner if place in local else reachable
        if repeated and counts[name] > 1:
            seen[name] += 1
            if name not in into or not _is_overload(binds, place):
                into[name] = (place, *_described(binds, place), f"{seen[name]}/{counts[name]}")
            continue
        kind, types = _described(binds, place)
        into[name] = (place, kind, types) if types else (place, kind)
    for place in binds.attributes:
        _attributes(binds, place, inner if place in local else reachable)
    return reachable, inner


def _is_overload(binds: Binds, place: int) -> bool:
    return "overload" in _decorators(binds, place)


def _decorators(binds: Binds, place: int) -> str:
    one = binds.nested.definitions[place]
    if not binds.text.startswith("@", one.start):
        return ""
    return binds.text[one.start : binds.text.find(one.signature[: len(one.name) + 4], one.start)]


def _described(binds: Binds, place: int) -> tuple[str, str | list[str]]:
    """The kind of the definition, and its bases or the type of its value."""
    nested, scopes = binds.nested, binds.scopes
    kind, parent = nested.kinds[place], nested.parents[place]
    if kind == "class":
        return "c", [
            base
            for text in split(arguments(nested.definitions[place].signature), ",")
            if (chain := CHAIN.match(text.strip()))
            and not text.strip()[chain.end() :].lstrip().startswith("=")
            if (base := scopes.canonical(chain[0], parent))
        ]
    if kind in FUNCTIONS:
        decorators = _decorators(binds, place)
        shown = "p" if decorators and PROPERTY.search(decorators) else "f"
        return shown, _fit(_returned(binds, place))
    expression, scope = binds.variables.get(place, ("", parent))
    return "v", _fit(scopes.canonical(expression, scope) if expression else "")


def _fit(expression: str) -> str:
    return expression if len(expression) <= MAX_LENGTH else ""


def _returned(binds: Binds, place: int) -> str:
    annotated = binds.annotated.get(place)
    if annotated is not None:
        return binds.scopes.canonical(annotated, binds.nested.parents[place]) if annotated else ""
    returned = binds.returned.get(place)
    if returned is None or not any(returned):
        return ""
    own = binds.self_names.get(place)
    found = {
        "~" if one == own else binds.scopes.canonical(one, place) if one else ""
        for one in returned
        if one != "None"
    }
    known = found - {""}
    if len(known) != 1:
        return ""
    (only,) = known
    return f"{only}%" if "" not in found else f"{only}?"


def _attributes(binds: Binds, place: int, into: dict[str, Written]) -> None:
    """Add attributes that methods assign to `self` to the class's members."""
    for attribute, bound in binds.attributes.get(place, {}).items():
        name = f"{binds.nested.names[place]}.{attribute}"
        existing = into.get(name)
        types = _fit(binds.scopes.agreed(bound)) if existing is None or existing[1:] == ("v",) else ""
        if existing is None:
            into[name] = (-1, "v", types) if types else (-1, "v")
        elif types:
            into[name] = (existing[0], "v", types)


class _Uses:
    """Turns what each symbol mentions into tokens that can be resolved without knowing its scopes."""

    def __init__(self, binds: Binds, hidden: frozenset[str]) -> None:
        self._binds = binds
        self._hidden = hidden

    def read(self) -> list[tuple[int, str]]:
        """(place of a symbol, its sorted tokens separated by spaces) for each symbol with any."""
        found = []
        for place, mentioned in enumerate(mentions_of(_own_texts(self._binds))):
            tokens = self._tokens(place, mentioned)
            if tokens:
                found.append((place, " ".join(sorted(tokens))))
        return found

    def _tokens(self, place: int, mentioned: set[str]) -> set[str]:
        binds = self._binds
        plain, special = binds.scopes.visible(place)
        annotations = binds.annotations.get(place, EMPTY)
        found = mentioned.difference(self._hidden, plain)
        if special:
            found |= mentioned & special
        tokens: set[str] = set()
        heads: dict[str, str] = {}
        add = tokens.add
        for mention in found:
            name, dot, rest = mention.partition(".")
            if mention[-1] == "=":
                if dot or annotations:
                    self._assigned(mention[:-1].rstrip(), annotations, place, tokens)
            elif not dot:
                bare = name[:-1] if name[-1] == "(" else name
                if bare in special or bare[0] == "@":
                    self._special(mention, place, tokens)
                elif bare not in plain:
                    add(mention)
            else:
                head = heads.get(name)
                if head is None:
                    head = heads[name] = self._head(name, place, plain, special)
                if head == MARKED:
                    self._special(mention, place, tokens)
                elif head and (head != UNKNOWN or f".{rest}" not in COMMON_STEPS):
                    add(f"{head}.{rest}")
        self._beside(annotations, place, tokens)
        return tokens

    def _beside(self, annotations: Iterable[str], place: int, tokens: set[str]) -> None:
        """Add what a scan for names misses: chains of calls, types in strings, and which names are bases."""
        binds = self._binds
        if place in binds.chains:
            for node in binds.chains[place].values():
                self._add_chain(node, place, tokens)
        if annotations:
            self._forward(annotations, place, tokens)
        if binds.nested.kinds[place] == "class":
            self._bases(binds.nested.definitions[place].signature, place, tokens)

    def _head(self, name: str, place: int, plain: Container[str], special: Container[str]) -> str:
        """What replaces a name before a dot; "" if there is no token, `MARKED` if it takes a closer look."""
        if not name:
            return UNKNOWN
        if name in special or name[0] == "@" or "(" in name:
            return MARKED
        if name not in plain:
            return "" if name in self._hidden else name
        meaning = self._binds.scopes.meaning(name, place)
        if meaning is None:
            return name
        return f"{meaning}|" if meaning and len(meaning) < MAX_LENGTH else UNKNOWN

    def _assigned(self, written: str, annotations: Container[str], place: int, tokens: set[str]) -> None:
        """Handle what precedes `=`: an annotation, the owner of an attribute, or no use at all."""
        if written in annotations:
            self._special(written, place, tokens)
        else:
            owner = written.rpartition(".")[0]
            if owner and owner != self._binds.self_names.get(place):
                self._special(owner, place, tokens)

    def _special(self, mention: str, place: int, tokens: set[str], mark: str = "") -> None:
        if mention[0] == "@":
            mark, mention = "@", mention[1:]
        if mention.startswith(SUPER) and ")." in mention:
            self._super(mention, place, tokens)
            return
        name, dot, rest = mention.partition(".")
        bare = name[:-1] if name[-1:] == "(" else name
        if not bare or bare in self._hidden:
            return
        meaning = self._binds.scopes.meaning(bare, place, in_class=mark == "@")
        if meaning is None:
            tokens.add(mark + mention)
        elif meaning:
            if meaning[0] in "=#" and meaning[-1] == ";" and bare != self._binds.self_names.get(place):
                tokens.add(f"{mark}{meaning}{mention[len(bare) :]}")
            elif dot and len(meaning) < MAX_LENGTH:
                tokens.add(f"{mark}{meaning}|.{rest}")
        elif dot:
            tokens.add(f"{UNKNOWN}.{rest}")

    def _super(self, mention: str, place: int, tokens: set[str]) -> None:
        arguments_, _, rest = mention.removeprefix(SUPER).partition(").")
        for inner in mentions(arguments_):
            self._special(inner, place, tokens)
        own = self._binds.scopes.class_of(place)
        if own >= 0:
            tokens.add(f"={self._binds.nested.names[own]};!|.{rest}")

    def _add_chain(self, node: Node, place: int, tokens: set[str]) -> None:
        """Add a token for members of call results: `cart.first().price`."""
        text, end = self._binds.text, node.end_byte
        first, called, rest = chain_of(node, text, MAX_CHAIN).partition("()")
        if not rest or first.partition(".")[0] in self._hidden:
            return
        known = self._binds.scopes.canonical(first + called, place)
        if known:
            following = FOLLOWING.match(text, end)
            tokens.add(f"{known}|{rest}{following[0] if following else ''}")

    def _bases(self, signature: str, place: int, tokens: set[str]) -> None:
        parent = self._binds.nested.parents[place]
        for part in split(arguments(signature), ","):
            base = part.strip()
            chain = CHAIN.match(base)
            direct = chain[0] if chain and not base.startswith("(", chain.end()) else ""
            for mention in mentions(base):
                mark = "<" if mention == direct else ""
                if mention[-1] != "=":
                    self._special(mention, parent, tokens, mark)

    def _forward(self, annotations: Iterable[str], place: int, tokens: set[str]) -> None:
        """Add types that are named in strings."""
        parent = self._binds.nested.parents[place]
        for annotation in annotations:
            if ('"' in annotation or "'" in annotation) and "Literal" not in annotation:
                for quoted in QUOTED.findall(annotation):
                    for mention in mentions(quoted):
                        self._special(mention.rstrip("= \t"), parent, tokens)


def _own_texts(binds: Binds) -> list[str]:
    """For each symbol, its text without that of inner symbols; a class's starts after its head."""
    nested, text = binds.nested, binds.text
    texts = []
    children: dict[int, list[int]] = {}
    for place, parent in enumerate(nested.parents):
        children.setdefault(parent, []).append(place)
    for place, one in enumerate(nested.definitions):
        start = one.start
        if nested.kinds[place] == "class":
            pieces = [_decorators(binds, place)]
            start += len(pieces[0]) + len(one.signature)
        else:
            pieces = []
        for child in children.get(place, ()):
            inner = nested.definitions[child]
            if inner.start > start:
                pieces.append(text[start : inner.start])
            start = max(start, inner.end)
        pieces.append(text[start : one.end])
        texts.append("\n".join(pieces))
    return texts

"""What an answer for one definition means, although it is not quite that definition.

Small models leave out what they were shown (decorators, `export`, the docstring, the line with `def`), repeat what stands
around it (the class, other definitions, imports), and lose its indentation. Where only one reading is possible, the
answer is repaired; else it is refused with the reason. An answer that does not define the symbol is never applied:

    asked for    def total(items):              answered    return sum(items)
                     return sum(items) + 1

gets its `def total(items):` back, since the whole body was one statement; of a longer body it could be a part.

An edit may change many definitions, so what it writes of others must not get lost. Where one definition was asked for and
nothing else (`only`), the rest of the answer does not count, a body is the whole body, and the docstring, of which only the
beginning was shown, stays as it is.
"""

import re
import textwrap
from collections.abc import Iterator

from msgspec import Struct
from tree_sitter import Node

from clean_room_agent.execute.edits.definitions import EditableDefinition, definitions
from clean_room_agent.execute.edits.indent_units import rows_in_strings
from clean_room_agent.execute.edits.search_replace import indentation, line_of, reindented
from clean_room_agent.languages.nodes import Nodes
from clean_room_agent.syntax import import_lines, is_bare_string, node_text, nodes_of, tree_of

QUOTES = ('"""', "'''")
HEAD_CHARS = 120
BLANK_LINES = re.compile(r"(?:[ \t]*\r?\n)*")


class WholeDefinition(Struct, frozen=True, kw_only=True):
    """The new source of a definition, at the indentation of its place."""

    text: str
    imports: tuple[str, ...] = ()
    """Import statements that the answer has above it and the file lacks."""
    is_body: bool = False
    """Whether the answer was only its body."""


class NoDefinition(Struct, frozen=True, kw_only=True):
    """Why the answer cannot be used, in words."""

    reason: str


class _Parts(Struct, frozen=True, kw_only=True):
    """A function or class within a text. Places are character offsets."""

    lead: str
    """What precedes it in its span: decorators, `export`, with the blanks that begin the lines."""
    own: int
    """Where it begins without its lead."""
    parameters: str
    """Without white space; "" for a class."""
    head_end: int
    """Behind the line above its docstring, or above its first statement if it has none; -1 if these share a line."""
    docstring: str
    """Whole lines; "" if there is none."""
    statements: tuple[tuple[str, str], ...]
    """Kind and text of each, without the docstring."""
    body: tuple[int, int]
    """From the beginning of the first statement's line to the end of the last one."""
    is_function: bool


class _Place(Struct, frozen=True, kw_only=True):
    """Where the definition stands."""

    path: str
    text: str
    span: tuple[int, int]
    symbol: str
    only: bool

    @property
    def old(self) -> str:
        return self.text[slice(*self.span)]

    @property
    def target(self) -> EditableDefinition | None:
        """The definition, if the file's syntax knows it."""
        name = self.symbol.rpartition(".")[2]
        inside = (one for one in definitions(self.path, self.text) if self._contains_definition(one))
        return next((one for one in inside if one.symbol.rpartition(".")[2] == name), None)

    def elsewhere(self) -> dict[str, str]:
        """The file's other definitions, with their sources; not those inside the definition."""
        return {
            one.symbol: self.text[one.start : one.end]
            for one in definitions(self.path, self.text)
            if not self._contains_definition(one)
        }

    def _contains_definition(self, one: EditableDefinition) -> bool:
        return self.span[0] <= one.start and one.end <= self.span[1]

    def with_new(self, new: str) -> str:
        return self.text[: self.span[0]] + new + self.text[self.span[1] :]

    def defined_by(self, new: str) -> tuple[EditableDefinition, ...]:
        """The definitions that `new` has in this place."""
        end = self.span[0] + len(new)
        return tuple(
            one
            for one in definitions(self.path, self.with_new(new))
            if self.span[0] <= one.start and one.end <= end
        )

    def moved(self, code: str, old: str) -> str:
        """The code at the indentation of `old`; what a string holds stays as it is."""
        return reindented(code, old, fixed=rows_in_strings(self.path, code))

    def parts(self) -> _Parts | None:
        return _definition_parts(self.path, self.text, self.span)

    def parts_of(self, new: str) -> _Parts | None:
        return _definition_parts(self.path, self.with_new(new), (self.span[0], self.span[0] + len(new)))


def whole_definition(
    path: str, text: str, span: tuple[int, int], symbol: str, answer: str, *, only: bool = False
) -> WholeDefinition | NoDefinition:
    """What `answer` says about the definition `symbol` at `span` (character offsets) of the file's `text`."""
    place = _Place(path=path, text=text, span=span, symbol=symbol, only=only)
    target = place.target
    if target is None:
        new = reindented(answer, place.old)
        name = symbol.rpartition(".")[2]
        is_named = re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", new)
        return WholeDefinition(text=new) if is_named else NoDefinition(reason=f"it does not name {name}")
    bare, imports = _without_imports(path, answer, text)
    found = _taken_from_class(place, target, bare) or _answer_as_is(place, target, bare)
    if isinstance(found, NoDefinition):
        return found
    body = None if found else _as_body(place, target, bare)
    full = found or body
    if full is None:
        return NoDefinition(reason=_no_definition_reason(place, target))
    return WholeDefinition(
        text=_with_what_was_left_out(place, full), imports=imports, is_body=body is not None
    )


def _taken_from_class(place: _Place, target: EditableDefinition, answer: str) -> str | NoDefinition | None:
    """The method from an answer that repeats the class around it; None if it has no such class."""
    if not target.scope:
        return None
    source = textwrap.dedent(answer).strip("\n")
    inside = definitions(place.path, source)
    holder, name = target.scope.rpartition(".")[2], target.symbol.rpartition(".")[2]
    wanted = [one for one in inside if f".{one.symbol}".endswith(f".{holder}.{name}")]
    found = _with_same_decorators(place, source, wanted)
    if found is None or not any(one.symbol == found.scope for one in inside):
        return None
    fault = "" if place.only else _changed_around(place, target, source, found)
    return NoDefinition(reason=fault) if fault else place.moved(source[found.start : found.end], place.old)


def _with_same_decorators(
    place: _Place, source: str, wanted: list[EditableDefinition]
) -> EditableDefinition | None:
    """The one definition that is wanted: of several, that with the decorators of the place, as a property and its setter
    have one name.
    """
    if len(wanted) > 1:
        old = _decorators(place.old)
        wanted = [one for one in wanted if _decorators(source[one.start : one.end]) == old]
    return wanted[0] if len(wanted) == 1 else None


def _decorators(definition: str) -> list[str]:
    return [line.strip() for line in definition.split("\n") if line.lstrip().startswith("@")]


def _changed_around(place: _Place, target: EditableDefinition, source: str, found: EditableDefinition) -> str:
    """What the class in the answer changes besides the method that was found in it, in words; "" if nothing."""
    known = place.elsewhere()
    holder = target.scope.rpartition(".")[2]
    outer = found.scope.removesuffix(holder)
    left = source[: found.top] + source[found.end :]
    for one in definitions(place.path, source):
        plain = f"{target.scope.removesuffix(holder)}{one.symbol.removeprefix(outer)}"
        if one.symbol.startswith(f"{found.symbol}.") or f"{found.symbol}.".startswith(f"{one.symbol}."):
            continue
        if plain not in known or _normalize_whitespace(known[plain]) != _normalize_whitespace(
            source[one.start : one.end]
        ):
            return f"it also writes {one.symbol}: write one edit for each definition"
        left = left.replace(source[one.start : one.end], "")
    lines = {line.strip() for line in place.text.split("\n")} | {"", "pass", "...", "}"}
    # The bases of a class are often left out.
    left = re.sub(rf"(?m)^(?:[\w@]+\s+)*class\s+{re.escape(holder)}\b.*[:{{]\s*$", "", left, count=1)
    extra = next((line.strip() for line in left.split("\n") if line.strip() not in lines), "")
    return f"it also changes the class around {target.symbol}: {extra[:HEAD_CHARS]}" if extra else ""


def _answer_as_is(place: _Place, target: EditableDefinition, answer: str) -> str | NoDefinition | None:
    """The answer as it is, without definitions that it only repeats; None if it does not define the target."""
    new = place.moved(answer, place.old)
    defined = place.defined_by(new)
    wanted = [one for one in defined if one.symbol == target.symbol]
    if not wanted:
        return None
    if not place.only:
        others = [one for one in defined if not f"{one.symbol}.".startswith(f"{target.symbol}.")]
        return _without_repeated(place, new, others)
    full = place.with_new(new)
    found = _with_same_decorators(place, full, wanted)
    if found is None:
        return NoDefinition(reason=f"it defines {target.symbol} {len(wanted)} times")
    return full[found.start : found.end]


def _without_repeated(place: _Place, new: str, others: list[EditableDefinition]) -> str | NoDefinition:
    """`new` without those of the `others` in it that the file has: they change only by edits of their own."""
    full, known, start = place.with_new(new), place.elsewhere(), place.span[0]
    repeated = [one for one in others if one.symbol in known]
    for one in reversed(repeated):
        if _normalize_whitespace(full[one.start : one.end]) != _normalize_whitespace(known[one.symbol]):
            reason = f"it also changes {one.symbol}, which is defined elsewhere in the file: write one edit for each"
            return NoDefinition(reason=reason)
        new = new[: one.top - start] + new[one.end - start :]
    return re.sub(r"\n{3,}", "\n\n", new).strip("\n") if repeated else new


def _as_body(place: _Place, target: EditableDefinition, answer: str) -> str | None:
    """The definition with the answer as its body; None if the answer could be a part of the body, or is none."""
    parts = place.parts()
    if parts is None or not parts.is_function or parts.head_end < 0 or not parts.statements:
        return None
    old = place.text[slice(*parts.body)]
    new = place.moved((textwrap.dedent(answer) if place.only else answer).strip("\n"), old)
    if indentation(new) != indentation(old):
        return None
    documented = answer.lstrip().startswith(QUOTES) and parts.docstring
    head = place.text[place.span[0] : parts.head_end + 1 if documented else parts.body[0]]
    full = f"{head}{new}{place.text[parts.body[1] : place.span[1]]}"
    defined, written = place.defined_by(full), place.parts_of(full)
    if written is None or not any(one.symbol == target.symbol for one in defined):
        return None
    nested = any(one.scope == target.symbol for one in defined)
    return full if _is_whole(place, parts.statements, written.statements, nested=nested) else None


def _is_whole(
    place: _Place, old: tuple[tuple[str, str], ...], new: tuple[tuple[str, str], ...], *, nested: bool
) -> bool:
    """Whether the new statements can only be meant as all of the body: it was one statement, or both ends are alike."""
    if not new or any(kind == "ERROR" for kind, _ in new):
        return False
    ends = nodes_of(place.path).ends
    if place.only:  # a definition of something else ends no function
        return not nested or any(kind in ends for kind, _ in new)
    if nested or len(old) == 1:
        return not nested
    last, newest = old[-1], new[-1]
    return _normalize_whitespace(old[0][1]) == _normalize_whitespace(new[0][1]) and (
        _normalize_whitespace(last[1]) == _normalize_whitespace(newest[1])
        or (last[0] == newest[0] and last[0] in ends)
    )


def _with_what_was_left_out(place: _Place, text: str) -> str:
    """Decorators, `export` and docstring put back, unless leaving them out is all that an edit changes."""
    old, new = place.parts(), place.parts_of(text)
    if old is None or new is None:
        return text
    full = text
    if _lacks_lead(place, old, new):
        full = old.lead + full[new.own - place.span[0] :]
        new = place.parts_of(full)
    if new is not None and old.docstring and new.head_end >= 0 and new.statements:
        begin = new.head_end - place.span[0]
        if place.only and old.head_end >= 0:
            above, below = _around_docstring(place.text, old.head_end, old.docstring)
            start, end = _around_docstring(full, begin, new.docstring)
            full = full[:start] + place.text[above:below] + full[end:]
        elif not new.docstring:
            full = f"{full[:begin]}\n{old.docstring}{full[begin:]}"
    return full if place.only or _normalize_whitespace(full) != _normalize_whitespace(place.old) else text


def _around_docstring(text: str, head_end: int, docstring: str) -> tuple[int, int]:
    """From the end of the line above a docstring to the line below it, with blank lines: where it stands, or would."""
    end = head_end + 1 + len(docstring)
    blank = BLANK_LINES.match(text, end)
    return len(text[:head_end].rstrip()), blank.end() if blank else end


def _lacks_lead(place: _Place, old: _Parts, new: _Parts) -> bool:
    """Whether decorators or an `export` of the place were left out, and not on purpose."""
    lead, known = (
        [line.strip() for line in text.strip().split("\n") if line.strip()] for text in (new.lead, old.lead)
    )
    if place.only:
        return lead != known and set(lead) <= set(known)
    return bool(known) and not lead and old.parameters == new.parameters


def _definition_parts(path: str, text: str, span: tuple[int, int]) -> _Parts | None:
    """The outermost function or class in the span; None if there is none, or it has no body."""
    source = text.encode("utf-8", "replace")
    tree = tree_of(source, path)
    if tree is None:
        return None
    nodes = nodes_of(path)
    start, end = (len(text[:place].encode("utf-8", "replace")) for place in span)
    for node in _nodes_in_span(tree.root_node, start, end):
        body = node.child_by_field_name("body")
        if node.type not in nodes.functions | nodes.classes or body is None:
            continue
        if node.type in nodes.nameless and (node.parent is None or node.parent.type not in nodes.naming):
            return None  # inside of what is defined, as an argument
        return _parts_of(text, span, node, body, source, nodes)
    return None


def _parts_of(
    text: str, span: tuple[int, int], node: Node, body: Node, source: bytes, nodes: Nodes
) -> _Parts:
    def offset(place: int) -> int:
        return len(source[:place].decode("utf-8", "replace"))

    inside = _statements(body, nodes) if body.type in nodes.blocks else []
    doc = inside[0] if inside and nodes.indented and is_bare_string(inside[0]) else None
    statements = inside[1:] if doc is not None else inside
    first = inside[0] if inside else None
    line = _line_start(text, offset(first.start_byte)) if first is not None else 0
    alone = (
        first is not None
        and first.start_point.row > node.start_point.row
        and not text[line : offset(first.start_byte)].strip()
    )
    parameters = node.child_by_field_name("parameters")
    own = offset(_enclosing_declaration(node, nodes).start_byte)
    bounds = (0, 0)
    if statements:
        bounds = (_line_start(text, offset(statements[0].start_byte)), offset(statements[-1].end_byte))
    return _Parts(
        lead=text[span[0] : own],
        own=own,
        parameters="".join(node_text(parameters).split()) if parameters is not None else "",
        head_end=line - 1 if alone else -1,
        docstring=text[line : offset(doc.end_byte)] if doc is not None else "",
        statements=tuple((one.type, node_text(one)) for one in statements),
        body=bounds,
        is_function=node.type in nodes.functions,
    )


def _statements(block: Node, nodes: Nodes) -> list[Node]:
    found = [one for one in block.named_children if one.type != "comment"]
    if len(found) == 1 and found[0].type in nodes.statement_lists:
        return _statements(found[0], nodes)
    return found


def _nodes_in_span(root: Node, start: int, end: int) -> Iterator[Node]:
    """The nodes that lie in the bytes from `start` to `end`, outer ones first."""
    waiting = [root]
    while waiting:
        node = waiting.pop(0)
        if start <= node.start_byte and node.end_byte <= end:
            yield node
        waiting.extend(
            child for child in node.named_children if child.start_byte < end and start < child.end_byte
        )


def _enclosing_declaration(node: Node, nodes: Nodes) -> Node:
    """The node, with the `const` or the field that gives it its name."""
    parent = node.parent
    while parent is not None and parent.type in nodes.naming | nodes.declarations:
        node, parent = parent, parent.parent
    return node


def _without_imports(path: str, answer: str, text: str) -> tuple[str, tuple[str, ...]]:
    """The answer without the imports that it begins with, and those that the file lacks."""
    source = textwrap.dedent(answer)
    tree = tree_of(source.encode("utf-8", "replace"), path)
    above: list[Node] = []
    for node in () if tree is None else tree.root_node.named_children:
        if node.type not in nodes_of(path).imports:
            break
        above.append(node)
    if not above:
        return answer, ()
    rows = above[-1].end_point.row + 1
    known = {_normalize_whitespace(line) for line in text.split("\n") if line == line.lstrip()}
    lacking = tuple(one for one in map(node_text, above) if _normalize_whitespace(one) not in known)
    return "\n".join(answer.split("\n")[rows:]).lstrip("\n"), lacking


def import_place(path: str, text: str, before: int) -> int:
    """Where a new import goes: the offset of a line's beginning, below the last import above the line of `before`, or above the
    first statement that is no docstring.
    """
    source = text.encode("utf-8", "replace")
    lines = text.split("\n")
    above = [last for _, last in import_lines(source, path) if last < line_of(text, before)]
    if above:
        row = above[-1]
    else:
        tree = tree_of(source, path)
        children = () if tree is None else tree.root_node.named_children
        row = next(
            (one.start_point.row for one in children if one.type != "comment" and not is_bare_string(one)), 0
        )
    return sum(len(line) + 1 for line in lines[:row])


def _no_definition_reason(place: _Place, target: EditableDefinition) -> str:
    """That the answer does not define the target, and how it has to begin."""
    if place.only:
        return f"it does not define {target.symbol}"
    parts = place.parts()
    first = place.text[parts.own :] if parts is not None else place.old
    head = first.lstrip().partition("\n")[0].strip()
    return (
        f"it does not define {target.symbol}: begin with its first line, like `{head[:HEAD_CHARS]}`, and write all of it; "
        "to rename or remove it, or to change only some of its lines, use <search>"
    )


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _normalize_whitespace(text: str) -> str:
    """The text without white space at line ends, blank lines and common indentation."""
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    return textwrap.dedent("\n".join(lines))

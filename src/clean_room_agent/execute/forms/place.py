"""Where a candidate may change something, what is asked of it there, and how the definition is shown to a model."""

import itertools
import re
import textwrap
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace
from tree_sitter import Node, Tree

from clean_room_agent.artifacts.goals import GoalTest, TracedFunction
from clean_room_agent.artifacts.prompt_sources import (
    PromptSource,
    SourcedText,
    compose,
    sourced,
    without_line_end,
)
from clean_room_agent.execute.edits.definitions import EditableDefinition, definitions
from clean_room_agent.execute.edits.search_replace import indentation, line_of, line_starts
from clean_room_agent.languages.nodes import Nodes
from clean_room_agent.llm.transport import Sampling
from clean_room_agent.syntax import node_text, nodes_of, tree_of, walk

SAME = "the answer is what stands there"
"""Why an answer that changes nothing is no candidate."""
SUMMARY_CHARS = 400
"""Of a docstring's first paragraph."""
MOST_AROUND = 10
AROUND_CHARS = 160
"""Of what a file defines beside a definition, on one line."""


STUB = re.compile(
    r"(?:pass|\.\.\.|return(?: None| null| undefined)?|(?:raise NotImplementedError|throw new Error)\b.*);?"
)
"""The only line of a body that has still to be written."""


class Place(Struct, frozen=True, kw_only=True):
    """A definition, in a file with a known text."""

    path: str
    name: str
    """Qualified: `Class.method`."""
    first_line: int
    """1-based, of its first decorator, or of its own first line."""
    last_line: int
    lines: tuple[int, ...]
    """The lines of it that ran, the likeliest to be wrong first."""


class Assignment(Struct, frozen=True, kw_only=True):
    """What a candidate is asked for."""

    task: str
    """The user's words."""
    goals: tuple[GoalTest, ...] = ()
    """The tests that fail now; the first ones are told."""
    observed: str = ""
    """What was seen when they ran."""


class Refused(Struct, frozen=True, kw_only=True):
    """Why an answer is no candidate."""

    reason: str


def sampling_of(draw: int, *, temperature: float) -> Sampling:
    """The likeliest answer first, then drawn ones."""
    if draw == 0:
        return Sampling()
    return Sampling(temperature=temperature, seed=100 + draw, top_k=40, top_p=0.95)


def place_of(function: TracedFunction, text: str) -> Place | None:
    """The place of a function that ran, in the file's text; None if it is no definition there that has its lines to itself.

    Of lines that are equally suspicious, the last comes first: what is returned shows where it comes from. What was caught arose
    in what its handler guards, which is as suspicious as the handler and comes before it.
    """
    found = [
        one
        for one in definitions(function.path, text)
        if one.symbol == function.name
        and line_of(text, one.start) <= function.first_line <= line_of(text, one.end)
    ]
    if len(found) != 1:
        return None
    suspicion = _with_what_was_caught(dict(function.lines), function.path, text)
    ranked = sorted(function.lines, key=lambda line: (suspicion[line[0]], line[0]), reverse=True)
    return Place(
        path=function.path,
        name=function.name,
        first_line=line_of(text, found[0].start),
        last_line=line_of(text, found[0].end),
        lines=tuple(number for number, _ in ranked),
    )


def _with_what_was_caught(suspicion: dict[int, float], path: str, text: str) -> dict[int, tuple[float, bool]]:
    """Of each line its suspicion, and whether that is from a handler of what it raises."""
    parsed, found = Parsed(path, text), {line: (value, False) for line, value in suspicion.items()}
    for node in walk(parsed.tree.root_node) if parsed.tree is not None else ():
        guarded = node.parent.child_by_field_name("body") if node.parent is not None else None
        if node.type not in parsed.nodes.handlers or guarded is None:
            continue
        ran = [suspicion.get(line, 0.0) for line in _lines_of(node)]
        for line in _lines_of(guarded):
            if line in found:
                found[line] = max(found[line], (max(ran), max(ran) > suspicion[line]))
    return found


def _lines_of(node: Node) -> range:
    return range(node.start_point.row + 1, node.end_point.row + 2)


class Parsed:
    """A file's text, its lines and its tree."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.raw = text.encode("utf-8", "surrogatepass")
        self.lines = [line.removesuffix("\r") for line in text.split("\n")]
        self.starts = line_starts(self.raw.split(b"\n"))
        self.nodes = nodes_of(path)
        self.tree: Tree | None = tree_of(self.raw, path)

    def start(self, line: int) -> int:
        """The first byte of a line."""
        return self.starts[line - 1]

    def end(self, line: int) -> int:
        """Behind the last byte of a line, without its line end."""
        end = self.starts[line] - 1
        return end - 1 if self.raw[end - 1 : end] == b"\r" and end > self.starts[line - 1] else end

    def piece(self, start: int, end: int) -> str:
        """The text between two bytes."""
        return self.raw[start:end].decode("utf-8", "surrogatepass")

    def spliced(self, start: int, end: int, new: str) -> str:
        """The file's text with `new`, in the file's own line ends, in place of the bytes from `start` to `end`."""
        if "\r\n" in self.text:
            new = new.replace("\n", "\r\n")
        return self.piece(0, start) + new + self.piece(end, len(self.raw))

    def node(self, place: Place) -> Node | None:
        """The node of the place's definition, without its decorators; None if it is not there."""
        leaf = place.name.rpartition(".")[2]
        return next(
            (
                node
                for node in ([] if self.tree is None else walk(self.tree.root_node))
                if node.type in self.nodes.definitions
                and node.start_point.row >= place.first_line - 1
                and node.end_point.row <= place.last_line - 1
                and node_name(node) == leaf
            ),
            None,
        )

    def definition(self, place: Place) -> EditableDefinition | None:
        """The place's definition; None if it is not at its lines."""
        return next(
            (
                one
                for one in definitions(self.path, self.text)
                if one.symbol == place.name and line_of(self.text, one.start) == place.first_line
            ),
            None,
        )


def node_name(node: Node) -> str:
    """The name that a definition gives; "" for none."""
    name = node.child_by_field_name("name") or node.child_by_field_name("property")
    return "" if name is None else node_text(name)


def body_of(node: Node, nodes: Nodes) -> Node | None:
    """The block of a definition, also of a function that is assigned to a name; None if there is none."""
    value = node.child_by_field_name("value")
    body = (node if value is None else value).child_by_field_name("body")
    return body if body is not None and body.type in nodes.bodies else None


def docstring_of(node: Node, nodes: Nodes) -> Node | None:
    """The string that begins the body of a definition; None if there is none, or strings document nothing."""
    body = body_of(node, nodes) if nodes.indented else None
    statements = [] if body is None else [one for one in body.named_children if one.type != "comment"]
    if not statements or statements[0].type != "expression_statement":
        return None
    inside = statements[0].named_children
    return statements[0] if len(inside) == 1 and inside[0].type in nodes.strings else None


class Row(Struct, frozen=True, kw_only=True):
    """A line as it is shown."""

    number: int
    text: str


class Shown(Struct, frozen=True, kw_only=True):
    """A definition as a model is shown it: only the first paragraph of its docstring, and the heads of what it is in above it."""

    path: str
    symbol: str
    heads: tuple[Row, ...]
    """First lines of the enclosing definitions."""
    around: tuple[Row, ...]
    """What the file defines at its top level and the definition uses, each on one line, without bodies."""
    top: tuple[Row, ...]
    """Decorators and head."""
    body: tuple[Row, ...]
    indent: str
    """Of the body."""
    summary: str = ""
    """The first paragraph of its docstring on one line; "" if it has none, or one with marks that would end a string."""
    summary_line: int = 0
    """The docstring's first line."""

    def sourced(self, rows: tuple[Row, ...]) -> SourcedText:
        """Rows as text, each with its line end and its place in the file."""
        pieces = []
        start = 0
        for at in range(1, len(rows) + 1):
            if at == len(rows) or rows[at].number != rows[at - 1].number + 1:
                run = rows[start:at]
                text = "".join(f"{row.text}\n" for row in run)
                pieces.append(
                    sourced(text, PromptSource.FILE, path=self.path, symbol=self.symbol, number=run[0].number)
                )
                start = at
        return compose(pieces)

    @property
    def documented(self) -> tuple[Row, ...]:
        """The first paragraph of the docstring as a line of its own; empty if there is none."""
        text = f'{self.indent}"""{self.summary}"""'
        return (Row(number=self.summary_line, text=text),) if self.summary else ()

    @property
    def code(self) -> SourcedText:
        """The definition, without line end."""
        text = self.sourced((*self.top, *self.documented, *self.body))
        return without_line_end(text)


def shown(parsed: Parsed, place: Place) -> Shown | None:
    """The definition as it is shown; None if it is not there, or has no body on lines of its own."""
    node = parsed.node(place)
    body = None if node is None else body_of(node, parsed.nodes)
    if node is None or body is None or not body.named_children:
        return None
    document = docstring_of(node, parsed.nodes)
    after = [one for one in body.named_children if document is None or one.start_byte >= document.end_byte]
    if not after or after[0].start_point.row == node.start_point.row:
        return None
    rows = [
        Row(number=number, text=parsed.lines[number - 1])
        for number in range(place.first_line, place.last_line + 1)
    ]
    hidden: tuple[int, int] = (0, 0)
    summary = ""
    if document is not None:
        hidden = (document.start_point.row + 1, document.end_point.row + 1)
        summary = _summary(node_text(document))
    begins = after[0].start_point.row + 1
    visible = [row for row in rows if not hidden[0] <= row.number <= hidden[1]]
    return Shown(
        path=place.path,
        symbol=place.name,
        heads=_enclosing_heads(parsed, place),
        around=_used_module_rows(parsed, place, node),
        top=tuple(row for row in visible if row.number < begins),
        body=tuple(row for row in visible if row.number >= begins),
        indent=indentation(parsed.lines[begins - 1]),
        summary=summary,
        summary_line=hidden[0],
    )


def is_stub(parsed: Parsed, place: Place) -> bool:
    """Whether the place has still to be written: a function with nothing in it, or a class of which most methods are such."""
    methods = _methods(parsed, place)
    if methods:
        return 2 * sum(is_stub(parsed, method) for method in methods) > len(methods)
    visible = shown(parsed, place)
    body = [] if visible is None else [row.text.strip() for row in visible.body if row.text.strip(" \t}")]
    return len(body) == 1 and STUB.fullmatch(body[0]) is not None


def class_to_write(place: Place, text: str) -> Place | None:
    """The class of a method, if that has still to be written, as most methods of the class: none shows anything without the
    others, which may not even be declared.
    """
    holder = place.name.rpartition(".")[0]
    parsed = Parsed(place.path, text)
    whole = next((one for one in _defined_places(parsed) if one.name == holder), None)
    if whole is None or not (is_stub(parsed, place) and is_stub(parsed, whole)):
        return None
    return replace(whole, lines=tuple(range(whole.last_line, whole.first_line, -1)))


def _methods(parsed: Parsed, place: Place) -> list[Place]:
    """What is defined right inside of the place, if that is a class."""
    node = parsed.node(place)
    if node is None or node.type not in parsed.nodes.classes:
        return []
    return [one for one in _defined_places(parsed) if one.name.rpartition(".")[0] == place.name]


def _defined_places(parsed: Parsed) -> Iterator[Place]:
    for one in definitions(parsed.path, parsed.text):
        first, last = line_of(parsed.text, one.start), line_of(parsed.text, one.end)
        yield Place(path=parsed.path, name=one.symbol, first_line=first, last_line=last, lines=())


def _used_module_rows(parsed: Parsed, place: Place, node: Node) -> tuple[Row, ...]:
    """A model that does not see a module's names makes up others, and each answer with one of those is lost."""
    used = {node_text(one) for one in walk(node) if one.type in {"identifier", "type_identifier"}}
    rows = []
    for child in [] if parsed.tree is None else parsed.tree.root_node.named_children:
        if place.first_line <= child.start_point.row + 1 <= place.last_line:
            continue
        naming = parsed.nodes.definitions | parsed.nodes.assignments
        inner = next((one for one in walk(child) if one.type in naming), None)
        is_assignment = inner is not None and inner.type not in parsed.nodes.definitions
        if inner is None or (is_assignment and child.type != "expression_statement"):
            continue
        target = inner.named_children[0] if is_assignment else None
        if (node_name(inner) if target is None else node_text(target)) not in used:
            continue
        text = " ".join(_definition_head(parsed, child, inner).split()).replace("( ", "(").replace(", )", ")")
        if len(text) <= AROUND_CHARS:
            rows.append(Row(number=inner.start_point.row + 1, text=text))
    return tuple(rows[:MOST_AROUND])


def _definition_head(parsed: Parsed, child: Node, inner: Node) -> str:
    """What stands at the top level, without a body."""
    body = body_of(inner, parsed.nodes)
    if body is None:
        return node_text(child)
    head = parsed.piece(inner.start_byte, body.start_byte).rstrip()
    return f"{head} ..." if parsed.nodes.indented else f"{head} {{ }}"


def wrapped(text: str, *, width: int = 100, most: int = 6) -> list[str]:
    """The words in lines, at most so many."""
    return textwrap.wrap(" ".join(text.split()), width)[:most]


def _summary(document: str) -> str:
    """The first paragraph: one sentence often goes over several lines, and half of it says little."""
    inside = re.sub(r"\A[a-zA-Z]*(\"\"\"|'''|\"|')|(\"\"\"|'''|\"|')\Z", "", document.strip()).strip()
    lines = itertools.takewhile(
        lambda line: line and not line.startswith(">>>"), map(str.strip, inside.split("\n"))
    )
    first = " ".join(lines)
    if '"""' in first or "\\" in first:
        return ""
    return first if len(first) <= SUMMARY_CHARS else first[:SUMMARY_CHARS].rpartition(" ")[0]


def _enclosing_heads(parsed: Parsed, place: Place) -> tuple[Row, ...]:
    found = {one.symbol: one for one in definitions(parsed.path, parsed.text)}
    heads = []
    parts = place.name.split(".")[:-1]
    for number in range(1, len(parts) + 1):
        holder = found.get(".".join(parts[:number]))
        if holder is None:
            continue
        line = line_of(parsed.text, holder.start)
        while line < place.first_line and parsed.lines[line - 1].lstrip().startswith("@"):
            line += 1
        heads.append(Row(number=line, text=parsed.lines[line - 1]))
    return tuple(heads)

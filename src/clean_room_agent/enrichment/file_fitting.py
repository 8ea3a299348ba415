"""The fullest view of a file that fits a prompt: whole definitions are left out, none is cut, and the view says so."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from textwrap import indent

from msgspec.structs import replace

from clean_room_agent.enrichment.file_facts import Definition, FileFacts
from clean_room_agent.enrichment.prompt import EnrichmentInputs

NEIGHBOURS = 20
"""Imported and importing files that a prompt names, first by path; of the rest it gives the number."""
LONG_VALUE = 160
"""Characters; of a variable or type alias with a longer text, the outline has the name alone."""
VALUES = frozenset({"variable", "type_alias"})
CONTAINERS = frozenset({"class", "interface", "enum"})
PARAGRAPH = re.compile(r"\n[ \t]*\n")
LEADING = re.compile(r"[ \t]*")

Measure = Callable[[EnrichmentInputs], int]
"""Tokens of the whole request."""
Count = Callable[[str], int]
"""Tokens of a text."""


def fit(facts: FileFacts, max_tokens: int, measure: Measure, count: Count) -> EnrichmentInputs:
    """The fullest view of the file whose request has at most `max_tokens` tokens; the smallest view if none has.

    In this order: the whole text; the text without whole definitions, those that free most going first (of a file
    without definitions: its first lines); no text but an outline with all documentation; with the first paragraphs of
    it; with none; without definitions, the innermost and last going first; the path. Documentation that is in the text
    is not repeated in the outline; of definitions that were left out, it has the first paragraph.
    """
    smallest = None
    for view in _views(facts, max_tokens, measure, count):
        if measure(view) <= max_tokens:
            return view
        smallest = view
    assert smallest is not None
    return smallest


def brief(facts: FileFacts) -> EnrichmentInputs:
    """A small view of the file, for when a server refused a larger one as too long."""
    return _without_text(facts, _outermost(facts.definitions, NEIGHBOURS))


def _views(facts: FileFacts, max_tokens: int, measure: Measure, count: Count) -> Iterator[EnrichmentInputs]:
    everything = facts.definitions
    if facts.lines:
        whole = replace(
            _bare(facts),
            outline=_outline(everything, docs=_whole, documented=()),
            text="\n".join(facts.lines),
        )
        yield whole
        if everything:
            yield from _fewer_definitions(facts, max_tokens, measure, count)
        else:
            yield _first_lines(facts, max_tokens, measure)
    yield _without_text(facts, _outline(everything, docs=_whole))
    yield _without_text(facts, _outline(everything, docs=_first_paragraph))
    yield _without_text(facts, _outline(everything, docs=_whole, documented=()))
    yield _largest(
        lambda number: _without_text(facts, _outermost(everything, number)),
        len(everything),
        max_tokens,
        measure,
    )
    yield replace(
        _without_text(facts, ()),
        imports=(),
        imports_left_out=0,
        imported_by=(),
        imported_by_left_out=0,
        commits=(),
    )


def _bare(facts: FileFacts) -> EnrichmentInputs:
    return EnrichmentInputs(
        path=facts.file.path,
        language=facts.file.language,
        lines=len(facts.lines),
        imports=facts.imports[:NEIGHBOURS],
        imports_left_out=max(0, len(facts.imports) - NEIGHBOURS),
        imported_by=facts.imported_by[:NEIGHBOURS],
        imported_by_left_out=max(0, len(facts.imported_by) - NEIGHBOURS),
        commits=facts.commits,
        outline=(),
        outline_left_out=0,
        text="",
        remark="",
    )


def _without_text(facts: FileFacts, outline: tuple[str, ...]) -> EnrichmentInputs:
    reason = f"it cannot be shown: {facts.unreadable}" if facts.unreadable else "it is too long to be shown"
    return replace(
        _bare(facts),
        outline=((facts.doc, *outline) if facts.doc and outline else outline),
        outline_left_out=len(facts.definitions) - len(outline),
        remark=reason if facts.lines or facts.unreadable else "it is empty",
    )


def _fewer_definitions(
    facts: FileFacts, max_tokens: int, measure: Measure, count: Count
) -> Iterator[EnrichmentInputs]:
    """One view, with as many whole definitions left out as make it fit; none where that is not enough."""
    gains = {
        entry: count(_span(facts, entry)) - count(_marker(entry) + _first_paragraph(entry.doc))
        for entry in _removable(facts.definitions)
    }
    waiting = sorted(
        (entry for entry, gain in gains.items() if gain > 0),
        key=lambda entry: (-gains[entry], entry.start_line),
    )
    gone: set[Definition] = set()
    excess = 1
    while waiting and excess > 0:
        while waiting and excess > 0:
            entry = waiting.pop(0)
            gone.add(entry)
            excess -= gains[entry]
        view = _text_without(facts, gone)
        excess = measure(view) - max_tokens
        if excess <= 0:
            yield view


def _text_without(facts: FileFacts, gone: set[Definition]) -> EnrichmentInputs:
    starts = {entry.start_line: entry for entry in gone}
    shown: list[str] = []
    number = 1
    while number <= len(facts.lines):
        entry = starts.get(number)
        line = facts.lines[number - 1]
        if entry is None:
            shown.append(line)
            number += 1
        else:
            margin = LEADING.match(line)
            shown.append((margin[0] if margin else "") + _marker(entry))
            number = entry.end_line + 1
    bodies = (
        "the text of one definition is" if len(gone) == 1 else f"the texts of {len(gone)} definitions are"
    )
    return replace(
        _bare(facts),
        outline=_outline(facts.definitions, docs=_first_paragraph, documented=gone),
        text="\n".join(shown),
        remark=f"{bodies} left out, to fit; where, is marked with ...",
    )


def _marker(entry: Definition) -> str:
    return f"... {entry.name}: lines {entry.start_line}-{entry.end_line} left out"


def _first_lines(facts: FileFacts, max_tokens: int, measure: Measure) -> EnrichmentInputs:
    def view(number: int) -> EnrichmentInputs:
        if not number:
            return _without_text(facts, ())
        return replace(
            _bare(facts),
            text="\n".join(facts.lines[:number]),
            remark=f"the first {number} of {len(facts.lines)} lines; the rest does not fit",
        )

    return _largest(view, len(facts.lines) - 1, max_tokens, measure)


def _largest(
    view: Callable[[int], EnrichmentInputs], most: int, max_tokens: int, measure: Measure
) -> EnrichmentInputs:
    """The view of the largest number from 0 to `most` that fits; of 0 where none does."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if measure(view(middle)) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return view(low)


def _removable(definitions: Sequence[Definition]) -> list[Definition]:
    """Definitions whose lines can go as a whole: the outermost ones that hold no members of a class, none in another."""
    found: list[Definition] = []
    end = 0
    for index, entry in enumerate(definitions):
        following = definitions[index + 1] if index + 1 < len(definitions) else None
        has_members = (
            following is not None and following.start_line <= entry.end_line and following.depth > entry.depth
        )
        if entry.start_line > end and not (entry.kind in CONTAINERS and has_members):
            found.append(entry)
            end = entry.end_line
    return found


def _outermost(definitions: Sequence[Definition], number: int) -> tuple[str, ...]:
    """The signatures of so many definitions, the outermost first to be chosen, in the order of their lines."""
    chosen = set(sorted(definitions, key=lambda entry: (entry.depth, entry.start_line))[:number])
    return _outline([entry for entry in definitions if entry in chosen], docs=_whole, documented=())


def _outline(
    definitions: Sequence[Definition],
    *,
    docs: Callable[[str], str],
    documented: Collection[Definition] | None = None,
) -> tuple[str, ...]:
    """An entry for each definition, with what `docs` makes of the documentation of those in `documented` (None: all)."""
    entries = []
    for entry in definitions:
        margin = "    " * entry.depth
        doc = docs(entry.doc) if documented is None or entry in documented else ""
        head = indent(_headline(entry), margin)
        entries.append(f"{head}\n{indent(doc, margin + '    ')}" if doc else head)
    return tuple(entries)


def _headline(entry: Definition) -> str:
    plain = entry.name.rpartition(".")[2]
    if entry.kind in VALUES and (len(entry.signature) > LONG_VALUE or not entry.signature):
        return f"{plain} ({entry.kind.replace('_', ' ')}, lines {entry.start_line}-{entry.end_line})"
    return entry.signature.strip() or f"{plain} ({entry.kind})"


def _first_paragraph(doc: str) -> str:
    return PARAGRAPH.split(doc, 1)[0].strip()


def _whole(doc: str) -> str:
    return doc


def _span(facts: FileFacts, entry: Definition) -> str:
    return "\n".join(facts.lines[entry.start_line - 1 : entry.end_line])

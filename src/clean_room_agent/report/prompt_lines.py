"""Where each line of a recorded prompt comes from: its template, the task, a file, a test, a plan, an earlier attempt."""

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from clean_room_agent.llm.prompt import Prompt

Kind = Literal[
    "template",
    "task",
    "file",
    "outline",
    "candidate",
    "plan",
    "evidence",
    "diff",
    "attempt",
    "answer",
    "hint",
    "unknown",
]
"""template: the prompt's own words. file: a line of a file, shown as it is. outline: a signature with its description, or a place that uses or exercises code.
candidate: something of the index that is to be judged, or was found or chosen before. plan: a part, a step or a plan. evidence: what tests showed.
diff: what the run changed so far. attempt: an earlier attempt. answer: an earlier answer that was refused."""

SECTIONS: Mapping[str, Kind] = {
    "Task": "task",
    "Code": "candidate",
    "Code to change": "candidate",
    "What the code to change uses": "outline",
    "Where it is used": "outline",
    "Tests that pass now and must still pass": "outline",
    "Tests": "candidate",
    "Files found": "candidate",
    "Definitions found": "candidate",
    "Already chosen": "candidate",
    "Code to choose from": "candidate",
    "File": "candidate",
    "Files": "candidate",
    "Files to choose from": "candidate",
    "Other files that may matter (not shown)": "candidate",
    "Files that it imports": "candidate",
    "Files that import it": "candidate",
    "Newest changes to it": "candidate",
    "What it defines": "candidate",
    "Its text": "file",
    "Conventions of this repository": "file",
    "What the tests show now": "evidence",
    "What an earlier attempt missed": "evidence",
    "Changes made so far": "diff",
    "Changes made so far (the code below already has them)": "diff",
    "The part of it to do now": "plan",
    "The part of it under way": "plan",
    "The part to divide now": "plan",
    "Plan for the whole task": "plan",
    "Keep in mind": "plan",
    "Steps so far": "plan",
    "Remaining steps": "plan",
    "Earlier attempts": "attempt",
    "The step to do now": "plan",
    "All changes": "plan",
    "First change": "plan",
    "Second change": "plan",
    "What the code shows": "candidate",
    "All parts": "plan",
    "Part A": "plan",
    "Part B": "plan",
    "All steps": "plan",
    "Step A": "plan",
    "Step B": "plan",
    "Places that it changes": "plan",
    "Definitions shown above": "candidate",
    "Changes made so far (the code above already has them)": "diff",
    "Steps before": "plan",
    "The remaining step": "plan",
    "The step that was tried": "plan",
    "What was decided": "plan",
    "What failed": "evidence",
    "Revised steps": "plan",
    "Hint": "hint",
    "An earlier plan was refused": "answer",
    "An earlier answer was refused": "answer",
}
ATTEMPT = re.compile(r"Attempt \d+ failed; the code is again as shown above")
REPAIR = "# An earlier answer to this could not be used"
FRAME = re.compile(
    r"(?P<fence>={5,}) (?P<kind>file|code|test|conventions|outline|reference|signature|candidate)(?: \d+)?: "
    r"(?P<name>.+?)(?: \(lines (?P<first>\d+)-(?P<last>\d+)\))?(?: \(about \d+ tokens\))?"
)
NUMBER = re.compile(r"^(\d+\. |- )")
TAG = re.compile(r"\{%.*?%\}|\{#.*?#\}")
VALUE = re.compile(r"\{\{.*?\}\}")
LITERAL = 12
"""Letters that a template's line must have beside its values to be told from a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptLine:
    """One line of a prompt, and where it comes from."""

    line: int
    """1-based, in the prompt."""
    text: str
    kind: Kind
    section: str = ""
    """The heading above it; "" before the first."""
    path: str = ""
    """Of the file that it shows or names; "" where it is about none."""
    symbol: str = ""
    file_line: int | None = None
    """1-based, in that file as it then was; None where the line is not one of the file's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FramedItem:
    """One item of a context as a prompt shows it."""

    path: str
    symbol: str
    kind: str
    first: int
    """1-based; 0 where the head names no lines."""
    last: int
    at: int
    """1-based line of its head in the prompt."""
    lines: tuple[str, ...]

    @property
    def is_source(self) -> bool:
        """Whether its lines are those of the file."""
        return self.kind in {"file", "code", "test"}


def prompt_lines(
    text: str, prompt: Prompt[Any, Any] | None, task: str, paths: Collection[str] = ()
) -> tuple[PromptLine, ...]:
    """Every line of a rendered prompt with its origin, in order.

    Args:
        text: the user message as it was sent.
        prompt: what it was rendered from; None where the program no longer has it, and then its rules are unknown.
        task: the user's words; "" where they are not known.
        paths: files that a candidate's line may begin with.
    """
    lines = text.split("\n")
    known = _Template.of(prompt)
    inside = _framed_lines(lines)
    words = task.strip().split("\n")
    found: list[PromptLine] = []
    section = ""
    kind: Kind = "unknown"
    own_until = 0
    for place, line in enumerate(lines):
        number = place + 1
        if place in inside:
            found.append(replace(inside[place], section=section))
            continue
        if place >= own_until and line.startswith("#") and (place == 0 or known.has(line) or _heads(line)):
            section = line.lstrip("# ")
            kind = _kind_of(section)
            if kind == "task" and lines[place + 1 : place + 1 + len(words)] == words:
                own_until = place + 1 + len(words)
            found.append(PromptLine(line=number, text=line, kind="template", section=section))
            continue
        own = place < own_until
        origin: Kind = "task" if own else "template" if not line.strip() or known.has(line) else kind
        path = _named(line, paths) if origin in {"candidate", "outline"} else ""
        found.append(
            PromptLine(
                line=number,
                text=line,
                kind=origin,
                section=section,
                path=path,
                file_line=_numbered(line, path) if origin == "outline" else None,
            )
        )
    return tuple(found)


def framed_items(text: str) -> tuple[FramedItem, ...]:
    """The items of the context in a prompt, in order.

    All frames of a prompt have one fence, longer than any that shown text can imitate, and the first one found is real.
    """
    return tuple(_items(text.split("\n")))


def _items(lines: Sequence[str]) -> Iterator[FramedItem]:
    fence = ""
    place = 0
    while place < len(lines):
        head = FRAME.fullmatch(lines[place])
        start = place + 1
        place = start
        if head is None or (fence and head["fence"] != fence):
            continue
        fence = head["fence"]
        while place < len(lines) and lines[place] != f"{fence} end":
            place += 1
        path, _, symbol = head["name"].partition(" :: ")
        yield FramedItem(
            path=path,
            symbol=symbol,
            kind=head["kind"],
            first=int(head["first"] or 0),
            last=int(head["last"] or 0),
            at=start,
            lines=tuple(lines[start:place]),
        )
        place += 1


def _framed_lines(lines: Sequence[str]) -> dict[int, PromptLine]:
    """The lines of all frames, heads and ends included, by their 0-based place."""
    found = {}
    for item in _items(lines):
        kind: Kind = "file" if item.is_source else "candidate" if item.kind == "candidate" else "outline"
        for offset, text in enumerate(item.lines):
            place = item.at + offset
            found[place] = PromptLine(
                line=place + 1,
                text=text,
                kind=kind,
                path=item.path,
                symbol=item.symbol,
                file_line=item.first + offset if item.is_source else None,
            )
        for place in (item.at - 1, item.at + len(item.lines)):
            if place < len(lines):
                found[place] = PromptLine(
                    line=place + 1, text=lines[place], kind="template", path=item.path, symbol=item.symbol
                )
    return found


def _heads(line: str) -> bool:
    """Whether the line is a heading that a value brings along."""
    return line == REPAIR or (line.startswith("## ") and line[3:] in SECTIONS)


def _kind_of(section: str) -> Kind:
    if section == REPAIR.lstrip("# "):
        return "answer"
    if ATTEMPT.fullmatch(section):
        return "attempt"
    return SECTIONS.get(section, "unknown")


def _named(line: str, paths: Collection[str]) -> str:
    """The file that a line of a list begins with, after its number or mark, or that it ends with in brackets."""
    rest = NUMBER.sub("", line)
    begun = (path for path in paths if rest.startswith(path) and rest[len(path) :][:1] in {"", " ", ":"})
    ended = (path for path in paths if rest.endswith(f" ({path})"))
    return max(begun, key=len, default="") or max(ended, key=len, default="")


def _numbered(line: str, path: str) -> int | None:
    """The number after the path, as in `src/a.py:12: code`."""
    number = line[len(path) + 1 :].partition(":")[0] if path else ""
    return int(number) if number.isdecimal() else None


@dataclass(frozen=True, slots=True)
class _Template:
    """The lines that a prompt's template gives, whatever its values are."""

    whole: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]

    @staticmethod
    def of(prompt: Prompt[Any, Any] | None) -> "_Template":
        if prompt is None:
            return _Template(frozenset(), ())
        return _read_template(f"# {prompt.title}\n{prompt.template}\n{prompt.example}")

    def has(self, line: str) -> bool:
        return line in self.whole or any(pattern.fullmatch(line) for pattern in self.patterns)


@functools.cache
def _read_template(source: str) -> _Template:
    whole, patterns = set(), []
    for line in source.split("\n"):
        for piece in (line, *TAG.split(line)):
            if TAG.search(piece) or not piece.strip():
                continue
            if VALUE.search(piece) is None:
                whole.add(piece)
                continue
            literal = VALUE.sub("", piece)
            if sum(map(str.isalpha, literal)) >= LITERAL:
                patterns.append(re.compile(".*".join(map(re.escape, VALUE.split(piece)))))
    return _Template(frozenset(whole | {REPAIR}), tuple(patterns))


def grouped(lines: Iterable[PromptLine]) -> list[tuple[PromptLine, PromptLine]]:
    """First and last of each run of lines with one origin; lines of one file that follow one another are one run."""
    groups: list[tuple[PromptLine, PromptLine]] = []
    for line in lines:
        if groups and _goes_on(groups[-1][1], line):
            groups[-1] = (groups[-1][0], line)
        else:
            groups.append((line, line))
    return groups


def _goes_on(before: PromptLine, line: PromptLine) -> bool:
    if (before.kind, before.section) != (line.kind, line.section):
        return False
    if line.kind in {"file", "outline"}:
        return (before.path, before.symbol) == (line.path, line.symbol)
    return True

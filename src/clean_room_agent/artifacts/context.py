"""What a pass asks of retrieval and gets: the request, the context package with its budget, and the decision about each
item.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import Literal, get_args

from msgspec import Struct, field

from clean_room_agent.artifacts.evidence import Evidence, StackFrame
from clean_room_agent.artifacts.names import item_name, quoted, without_lines
from clean_room_agent.artifacts.prompt_sources import (
    PromptSource,
    SourcedText,
    compose,
    joined,
    sourced,
    without_line_end,
)

Role = Literal["classifier", "reasoning", "coding"]
Mode = Literal["plan", "implement", "train_plan", "curate_data"]
Detail = Literal["primary", "supporting", "type_context"]
"""primary: shown whole and editable; supporting: signature and docstring; type_context: only the signature."""
Section = Literal["code", "tests", "conventions", "uses", "callers", "green"]
"""code: what has to be changed, for a planner also outlines. tests: the source of failing tests. conventions: what the
repository tells agents. uses: signatures of what the code uses. callers: lines that use the code. green: tests that
exercise it and must stay green.
"""
DETAILS: tuple[Detail, ...] = get_args(Detail)
"""The greatest first."""
SECTIONS: tuple[Section, ...] = get_args(Section)
"""By priority: what is later is left out first where a prompt does not fit."""
FENCE_MIN = 5


class ContextRequest(Struct, frozen=True, kw_only=True):
    """One pass's request for a context package."""

    pass_id: str
    mode: Mode
    role: Role
    """The role of the model that will read the package: it sets the budget."""
    task: str
    """The user's words, unchanged."""
    focus: str = ""
    """What this pass is about within the task: the part's or the step's description."""
    files: tuple[str, ...] = ()
    """Named by a plan: tier 0, included without asking."""
    symbols: tuple[str, ...] = ()
    """Named by a plan."""
    evidence: Evidence = field(default_factory=Evidence)
    extra_reserved: int = 0
    """Tokens kept free in addition to the configured reserve, for a longer answer."""


class TaskQuery(Struct, frozen=True, kw_only=True):
    """A task as retrieval understands it; everything named here exists in the index."""

    intent: str = ""
    """What must be different afterwards, in a model's words; only for readers of the session."""
    kind: str = ""
    """bug, feature, refactoring, test, docs, performance, or "" if unknown."""
    keywords: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    areas: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    """Symbols of the index that the task's own words name; included without asking."""
    error_messages: tuple[str, ...] = ()
    frames: tuple[StackFrame, ...] = ()
    test_names: tuple[str, ...] = ()


class RefinementRequest(Struct, frozen=True, kw_only=True):
    """What a failed attempt showed to be missing from its context."""

    reason: str
    missing_files: tuple[str, ...] = ()
    missing_symbols: tuple[str, ...] = ()
    missing_tests: tuple[str, ...] = ()
    whole_files: tuple[str, ...] = ()
    """Files that were shown in part, and have to be shown whole without asking."""
    error_signatures: tuple[str, ...] = ()


class Subject(Struct, frozen=True, kw_only=True):
    """What a retrieval decision is about: a file or a piece of one, or the whole pass."""

    path: str = ""
    """Or a name that matches no file; "" for the whole pass."""
    symbol: str | None = None
    file_id: int | None = None
    tier: int = 4
    score: float | None = None


class Judgment(Struct, frozen=True, kw_only=True):
    """What the judging model said; all None if the program decided."""

    call_id: int | None = None
    confidence: float | None = None
    """Of the word that the model said; None, like the next three, if it gave no probabilities."""
    probability: float | None = None
    """Of the word that decides, such as yes."""
    neutral: float | None = None
    """Of the same word when asked about nothing; None if unknown."""
    calibrated: float | None = None
    """Log-odds of that word, minus those when asked about nothing."""


class ContextItem(Struct, frozen=True, kw_only=True):
    """One file, or one symbol of it, as a prompt shows it."""

    path: str
    """Relative to the repository's root, with forward slashes."""
    detail: Detail
    section: Section = "code"
    symbol: str | None = None
    """Qualified name (`Class.method`) when the item is one symbol; None for a whole file."""
    start_line: int
    """1-based, inclusive; of `text` in the file if its lines are shown, otherwise of the definition."""
    end_line: int
    text: str
    """What is shown, with `\\n` line ends; for a primary item exactly the lines `start_line..end_line`."""
    tier: int
    score: float
    reason: str
    tokens: int
    """Estimated tokens of the item with its frame."""
    content_hash: str
    """Hex SHA-256 of the whole file's bytes as they were read."""
    adjoins: bool = False
    """Whether only blank lines separate it from the previous item, so that one frame holds both."""


class DroppedItem(Struct, frozen=True, kw_only=True):
    """An item that was judged worth showing but is not in the package, and why."""

    path: str
    symbol: str | None = None
    detail: Detail
    tokens: int
    reason: str


class BudgetAccount(Struct, frozen=True, kw_only=True):
    """How the window is used, in estimated tokens."""

    context_window: int
    reserved_tokens: int
    used_tokens: int
    """By the items with their frames; at most `context_window - reserved_tokens`."""


class ContextPackage(Struct, frozen=True, kw_only=True):
    """The curated context for one pass."""

    pass_id: str
    task: str
    """The user's words, unchanged."""
    items: tuple[ContextItem, ...]
    """By section, in the order in which they are shown; items that are left out first come last."""
    dropped: tuple[DroppedItem, ...] = ()
    others: tuple[str, ...] = ()
    """Paths of further files that may matter, best first; nothing of them is shown."""
    budget: BudgetAccount

    def to_prompt_text(self) -> str:
        """The items between delimiters that no shown line can imitate."""
        return frame_items(self.items)

    def primary(self) -> tuple[ContextItem, ...]:
        """The items that may be edited."""
        return tuple(item for item in self.items if item.detail == "primary")


class SectionTexts(Struct, frozen=True, kw_only=True):
    """The items as the sections of a prompt, each framed, without a line break at the end; "" if a section has none."""

    code: str
    tests: str
    conventions: str
    uses: str
    callers: str
    green: str


def section_texts(items: Iterable[ContextItem]) -> SectionTexts:
    """Each section's items, with one fence for all of them."""
    shown = tuple(items)
    fence = fence_for(item.text for item in shown)

    def text(section: Section) -> str:
        return without_line_end(_framed_items([item for item in shown if item.section == section], fence))

    return SectionTexts(**{section: text(section) for section in SECTIONS})


def frame_items(items: Iterable[ContextItem]) -> str:
    """The items of all sections, one after the other."""
    shown = tuple(items)
    return _framed_items(shown, fence_for(item.text for item in shown))


def fence_for(texts: Iterable[str]) -> str:
    """A row of `=` that is longer than any at the beginning of a line of the texts, so that they cannot forge a frame."""
    longest = 0
    for text in texts:
        for line in text.split("\n"):
            if line.startswith("=" * FENCE_MIN):
                longest = max(longest, len(line) - len(line.lstrip("=")))
    return "=" * max(FENCE_MIN, longest + 1)


def frame(head: str, text: str, fence: str, *, path: str = "", symbol: str = "") -> SourcedText:
    """The text between a heading and an end line, both of which are about this path and symbol."""
    first, last = (
        sourced(f"{fence} {words}\n", PromptSource.FRAME, path=path, symbol=symbol) for words in (head, "end")
    )
    return compose((first, _line_ended(text), last))


def _framed_items(items: Sequence[ContextItem], fence: str) -> SourcedText:
    blocks: list[str] = []
    for listed, group in groupby(items, key=_is_line):
        if listed:
            blocks.append(compose(_sourced_item(item) for item in group))
        else:
            blocks.extend(_frame_of(run, fence) for run in _group_by_frame(list(group)))
    return joined("\n", blocks)


def _sourced_item(item: ContextItem) -> SourcedText:
    """The item's text, with the place in the file that each line shows or is about."""
    if _head_word(item) in {"file", "code", "test"}:
        source, number = PromptSource.FILE, item.start_line
    else:
        source, number = PromptSource.OUTLINE, None
        if item.section in {"callers", "green"}:
            number = item.start_line
    return sourced(_line_ended(item.text), source, path=item.path, symbol=item.symbol or "", number=number)


def _is_line(item: ContextItem) -> bool:
    """Whether the item is a line that names its path, and needs no frame."""
    return item.section in {"callers", "green"} or (item.section == "uses" and item.detail == "type_context")


def _group_by_frame(items: Sequence[ContextItem]) -> list[list[ContextItem]]:
    runs: list[list[ContextItem]] = []
    for item in items:
        if item.adjoins and runs:
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def _frame_of(run: Sequence[ContextItem], fence: str) -> SourcedText:
    first = run[0]
    names = ", ".join(item.symbol for item in run if item.symbol is not None)
    texts: list[str] = [_sourced_item(first)]
    for before, item in pairwise(run):
        if item.detail == "primary":
            blank = "\n" * (item.start_line - before.end_line - 1)
            texts.append(
                sourced(
                    blank,
                    PromptSource.FILE,
                    path=item.path,
                    symbol=before.symbol or "",
                    number=before.end_line + 1,
                )
            )
        texts.append(_sourced_item(item))
    last = max(item.end_line for item in run)
    called = dict.fromkeys(without_lines(item.symbol) for item in run if item.symbol is not None)
    name = item_name(quoted(first.path), ", ".join(filter(None, called)), (first.start_line, last))
    head = f"{_head_word(first)}: {name}"
    return frame(head, compose(texts), fence, path=first.path, symbol=names)


def _line_ended(text: str) -> str:
    return text if text.endswith("\n") or not text else compose((text, "\n"))


def _head_word(item: ContextItem) -> str:
    if item.section == "tests":
        return "test"
    if item.section == "conventions":
        return "conventions"
    if item.detail == "primary":
        return "file" if item.symbol is None else "code"
    if item.detail == "supporting":
        return "reference"
    return "outline" if item.symbol is None else "signature"

"""The context package: all that a room shows a model of the repository, and the account of its budget."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Detail = Literal["primary", "supporting", "type_context"]
"""primary: shown whole and editable; supporting: signature and docstring; type_context: signature alone."""

FENCE_MIN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """One file, or one symbol of it, as the room shows it."""

    path: str
    """Relative to the repository's root, with forward slashes."""
    detail: Detail
    symbol: str | None = None
    """Qualified name (`Class.method`) when the item is one symbol; None for a whole file."""
    start_line: int
    """1-based, inclusive; of `text` in the file where the item is primary, of the definition otherwise."""
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
    fill: bool = False
    """Nobody asked for it: room was left in a file to be changed. The first to go where a prompt would overflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedItem:
    """What was judged worth showing and is not in the room, and why."""

    path: str
    symbol: str | None = None
    detail: Detail
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetAccount:
    """Where the window went, in estimated tokens."""

    context_window: int
    reserved_tokens: int
    used_tokens: int
    """By the items with their frames; at most `context_window - reserved_tokens`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPackage:
    """The curated context for one pass."""

    pass_id: str
    task: str
    """The user's words, unchanged."""
    items: tuple[ContextItem, ...]
    """In the order in which they are shown."""
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


def frame_items(items: Iterable[ContextItem]) -> str:
    """Frame `items`; the fence is longer than any run of `=` that begins a shown line, so it cannot be forged."""
    shown = tuple(items)
    fence = "=" * _fence_length(shown)
    blocks = []
    for item in shown:
        name = item.path if item.symbol is None else f"{item.path} :: {item.symbol}"
        head = f"{fence} {_detail_words(item)}: {name} (lines {item.start_line}-{item.end_line})"
        body = item.text if item.text.endswith("\n") or not item.text else item.text + "\n"
        blocks.append(f"{head}\n{body}{fence} end\n")
    return "\n".join(blocks)


def _detail_words(item: ContextItem) -> str:
    if item.detail == "primary":
        return "file" if item.symbol is None else "symbol"
    return "reference" if item.detail == "supporting" else "signature"


def _fence_length(items: tuple[ContextItem, ...]) -> int:
    longest = 0
    for item in items:
        for line in item.text.split("\n"):
            if line.startswith("=" * FENCE_MIN):
                longest = max(longest, len(line) - len(line.lstrip("=")))
    return max(FENCE_MIN, longest + 1)

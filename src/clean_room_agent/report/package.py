"""A context package as a person or another tool reads it."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from clean_room_agent.artifacts.package import ContextItem, ContextPackage
from clean_room_agent.db.raw.decisions import DecisionRow


def as_table(package: ContextPackage) -> Group:
    """What is in, at what detail, why, and its tokens; then what was left out, and the account."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, justify in (
        ("detail", "left"),
        ("where", "left"),
        ("lines", "right"),
        ("tokens", "right"),
        ("why", "left"),
    ):
        table.add_column(name, justify="right" if justify == "right" else "left", overflow="fold")
    for item in package.items:
        table.add_row(
            item.detail.replace("_", " "),
            Text(_name(item.path, item.symbol)),
            f"{item.start_line}-{item.end_line}",
            f"{item.tokens:,}",
            Text(item.reason),
        )
    parts: list[Table | Text] = [table if package.items else Text("nothing fits the task", style="yellow")]
    parts.extend(
        Text(
            f"left out: {_name(gone.path, gone.symbol)} ({gone.tokens:,} tokens): {gone.reason}",
            style="yellow",
        )
        for gone in package.dropped
    )
    budget = package.budget
    room = budget.context_window - budget.reserved_tokens
    parts.append(
        Text(
            f"\n{budget.used_tokens:,} of {room:,} tokens used "
            f"(window {budget.context_window:,}, {budget.reserved_tokens:,} kept for the task and the answer)"
        )
    )
    return Group(*parts)


def as_markdown(package: ContextPackage) -> str:
    """The package with each item as a fenced block, to paste into another assistant."""
    blocks = [f"# Task\n\n{package.task}\n\n# Context\n"]
    for item in package.items:
        fence = "`" * max(3, _longest_run(item) + 1)
        blocks.append(
            f"## {_name(item.path, item.symbol)} (lines {item.start_line}-{item.end_line}, {item.detail.replace('_', ' ')})\n\n"
            f"{fence}\n{item.text.rstrip(chr(10))}\n{fence}\n"
        )
    return "\n".join(blocks)


def as_object(package: ContextPackage, decisions: Sequence[DecisionRow]) -> dict[str, Any]:
    """The package with the candidates that were judged, for programs."""
    return {
        "task_id": package.pass_id,
        "items": [
            {
                "path": item.path,
                "symbol": item.symbol,
                "detail": item.detail,
                "start_line": item.start_line,
                "end_line": item.end_line,
                "tier": item.tier,
                "score": item.score,
                "reason": item.reason,
                "tokens": item.tokens,
                "content_hash": item.content_hash,
                "text": item.text,
            }
            for item in package.items
        ],
        "candidates": [
            {
                "path": row.path,
                "symbol": row.symbol,
                "stage": row.stage,
                "tier": row.tier,
                "score": row.score,
                "included": row.included,
                "reasons": row.reason,
            }
            for row in decisions
        ],
        "dropped": [
            {"path": gone.path, "symbol": gone.symbol, "tokens": gone.tokens, "reason": gone.reason}
            for gone in package.dropped
        ],
        "budget": {
            "context_window": package.budget.context_window,
            "reserved_tokens": package.budget.reserved_tokens,
            "used_tokens": package.budget.used_tokens,
        },
    }


def _name(path: str, symbol: str | None) -> str:
    return path if symbol is None else f"{path} :: {symbol}"


def _longest_run(item: ContextItem) -> int:
    longest = current = 0
    for character in item.text:
        current = current + 1 if character == "`" else 0
        longest = max(longest, current)
    return longest

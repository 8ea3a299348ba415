"""A context package as a person or another tool reads it."""

import textwrap
from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.package import ContextItem, ContextPackage
from clean_room_agent.db.raw.decisions import DecisionRow
from clean_room_agent.retrieval.stage import Candidate

UNASKED = "no model asked: "
"""How a reason begins that stands for a score; the table says it once."""
DETAIL_COLOURS = {"primary": "green", "supporting": "cyan", "type_context": ""}


def as_table(package: ContextPackage, decisions: Sequence[DecisionRow] = (), *, width: int = 80) -> Group:
    """What is in, file by file: why the file, and each piece's detail, lines, tokens and reason; then what was left out.

    `decisions` are those of the package's pass; `width` is in columns.
    """
    why_file = {row.path: row.reason for row in decisions if row.path and row.symbol is None and row.included}
    lines: list[Text] = []
    for path in dict.fromkeys(item.path for item in package.items):
        items = [item for item in package.items if item.path == path]
        lines.append(Text.assemble((path, "bold"), f"  {sum(item.tokens for item in items):,} tokens"))
        reason = why_file.get(path, "").removeprefix(UNASKED)
        lines.extend(
            Text(line, style="dim")
            for line in textwrap.wrap(
                reason, max(width, 40), initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
            )
        )
        lines.extend(_piece(item) for item in items)
    if not lines:
        lines.append(Text("nothing fits the task", style="yellow"))
    lines.extend(
        Text(
            f"left out: {_name(gone.path, gone.symbol)} ({gone.tokens:,} tokens): {gone.reason}",
            style="yellow",
        )
        for gone in package.dropped
    )
    budget = package.budget
    room = budget.context_window - budget.reserved_tokens
    lines.append(
        Text(
            f"\n{len(package.items)} pieces, {budget.used_tokens:,} of {room:,} tokens used\n"
            f"(window {budget.context_window:,}, {budget.reserved_tokens:,} kept for the task and the answer)"
        )
    )
    if any(item.reason.startswith(UNASKED) for item in package.items):
        lines.append(Text("judged by score alone: no model was asked"))
    return Group(*lines)


def _piece(item: ContextItem) -> Text:
    span = f"{item.start_line}-{item.end_line}"
    reason = item.reason
    if reason.startswith(UNASKED):
        # The bound is in the record; here it would fold every line of an 80-column terminal.
        reason = reason.removeprefix(UNASKED).partition(" is at least ")[0]
    return Text.assemble(
        (f"  {item.detail.replace('_', ' '):<12}", DETAIL_COLOURS[item.detail]),
        f" {span:>11} {item.tokens:>7,}  {item.symbol or 'the whole file'}",
        (f"  {reason}", "dim"),
    )


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


def as_object(
    package: ContextPackage, candidates: Sequence[Candidate], decisions: Sequence[DecisionRow]
) -> dict[str, Any]:
    """The package for programs, with the files that were candidates, every judgment, and what else the record notes.

    `candidates` stay in their order, which is that of the ranking; `included` says what became of each file.
    """
    shown = {item.path for item in package.items}
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
                "path": entry.path,
                "score": entry.score,
                "tier": entry.tier,
                "reasons": list(entry.reasons),
                "included": entry.path in shown,
            }
            for entry in candidates
        ],
        "judged": [
            {
                "path": row.path,
                "symbol": row.symbol,
                "stage": row.stage,
                "tier": row.tier,
                "score": row.score,
                "included": row.included,
                "reason": row.reason,
            }
            for row in decisions
            if row.path
        ],
        "notes": [f"{row.stage}: {row.reason}" for row in decisions if not row.path],
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

"""A context package as Markdown and as JSON, for other tools and programs, and as a table, for people."""

import re
import textwrap
from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from clean_room_agent.artifacts.context import ContextItem, ContextPackage
from clean_room_agent.artifacts.names import counted, item_name, without_lines
from clean_room_agent.db.raw.passes import DecisionRow
from clean_room_agent.json_values import to_shown
from clean_room_agent.retrieval.stage import Candidate


def as_markdown(package: ContextPackage) -> str:
    """The package with each item as a fenced block, to paste into another assistant."""
    blocks = [f"# Task\n\n{package.task}\n\n# Context\n"]
    for item in package.items:
        longest = max(map(len, re.findall("`+", item.text)), default=0)
        fence = "`" * max(3, longest + 1)
        blocks.append(
            f"## {item_name(item.path, without_lines(item.symbol or ''))} (lines {item.start_line}-{item.end_line}, {item.detail.replace('_', ' ')})\n\n"
            f"{fence}\n{item.text.rstrip(chr(10))}\n{fence}\n"
        )
    return "\n".join(blocks)


def as_object(
    package: ContextPackage, candidates: Sequence[Candidate], decisions: Sequence[DecisionRow]
) -> dict[str, Any]:
    """The package for programs, with the candidate files, every judgment, and the other notes of the record.
    `candidates` are in the order of the ranking; `included` says whether each file was included.
    """
    shown = {item.path for item in package.items}
    return {
        "task_id": package.pass_id,
        "items": to_shown(package.items),
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
                "path": row.subject.path,
                "symbol": row.subject.symbol,
                "stage": row.stage,
                "tier": row.subject.tier,
                "score": row.subject.score,
                "included": row.included,
                "reason": row.reason,
            }
            for row in decisions
            if row.subject.path
        ],
        "notes": [f"{row.stage}: {row.reason}" for row in decisions if not row.subject.path],
        "dropped": to_shown(package.dropped),
        "budget": to_shown(package.budget),
    }


UNASKED = "no model asked: "
"""The beginning of a reason that is only a score; the table says it once."""
SECTION_WORDS = {
    "tests": "test",
    "conventions": "conventions",
    "uses": "used",
    "callers": "caller",
    "green": "green test",
}
DETAIL_COLOURS = {"primary": "green", "supporting": "cyan", "type_context": ""}


def as_table(package: ContextPackage, decisions: Sequence[DecisionRow] = (), *, width: int = 80) -> Group:
    """What is included, file by file: why the file, and each piece's detail, lines, tokens and reason; then what was
    left out.

    `decisions` are those of the package's pass; `width` is in columns.
    """
    why_file = {
        row.subject.path: row.reason
        for row in decisions
        if row.subject.path and row.subject.symbol is None and row.included and row.detail != "type_context"
    }
    lines: list[Text] = []
    for path in dict.fromkeys(item.path for item in package.items):
        items = [item for item in package.items if item.path == path]
        lines.append(
            Text.assemble((path, "bold"), f"  {counted(sum(item.tokens for item in items), 'token')}")
        )
        reason = why_file.get(path, "").removeprefix(UNASKED)
        lines.extend(
            Text(line, style="dim")
            for line in textwrap.wrap(
                reason, max(width, 40), initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
            )
        )
        lines.extend(_item_line(item) for item in items)
    if not lines:
        lines.append(Text("nothing fits the task", style="yellow"))
    lines.extend(
        Text(
            f"left out: {item_name(gone.path, gone.symbol)} ({counted(gone.tokens, 'token')}): {gone.reason}",
            style="yellow",
        )
        for gone in package.dropped
    )
    budget = package.budget
    available = budget.context_window - budget.reserved_tokens
    lines.append(
        Text(
            f"\n{counted(len(package.items), 'piece')}, {budget.used_tokens:,} of {available:,} tokens used\n"
            f"(window {budget.context_window:,}, {budget.reserved_tokens:,} kept for the task and the answer)"
        )
    )
    if any(item.reason.startswith(UNASKED) for item in package.items):
        lines.append(Text("judged by score alone: no model was asked"))
    return Group(*lines)


def _item_kind(item: ContextItem) -> str:
    """The purpose of the piece, in a word or two."""
    return item.detail.replace("_", " ") if item.section == "code" else SECTION_WORDS[item.section]


def _item_name(item: ContextItem) -> str:
    """What of the file the piece is."""
    if item.symbol:
        return item.symbol
    return "names alone" if item.section == "uses" and item.detail == "type_context" else "the whole file"


def _item_line(item: ContextItem) -> Text:
    span = f"{item.start_line}-{item.end_line}"
    reason = item.reason
    if reason.startswith(UNASKED):
        # The bound is in the record; here it would fold every line of an 80-column terminal.
        reason = reason.removeprefix(UNASKED).partition(" is at least ")[0]
    return Text.assemble(
        (f"  {_item_kind(item):<12}", DETAIL_COLOURS[item.detail]),
        f" {span:>11} {item.tokens:>7,}  {_item_name(item)}",
        (f"  {reason}", "dim"),
    )

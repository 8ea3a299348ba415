"""A context package as Markdown and as JSON, for other tools and programs; imports no terminal library."""

import re
from collections.abc import Sequence
from typing import Any

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.names import item_name, without_lines
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

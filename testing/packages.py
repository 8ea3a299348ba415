"""Context packages for tests, made from texts."""

import hashlib

from clean_room_agent.artifacts.context import BudgetAccount, ContextItem, ContextPackage, Detail


def shown_file(path: str, text: str, *, detail: Detail = "primary", tier: int = 1) -> ContextItem:
    """A whole file as a context shows it."""
    lines = text.count("\n") + (0 if text.endswith("\n") else 1)
    return _item(path, text, detail=detail, symbol=None, start=1, end=lines, tier=tier)


def shown_symbol(
    path: str, text: str, symbol: str, start: int, end: int, *, detail: Detail = "primary"
) -> ContextItem:
    """The lines `start..end` (1-based, inclusive) of `text` as a symbol."""
    part = "\n".join(text.split("\n")[start - 1 : end]) + "\n"
    return _item(path, part, detail=detail, symbol=symbol, start=start, end=end, tier=1)


def package(*items: ContextItem, task: str = "Fix the bug.") -> ContextPackage:
    """A context with these items."""
    budget = BudgetAccount(
        context_window=8192, reserved_tokens=2048, used_tokens=sum(item.tokens for item in items)
    )
    return ContextPackage(pass_id="task:impl:p1:s1", task=task, items=items, budget=budget)


def _item(
    path: str, text: str, *, detail: Detail, symbol: str | None, start: int, end: int, tier: int
) -> ContextItem:
    return ContextItem(
        path=path,
        detail=detail,
        symbol=symbol,
        start_line=start,
        end_line=end,
        text=text,
        tier=tier,
        score=1.0,
        reason="named by the task",
        tokens=len(text) // 3 + 12,
        content_hash=hashlib.sha256(text.encode()).hexdigest(),
    )

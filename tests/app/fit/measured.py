"""Figures of made-up models."""

from typing import Any

from clean_room_agent.app.fit.figures import FIGURES, FigureName, Fit, Measured, Speed
from clean_room_agent.app.fit.fit_file import VERSION
from clean_room_agent.db.raw.analysis import CallSums


def outcomes(right: int, wrong: int, *, tokens: int = 50, **more: Any) -> list[Measured]:
    """So many right ones and wrong ones, none of them held."""
    kept = [True] * right + [False] * wrong
    return [
        Measured(task=str(place), held=False, applied=True, right=one, tokens=tokens, **more)
        for place, one in enumerate(kept)
    ]


def judgments(*, knows: bool) -> list[Measured]:
    """Of a judge that knows, or says yes to all."""
    return [
        Measured(
            task=str(place),
            held=False,
            applied=True,
            right=True,
            kind="needed" if place % 2 else "other",
            score=float(place % 2 if knows else 1),
        )
        for place in range(16)
    ]


def fit(model: str = "coder:3b", **figures: list[Measured]) -> Fit:
    """A model of which everything is measured, with these figures; it fills gaps where there are any."""
    widths = {1: Speed(work=100, seconds=10), 2: Speed(work=100, seconds=5)}
    named: dict[FigureName, list[Measured]] = {name: figures.get(name, []) for name in FIGURES}
    return Fit(
        version=VERSION,
        model=model,
        digest="",
        began="2026-01-02T03:04:05Z",
        fills=bool(figures.get("masked")),
        figures=named,
        ended=list(FIGURES),
        widths=widths,
    )


def strong(model: str = "coder:3b") -> Fit:
    """A model that always knows."""
    return fit(
        model,
        function=outcomes(5, 0, tokens=60),
        masked=outcomes(5, 0, tokens=30),
        lines=outcomes(5, 0, tokens=20),
        edit=outcomes(3, 0),
        plan=outcomes(3, 0),
        judgment=judgments(knows=True),
    )


def sums(prompt: str, *, tried: int, passed: int, tokens: int) -> CallSums:
    """Of answers in runs, which took so many tokens each."""
    values: dict[str, Any] = dict.fromkeys(CallSums.__struct_fields__, 0)
    told = {"prompt": prompt, "model": "coder:3b", "calls": tried, "tried": tried, "applied": tried}
    return CallSums(**{**values, **told, "passed": passed, "completion_tokens": tokens * tried})

"""What is chosen by what was measured of the models: each choice is the value of a key of the configuration, by a rule of its
own. A figure that was not measured chooses nothing, but that the size in a small model's name does.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from clean_room_agent.app.fit.figures import (
    CLEARLY_MORE,
    LEAST_AUC,
    FigureName,
    Fit,
    Measured,
    auc,
    evidence,
    right_by_temperature,
    share,
)
from clean_room_agent.artifacts.context import Role
from clean_room_agent.db.raw.analysis import CallSums
from clean_room_agent.orchestrator.run_config import Form

FORMS: tuple[Form, ...] = ("masked", "function", "lines")
FASTER = 1.3
"""So many times as fast several answers at a time have to be: the same two cores were measured as 1.1 and as 1.2 times as fast."""
LONGER = 2.0
"""So many times as long answers may be where that is what right ones need."""
LONG_SHARE = 0.25
"""Of the right answers, that need it."""
SMALL = 3.0
"""Billions of parameters. A model of 1.5B loses 15 points where it reasons before it writes code (Ghoshal et al., "Think Less, Code
Better", 2026); of one that was measured here, no edit of a file was right, and it said yes to every file (`benchmarks/real`).
"""
SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)(b|m)(?![a-z0-9])", re.IGNORECASE)
ENOUGH = 40
"""Answers of each of two forms that were tried in runs, before these figures order them."""


class ChosenKey(Struct, frozen=True, kw_only=True):
    """The value of a key, and the figures that speak for it."""

    table: str
    key: str
    value: Any
    why: str

    @property
    def name(self) -> str:
        """The key with its table."""
        return f"{self.table}.{self.key}"


def is_of_use(fit: Fit, name: FigureName) -> bool | None:
    """Whether the model should be asked this; None where that was not measured."""
    tasks = fit.choosing(name)
    if name not in fit.ended or not tasks:
        return None
    if name == "judgment":
        found = auc(tasks)
        return None if found is None else found >= LEAST_AUC
    return evidence(name, tasks) > 0


def best_width(fit: Fit) -> int | None:
    """How many answers at a time are fastest; None where that was not measured."""
    alone = fit.widths.get(1)
    if alone is None or not alone.rate or len(fit.widths) < 2:
        return None
    width, speed = max(fit.widths.items(), key=lambda one: one[1].rate)
    return width if speed.rate >= FASTER * alone.rate else 1


def forms_of(fit: Fit) -> tuple[Form, ...]:
    """The forms that are of use, by the tokens that the model writes for one right answer."""
    useful = [form for form in FORMS if is_of_use(fit, form)]
    return tuple(sorted(useful, key=lambda form: _tokens_per_success(fit.choosing(form))))


def _tokens_per_success(tasks: Sequence[Measured]) -> float:
    right = sum(one.right for one in tasks)
    return sum(one.tokens for one in tasks) / right if right else float("inf")


def can_work(fit: Fit) -> bool | None:
    """Whether the coding model can write code in any form; None while it is being measured."""
    if not {"function", "lines", "edit"} <= {*fit.ended}:
        return None
    return bool(forms_of(fit)) or bool(is_of_use(fit, "edit"))


def choices(
    fits: Mapping[Role, Fit], runs: Sequence[CallSums] = (), models: Mapping[Role, str] | None = None
) -> tuple[ChosenKey, ...]:
    """What is chosen by what was measured, by the sizes in the names of those of the `models` of which nothing was, and by what
    answers of the coding model came to in `runs`; without what was measured of it if it cannot do the work, or that is not known yet.
    """
    coding = fits.get("coding")
    if coding is None or not can_work(coding):
        measured = [one for one in _forms_by_runs(FORMS, runs) if one.value != list(FORMS)]
    else:
        measured = [
            *_route_keys(coding, fits.get("reasoning"), runs),
            *_sampling_keys(coding),
            *_parallel_keys(coding),
            *_judgment_keys(fits.get("classifier")),
        ]
    known = {one.name for one in measured}
    unmeasured = {role: model for role, model in (models or {}).items() if role not in fits}
    return (*measured, *(one for one in _size_keys(unmeasured) if one.name not in known))


def size_of(model: str) -> float | None:
    """Billions of parameters by the model's name; None if that does not say. Of several sizes the largest is that of the whole."""
    sizes = [float(number) / (1 if unit in "bB" else 1000) for number, unit in SIZE.findall(model)]
    return max(sizes, default=None)


def _size_keys(models: Mapping[Role, str]) -> Iterator[ChosenKey]:
    rules: tuple[tuple[Role, str, str, str], ...] = (
        ("reasoning", "orchestrator", "planning", "none"),
        ("classifier", "judgments", "route", "rank"),
    )
    for role, table, key, value in rules:
        size = size_of(models.get(role, ""))
        if size is not None and size < SMALL:
            why = f"{size:g}B by its name, not measured: below {SMALL:g}B"
            yield ChosenKey(table=table, key=key, value=value, why=why)


def _forms_by_runs(forms: Sequence[Form], runs: Sequence[CallSums]) -> Iterator[ChosenKey]:
    """Of gaps and whole functions, those come first of which an answer that passes its tests took fewer tokens. Which form was
    second before was asked about what the first had not solved, so that it is rather cheaper than it seems.
    """
    of = {one.prompt: one for one in runs if one.tried >= ENOUGH}
    gaps, whole = of.get("fill"), of.get("function")
    if (
        gaps is None
        or whole is None
        or not {"masked", "function"} <= {*forms}
        or not gaps.passed + whole.passed
    ):
        return
    rest = [form for form in forms if form not in {"masked", "function"}]
    first = ["masked", "function"] if _per_passed(gaps) <= _per_passed(whole) else ["function", "masked"]
    yield ChosenKey(table="solve", key="forms", value=[*first, *rest], why="; ".join(words_of_runs(runs)))


def _per_passed(sums: CallSums) -> float:
    """Tokens for one answer that passes; many if none did."""
    return sums.work / sums.passed if sums.passed else float("inf")


def _route_keys(coding: Fit, reasoning: Fit | None, runs: Sequence[CallSums]) -> Iterator[ChosenKey]:
    forms = forms_of(coding)
    why = "; ".join(told for form in FORMS if (told := words_of(coding, form)))
    if forms:
        measured = ChosenKey(table="solve", key="forms", value=list(forms), why=why)
        yield next(_forms_by_runs(forms, runs), measured)
    yield ChosenKey(table="solve", key="route", value="auto" if forms else "planned", why=why)
    edits = is_of_use(coding, "edit")
    plans = None if reasoning is None else is_of_use(reasoning, "plan")
    if edits is not None and (plans is not None or not edits):
        both = (words_of(coding, "edit"), words_of(reasoning, "plan") if reasoning else "")
        value = "one-call" if edits and plans else "none"
        yield ChosenKey(table="orchestrator", key="planning", value=value, why="; ".join(filter(None, both)))


def _sampling_keys(coding: Fit) -> Iterator[ChosenKey]:
    drawn = coding.choosing("redrawn")
    if "redrawn" in coding.ended and drawn:
        why = words_of(coding, "redrawn")
        right = right_by_temperature(drawn)
        usual, *others = right
        better = [kind for kind in others if right[kind] >= right[usual] + CLEARLY_MORE]
        yield ChosenKey(table="solve", key="draw_temperature", value=float((better or [usual])[0]), why=why)
    written = [one for form in ("function", "lines") for one in coding.choosing(form) if one.right]
    if {"function", "lines"} <= {*coding.ended} and written:
        long = sum(one.over for one in written)
        length = LONGER if long >= LONG_SHARE * len(written) else 1.0
        why = f"{long} of {len(written)} right answers longer than usual"
        yield ChosenKey(table="solve", key="answer_length", value=length, why=why)


def _parallel_keys(coding: Fit) -> Iterator[ChosenKey]:
    width = best_width(coding)
    if width is not None:
        yield ChosenKey(table="models", key="parallel", value=width, why=slots_words(coding))
    turn, side = coding.gaps.get("in-turn"), coding.gaps.get("side-by-side")
    if "masked" in coding.ended and turn and side and turn.rate:
        together = side.rate >= FASTER * turn.rate
        why = f"gaps of one place side by side: {side.rate / turn.rate:.1f} x"
        value = "side-by-side" if together else "in-turn"
        yield ChosenKey(table="solve", key="gaps", value=value, why=why)


def _judgment_keys(classifier: Fit | None) -> Iterator[ChosenKey]:
    asked = None if classifier is None else is_of_use(classifier, "judgment")
    if classifier is not None and asked is not None:
        why = words_of(classifier, "judgment")
        yield ChosenKey(table="judgments", key="route", value="each" if asked else "rank", why=why)


def as_tables(chosen: Sequence[ChosenKey]) -> dict[str, dict[str, Any]]:
    """The values as a configuration has them."""
    tables: dict[str, dict[str, Any]] = {}
    for one in chosen:
        tables.setdefault(one.table, {})[one.key] = one.value
    return tables


TOLD: Mapping[FigureName, str] = {
    "masked": "fills gaps",
    "function": "writes whole functions",
    "lines": "changes lines",
    "redrawn": "drawn again",
    "edit": "edits files",
    "plan": "plans",
    "judgment": "yes/no",
}


def words_of(fit: Fit, name: FigureName) -> str:
    """What was measured, in words; "" if nothing was."""
    chosen, held = fit.choosing(name), fit.held(name)
    if name == "masked" and fit.fills is False:
        return "fills no gaps on this server"
    if not chosen:
        return ""
    if name == "judgment":
        found, beside = auc(chosen), auc(held)
        told = f"AUC {_format_decimal(found)} of {len(chosen)}"
        return f"{TOLD[name]}: {told}" + (
            f" (held: {_format_decimal(beside)} of {len(held)})" if held else ""
        )
    if name in {"plan", "redrawn"}:
        told = f"{_right_count(chosen)} right"
        return f"{TOLD[name]}: {told}" + (f" (held: {_right_count(held)})" if held else "")
    applied = sum(one.applied for one in chosen) / len(chosen)
    told = f"{applied:.0%} apply, {share(chosen):.0%} right of {len(chosen)}"
    return f"{TOLD[name]}: {told}" + (f" (held: {share(held):.0%} of {len(held)})" if held else "")


def words_of_runs(runs: Sequence[CallSums]) -> Iterator[str]:
    """What answers in these forms came to in runs, in words."""
    of = {one.prompt: one for one in runs if one.tried}
    for prompt, does in (("fill", TOLD["masked"]), ("function", TOLD["function"])):
        if prompt in of:
            one = of[prompt]
            yield f"{does}, in runs here: {one.passed:,} of {one.tried:,} passed, {one.work / one.tried:.0f} tokens each"


def slots_words(fit: Fit) -> str:
    """What several answers at a time are worth; "" where that was not measured."""
    alone = fit.widths.get(1)
    if alone is None or not alone.rate:
        return ""
    return ", ".join(
        f"{width} slots: {speed.rate / alone.rate:.1f} x"
        for width, speed in sorted(fit.widths.items())
        if width > 1
    )


def _right_count(tasks: Sequence[Measured]) -> str:
    return f"{sum(one.right for one in tasks)} of {len(tasks)}"


def _format_decimal(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}".lstrip("0")

"""Decides what a call should give, from what a report says and from what it gave when it was run.

The report is confirmed where a value that it says the call gives now is the one that it gave. One value that it says is
wanted, and that is not what it gave, is then the wanted one; a report that says how it should be and nothing of how it is
needs no more. Where the two sides are exchanged, or where what it says it gives now is something else, nothing is
concluded.

The types of this module, of the calls that are looked at and the tests that are written, serve any language.
"""

import ast
import difflib
import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from clean_room_agent.execute.goals.report import Claim, Role, StatedValue

Relation = Literal["equal", "last", "first", "tail", "head", "suffix", "prefix", "raises", "no_error"]
"""How the value is compared with what the call gives: with all of it, its last or first element, its last or first elements,
the end or the start of a text; or that it raises, or does not raise.
"""
PARTS: dict[str, frozenset[str]] = {
    "": frozenset({"equal", "text"}),
    "end": frozenset({"equal", "last", "tail", "suffix"}),
    "start": frozenset({"equal", "first", "head", "prefix"}),
}
LEAST_ALIKE = 0.5
"""Of a text without quotes that is wanted, and the one that was given, by difflib."""
UNFIT = frozenset({"OSError", "ModuleNotFoundError", "EOFError"})
"""Of what a call raises because something is not here that it needs, unless the report says so."""
INCOMPARABLE = "incomparable"
"""In `Observation.matches`, of a value that is not equal to one that is written in the same way."""
UNSTABLE = re.compile(r"\bat 0x[0-9a-f]{6,}|<function |<module ")
"""In what has no repr of its own."""


Pair = tuple[StatedValue, tuple[str, ...]]
"""A stated value, and how it stands to what the call gave."""


class Observation(Struct, frozen=True, kw_only=True):
    """What a call gave at the base."""

    problem: str = ""
    """Why it could not be made; "" if it was."""
    raised: tuple[str, ...] = ()
    """The names of the classes of the exception, its own first; empty if it raised none."""
    message: str = ""
    """Of the exception."""
    shown: str = ""
    """The value's repr; of an iterator, that of a list of what it gives."""
    text: str | None = None
    """The value, if it is a string."""
    iterated: bool = False
    """Whether it gave an iterator."""
    awaited: bool = False
    """Whether it gave a promise, and this is what that came to."""
    matches: tuple[tuple[str, ...], ...] = ()
    """Of each stated value, how it stands to the value: `text` if its own text is that of the value, and relations."""

    def described(self) -> str:
        """What it gave, in a few words."""
        if self.raised:
            # Below pytest's words for a comparison stands a diff.
            first = self.message.strip().partition("\n")[0]
            return f"raises {self.raised[0]}{': ' if first else ''}{first[:120]}"
        return self.shown


class WantedValue(Struct, frozen=True, kw_only=True):
    """What a call has to give."""

    text: str
    """As source text; the name of an exception; "" for `no_error`."""
    relation: Relation = "equal"

    def described(self) -> str:
        """As `GoalTest.wanted` has it."""
        return {"raises": f"raises {self.text}", "no_error": "no error"}.get(self.relation, self.text)


class Conclusion(Struct, frozen=True, kw_only=True):
    """What is known of one call."""

    wanted: WantedValue | None = None
    """None where nothing is concluded."""
    denied: bool = False
    """Whether the call does not do what the report says."""
    confirmed: bool = False
    """Whether it gives what the report says that it gives."""
    choices: tuple[str, ...] = ()
    """The stated values that may be the wanted one, as source text, where more is not known."""


class _ClaimValues(Struct, frozen=True, kw_only=True):
    """The values of a claim, each with how it stands to what the call gave."""

    pairs: tuple[Pair, ...]

    def of(self, *roles: Role) -> tuple[Pair, ...]:
        """Those of which the report says this, role by role."""
        return tuple(pair for role in roles for pair in self.pairs if pair[0].role == role)

    @property
    def matching(self) -> tuple[Pair, ...]:
        """Those that the call gave, and that nothing says are wanted."""
        return tuple(pair for pair in self.of("got", "asserted", "") if pair[1])

    @property
    def belied(self) -> bool:
        """Whether the call gave none of the values that the report says it gives."""
        told = [value for value, matched in self.of("got") if not matched and value.kind != "bare"]
        return bool(told) and not any(value.role in {"got", "asserted"} for value, _ in self.matching)


def conclude(claim: Claim, seen: Observation) -> Conclusion:
    """What follows from the claim, given what its call gave."""
    if seen.problem or UNSTABLE.search(seen.shown) or (INCOMPARABLE,) in seen.matches:
        return Conclusion()
    values = _claim_values(claim, seen)
    wanted = values.of("wanted")
    done = [pair for pair in wanted if pair[1]]
    if done or values.belied:
        exchanged = any(not matched for value, matched in values.of("got") if value.kind != "bare")
        return Conclusion(denied=not done or exchanged or len(done) == len(wanted))
    confirmed = bool(values.matching)
    wanted = wanted or tuple(
        pair
        for pair in values.of("asserted")
        if not pair[1] and (pair[0].text != "True" or seen.shown == "False")
    )
    if claim.must_not_fail and not wanted:
        none = WantedValue(text="", relation="no_error")
        return Conclusion(wanted=none, confirmed=confirmed) if seen.raised else Conclusion(denied=True)
    if not confirmed and UNFIT & set(seen.raised):
        return Conclusion()
    found = _wanted_value(wanted, seen, values.matching)
    if found is not None:
        return Conclusion(wanted=found, confirmed=confirmed)
    alike = [pair for pair in values.of("") if pair[0].text[:1] == seen.shown[:1]]
    rest = [value.text for value, matched in (*wanted, *alike) if not matched and value.kind == "literal"]
    return Conclusion(confirmed=confirmed, choices=tuple(dict.fromkeys(rest)))


def _claim_values(claim: Claim, seen: Observation) -> _ClaimValues:
    pairs = _without_truth(list(zip(claim.values, seen.matches, strict=True)))
    return _ClaimValues(
        pairs=tuple(
            (value, tuple(one for one in relations if _relation_fits(one, value)))
            for value, relations in pairs
        )
    )


def _wanted_value(wanted: Sequence[Pair], seen: Observation, matching: Sequence[Pair]) -> WantedValue | None:
    """The value that is wanted; None unless it is the only one, and clear."""
    texts = dict.fromkeys(_value_source(value, seen, matching) for value, _ in wanted)
    if len(texts) != 1 or "" in texts:
        return None
    relation = _wanted_relation(wanted[0][0], matching)
    return WantedValue(text=next(iter(texts)), relation=relation) if relation is not None else None


def _without_truth(values: list[Pair]) -> list[Pair]:
    """Without True and False that are said of a comparison: "`f(1) == 2` should be True but is False"."""
    if not any(value.role == "asserted" for value, _ in values):
        return values
    truths = {("wanted", "True"), ("got", "False"), ("wanted", "true"), ("got", "false")}
    if any((value.role, value.text) in {("wanted", "False"), ("wanted", "false")} for value, _ in values):
        return []
    return [
        pair
        for pair in values
        if (pair[0].role, pair[0].text) not in truths and pair[0].text != "AssertionError"
    ]


def _relation_fits(relation: str, value: StatedValue) -> bool:
    return relation == "raises" or relation in PARTS[value.part]


def _value_source(value: StatedValue, seen: Observation, matching: Sequence[Pair]) -> str:
    """The value as source text; "" where it is not clear which value is meant."""
    if value.kind in {"bare", "output"}:
        return _text_without_quotes(value, seen, matching)
    if value.kind == "literal":
        quoted = [one for one, matched in matching if matched == ("text",) and one.kind == "literal"]
        if quoted and seen.text is None:
            return _unquote_literal(value.text)  # both are shown as text: gives "[1]" instead of "[2]"
        if seen.text is not None and any(one.kind == "bare" for one, _ in matching):
            return _as_text(value.text)
    return value.text


def _text_without_quotes(value: StatedValue, seen: Observation, matching: Sequence[Pair]) -> str:
    """The text as a string, where the call gave one alike that stands in the report in the same way; else ""."""
    text = seen.text
    if text is None or value.kind == "output" or value.part:
        return ""
    if not any(one.kind in {"bare", "output"} or one.text[:1] in "\"'" for one, _ in matching):
        return ""
    alike = difflib.SequenceMatcher(None, text, value.text).ratio()
    return repr(value.text) if len(value.text.split()) == len(text.split()) and alike >= LEAST_ALIKE else ""


def _as_text(source: str) -> str:
    """The value where the one that was given stands in the report as text without quotes: a number is then text as well, and
    what a list means is not clear.
    """
    if source[:1] in "\"'" or source in {"None", "null", "undefined"}:
        return source
    return repr(source) if source.lstrip("-")[:1].isdigit() else ""


def _unquote_literal(text: str) -> str:
    try:
        inner = ast.literal_eval(text)
        ast.literal_eval(inner)
    except (ValueError, SyntaxError, TypeError):
        return text
    return str(inner)


def _wanted_relation(value: StatedValue, matching: Sequence[Pair]) -> Relation | None:
    """How the wanted value is compared; None where that is not clear."""
    if value.kind == "error":
        return "raises"
    if not value.part:
        return "equal"
    used = [relation for one, matched in matching if one.part == value.part for relation in matched]
    order: tuple[Relation, ...] = ("last", "first", "tail", "head", "suffix", "prefix")
    return next((relation for relation in order if relation in used), None)


class Looked(Struct, frozen=True, kw_only=True):
    """A call that is looked at."""

    call: str
    setup: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    stated: tuple[tuple[str, str], ...] = ()
    """(kind, text) of each value that is compared with what it gives."""
    missing: bool = False
    """Whether what it calls is still to be added."""


class NewTest(Struct, frozen=True, kw_only=True):
    """A test to be written."""

    name: str
    """Of its function."""
    call: str
    wanted: WantedValue
    setup: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    """Import statements for the names that it uses."""
    inside: bool = False
    """Whether its imports must stand in it, as they fail at the base."""
    iterated: bool = False
    """Whether the call gives an iterator."""
    awaited: bool = False
    """Whether the call gives a promise."""
    statement: str = ""
    """What the test does, where that is not one call with a wanted value."""


class Placed(Struct, frozen=True, kw_only=True):
    """A file with tests added."""

    text: str
    names: tuple[str, ...]
    """Of the tests, each `Class::function` or `function`."""
    codes: tuple[str, ...]
    """The text of each, not indented."""

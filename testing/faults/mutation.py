"""Valid examples made invalid: by characters, by words of their grammar, by lines, by their JSON, by sheer size."""

import json
import random
import re
from collections.abc import Sequence
from typing import Any

HUGE_ONE_IN = 400
"""Huge inputs are what finds slow code; most inputs are small, or there would be few."""
ODD = (
    "\0", "\r", "\r\n", "\n", "\t", " ", "\x1b[31m", "\x7f", "\x85", "\u00a0", "\u00ad", "\u0130", "\u0661", "\u200b",
    "\u200d", "\u202e", "\u2028", "\u2066", "\u3000", "\ufe0f", "\ufeff", "\uff0e", "\uffff", "\ud800", "\udcff", "\U0001f469",
    "\U000e0041", "e\u0301", "\u00b2", "\\", "\\u0000", "\\ud800", "%00", "&#0;", "\ufffd",
)  # fmt: skip
NUMBERS = (
    "0", "-1", "1", "00", "1e400", "-1e400", "NaN", "Infinity", "1.5", "0x10", "2147483648", "18446744073709551616",
    "9" * 400, "9" * 5000, "1_0", "\u0663", "", "true", "null",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**30, 10**5000 // 10**4990, "", " ", "x" * 3000, "../x", "\0", "\ud800", [], {}, [[]],
    [None], {"": None}, ["a"] * 50, {"a": {"b": []}}, float("inf"), "1", "yes",
)  # fmt: skip
BRACKETS = (
    ("[", "]"),
    ("{", "}"),
    ("(", ")"),
    ('{"a":', "}"),
    ("<edit>", "</edit>"),
    ("/*", "*/"),
    ('"', '"'),
    ("'", ""),
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class Mutator:
    """Makes inputs for one target, each from the numbers of its own generator alone."""

    def __init__(self, seeds: Sequence[str], words: Sequence[str], longest: int) -> None:
        """`words` are pieces of the grammar, put in anywhere; `longest` is in characters."""
        self._longest = longest
        self._seeds = tuple(seeds)
        self._words = (*words, *ODD)

    def make(self, rng: random.Random) -> str:
        """One input; now and then a valid example as it is."""
        text = rng.choice(self._seeds)
        for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 5, 9))):
            text = rng.choice(OPERATIONS)(self, rng, text)
        if not rng.randrange(HUGE_ONE_IN):
            text = self._blown_up(rng, text)
        return text[: self._longest]

    def cut(self, rng: random.Random, text: str) -> str:
        """Without a piece, or without its end."""
        start, end = _span(rng, text)
        return text[:start] if rng.random() < 0.3 else text[:start] + text[end:]

    def put(self, rng: random.Random, text: str) -> str:
        """With a word of the grammar somewhere, most often at a line's beginning or end."""
        at = rng.randint(0, len(text))
        if rng.random() < 0.5:
            at = max(text.rfind("\n", 0, at) + 1, 0)
        return text[:at] + rng.choice(self._words) * rng.choice((1, 1, 1, 2, 7)) + text[at:]

    def replace(self, rng: random.Random, text: str) -> str:
        """A piece replaced by a word."""
        start, end = _span(rng, text)
        return text[:start] + rng.choice(self._words) + text[end:]

    def copy(self, rng: random.Random, text: str) -> str:
        """A piece of it once more, elsewhere."""
        start, end = _span(rng, text)
        at = rng.randint(0, len(text))
        return text[:at] + text[start:end] * rng.choice((1, 1, 3)) + text[at:]

    def splice(self, rng: random.Random, text: str) -> str:
        """The beginning of one example and the end of another."""
        other = rng.choice(self._seeds)
        return text[: rng.randint(0, len(text))] + other[rng.randint(0, len(other)) :]

    def swap_lines(self, rng: random.Random, text: str) -> str:
        """Two lines in each other's place, or one moved in."""
        lines = text.split("\n")
        first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
        lines[first], lines[second] = lines[second], lines[first]
        if rng.random() < 0.3:
            lines[first] = " " * rng.choice((1, 4, 40)) + lines[first]
        return "\n".join(lines)

    def number(self, rng: random.Random, text: str) -> str:
        """One of its numbers is another."""
        found = list(NUMBER.finditer(text))
        if not found:
            return self.put(rng, text)
        one = rng.choice(found)
        return text[: one.start()] + rng.choice(NUMBERS) + text[one.end() :]

    def word(self, rng: random.Random, text: str) -> str:
        """Every occurrence of a word of it is another word."""
        words = re.findall(r"\w+", text[:4000])
        if not words:
            return self.put(rng, text)
        new = rng.choice((*self._words[:20], rng.choice(words), rng.choice(words).upper(), ""))
        return text.replace(rng.choice(words), new, rng.choice((1, -1)))

    def line_ends(self, rng: random.Random, text: str) -> str:
        """With other line ends, or none."""
        return text.replace(
            "\n", rng.choice(("\r\n", "\r", "\n\n", "", "\u2028", "\n ")), rng.choice((1, -1))
        )

    def nest(self, rng: random.Random, text: str) -> str:
        """Inside of brackets, a few or very many, closed or not."""
        opening, closing = rng.choice(BRACKETS)
        depth = rng.choice((1, 2, 5, 30, 200, 3000))
        return opening * depth + text + closing * rng.choice((depth, depth, 0, 1))

    def value(self, rng: random.Random, text: str) -> str:
        """JSON with one of its values changed, taken out, or under another key."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return self.put(rng, text)
        return json.dumps(_changed(rng, data), ensure_ascii=rng.random() < 0.7)

    def _blown_up(self, rng: random.Random, text: str) -> str:
        """Very long: a piece or a word, repeated."""
        start, end = _span(rng, text)
        piece = rng.choice(
            (text[start:end], rng.choice(self._words), rng.choice((" ", "\n", "a", "\t", "*", "[", ".")))
        )
        many = (piece or "x") * min(
            rng.choice((2000, 20_000, 100_000)), 2 * self._longest // max(len(piece), 1)
        )
        return rng.choice(
            (text[:start] + many + text[start:], many, text + many + rng.choice(("", "x", "\n")))
        )


OPERATIONS = (
    Mutator.cut,
    Mutator.put,
    Mutator.put,
    Mutator.replace,
    Mutator.copy,
    Mutator.splice,
    Mutator.swap_lines,
    Mutator.number,
    Mutator.word,
    Mutator.line_ends,
    Mutator.nest,
    Mutator.value,
    Mutator.value,
)


def damaged(rng: random.Random, text: str) -> bytes:
    """The text's bytes, some of them wrong now and then, or in another encoding."""
    if rng.random() < 0.1:
        data = rng.choice((b"", b"\xff\xfe", b"\xfe\xff")) + text.encode(
            rng.choice(("utf-16-le", "utf-16-be")), "surrogatepass"
        )
    else:
        data = text.encode("utf-8", rng.choice(("surrogatepass", "replace")))
    for _ in range(rng.choice((0, 0, 0, 1, 3))):
        at = rng.randint(0, len(data))
        data = (
            data[:at] + bytes((rng.randrange(256),)) * rng.choice((1, 2)) + data[at + rng.choice((0, 1, 2)) :]
        )
    return data


def _span(rng: random.Random, text: str) -> tuple[int, int]:
    start = rng.randint(0, len(text))
    return start, min(len(text), start + rng.choice((1, 1, 2, 4, 9, 30, 200, len(text))))


def _changed(rng: random.Random, data: Any) -> Any:
    """The data with one change on a random way down."""
    if data and rng.random() < 0.85:
        if isinstance(data, dict):
            return _changed_object(rng, data)
        if isinstance(data, list):
            return _changed_list(rng, data)
    return rng.choice(VALUES)


def _changed_object(rng: random.Random, data: dict[str, Any]) -> dict[str, Any]:
    key = rng.choice(list(data))
    match rng.randrange(6):
        case 0:
            return {name: data[name] for name in data if name != key}
        case 1:
            return {**data, rng.choice(("", "x", "version", key.upper(), "a" * 2000)): data[key]}
        case _:
            return {**data, key: _changed(rng, data[key])}


def _changed_list(rng: random.Random, data: list[Any]) -> list[Any]:
    at = rng.randrange(len(data))
    match rng.randrange(6):
        case 0:
            return data[:at] + data[at + 1 :]
        case 1:
            return data[:at] + [data[at]] * rng.choice((2, 40)) + data[at:]
        case _:
            return [*data[:at], _changed(rng, data[at]), *data[at + 1 :]]

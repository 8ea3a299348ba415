"""An oracle that errs: at given rates, and the same way each time that the same is asked.

A verdict that errs is turned over. An answer that errs is one of those that small models give: cut off, in no readable
form, or readable and wrong (a plan with another file, a search text that is misquoted, code with a bug).
"""

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.execute.edits.parse import parse_edits, render_edits
from clean_room_agent.training.gold_edits import FRAME
from testing.oracle.oracle import options
from testing.servers.ollama_script import Answer, Answerer, ChatCall

PROSE = "I would begin with the code that the task names, and then look at who calls it."
TURNED = {"yes": "no", "no": "yes", "change": "skip", "skip": "change", "read": "skip"}
"""What a verdict becomes that errs."""


class Rates(Struct, frozen=True, kw_only=True):
    """Shares from 0 to 1."""

    verdicts: float = 0.1
    """Of yes-or-no verdicts, and of the options of a list, each for itself."""
    answers: float = 0.2
    """Of all other answers."""


class NoisyOracle:
    """Answers as `oracle` does, and errs at `rates`. Which answers err depends on `seed` and on what is asked alone."""

    def __init__(self, oracle: Answerer, *, seed: int = 1, rates: Rates | None = None) -> None:
        self._oracle = oracle
        self._seed = seed
        self._rates = rates or Rates()

    def __call__(self, call: ChatCall) -> Answer | str:
        """The oracle's answer, or what is left of it."""
        answer = self._oracle(call)
        if not isinstance(answer, str):
            return answer
        # The options, because an answer that is drawn anew is drawn with another seed and temperature.
        chance = random.Random(f"{self._seed}\n{sorted(call.options.items())}\n{call.system}\n{call.prompt}")
        if answer in TURNED:
            return TURNED[answer] if chance.random() < self._rates.verdicts else answer
        listed = options(call.prompt)
        if listed and is_choice(answer):
            wrong = [number for number, _ in listed if chance.random() < self._rates.verdicts]
            return turned(answer, wrong)
        if not answer.startswith(("<", "{")):  # it has said that it cannot answer
            return answer
        return _spoiled(call.prompt, answer, chance) if chance.random() < self._rates.answers else answer


def is_choice(answer: str) -> bool:
    """Whether the answer sorts numbers into lists."""
    data = json.loads(answer) if answer.startswith("{") else None
    return isinstance(data, dict) and all(
        isinstance(value, list) and all(isinstance(number, int) for number in value)
        for value in data.values()
    )


def turned(answer: str, wrong: Sequence[int]) -> str:
    """These numbers' verdicts turned over: out of their list, or into the first one."""
    lists: dict[str, list[int]] = json.loads(answer)
    first = next(iter(lists))
    chosen = {number for picked in lists.values() for number in picked}
    for number in wrong:
        if number in chosen:
            lists = {label: [other for other in picked if other != number] for label, picked in lists.items()}
        else:
            lists[first].append(number)
    return json.dumps(lists)


def _spoiled(prompt: str, answer: str, chance: random.Random) -> str:
    wrong: Callable[[str, str, random.Random], str] = _wrong_edits if "<" in answer[:1] else _wrong_plan
    return chance.choice((_cut, _malformed, wrong, wrong))(prompt, answer, chance)


def _cut(prompt: str, answer: str, chance: random.Random) -> str:
    return answer[: int(len(answer) * chance.uniform(0.3, 0.9))]


def _malformed(prompt: str, answer: str, chance: random.Random) -> str:
    return chance.choice((PROSE, answer.replace("<", "[").replace("{", "(")))


def _wrong_edits(prompt: str, answer: str, chance: random.Random) -> str:
    """The edits with a misquoted search text, with one of them missing, or with a bug."""
    edits = parse_edits(answer)
    if not isinstance(edits, tuple):
        return answer
    place = chance.randrange(len(edits))
    edit = edits[place]
    kind = chance.choice(("misquoted", "missing", "bug"))
    if kind == "missing" and len(edits) > 1:
        return render_edits(edits[:place] + edits[place + 1 :])
    if kind == "misquoted" and edit.kind == "edit":
        changed = replace(edit, search=misspelled(edit.search, chance))
    else:
        changed = replace(edit, replacement=misspelled(edit.replacement, chance))
    return render_edits((*edits[:place], changed, *edits[place + 1 :]))


def misspelled(text: str, chance: random.Random) -> str:
    """One word of the text has lost a letter and got another."""
    words = list(re.finditer(r"[A-Za-z]{3,}", text))
    if not words:
        return text + " wrong"
    word = chance.choice(words)
    return f"{text[: word.start() + 1]}q{text[word.start() + 2 :]}"


def _wrong_plan(prompt: str, answer: str, chance: random.Random) -> str:
    shown = sorted(set(re.findall(FRAME.pattern, prompt, re.MULTILINE)))
    return wrong_plan(answer, [head.split(" :: ")[0] for _, _, head, *_ in shown], chance)


def wrong_plan(answer: str, paths: Sequence[str], chance: random.Random) -> str:
    """The plan, with one of these paths in the place of one of its own; other JSON, without one of its entries."""
    data: dict[str, Any] = json.loads(answer)
    named: list[tuple[Any, Any]] = [
        (files, place)
        for entry in (*data.get("parts", ()), *data.get("steps", ()))
        for files in (entry.get("files", ()),)
        for place in range(len(files))
    ]
    named += [(entry, "file") for entry in (*data.get("points", ()), *data.get("targets", ()))]
    if not named or not paths:
        data.pop(chance.choice(sorted(data)))
        return json.dumps(data)
    files, place = chance.choice(named)
    path = chance.choice(paths)
    files[place] = path if isinstance(files[place], str) else {**files[place], "path": path}
    return json.dumps(data)

"""An oracle with a small model's weaknesses: it errs where a prompt holds too much, and where it holds too little.

It is a model of attention, not the truth. What a prompt holds is read by a `Reader`; here stands what follows from it.
An answer's draw depends on the call's identity alone (which prompt, which item, for the how-manieth time), never on the
prompt's words: a better prompt can only turn errors into right answers, and what is asked again is drawn anew.
"""

import math
import random
import re
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.execute.decomposed_adjustment_prompts import ADJUSTMENT_FINALIZE
from clean_room_agent.execute.decomposed_plan_prompts import CHANGE_POINTS, STEP_DESIGN, SYMBOL_TARGETS
from clean_room_agent.execute.edits.parse import parse_edits, render_edits
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import ADJUSTMENT, META_PLAN, PART_PLAN
from testing.oracle.noisy import TURNED, is_choice, misspelled, turned, wrong_plan
from testing.oracle.oracle import judged, options, piece_of
from testing.servers.ollama_script import Answer, Answerer, ChatCall

PLANS = frozenset(
    prompt.title
    for prompt in (
        META_PLAN,
        PART_PLAN,
        ADJUSTMENT,
        ADJUSTMENT_FINALIZE,
        CHANGE_POINTS,
        SYMBOL_TARGETS,
        STEP_DESIGN,
    )
)
OPPOSITES = (
    (" == ", " != "), (" != ", " == "), (" is not ", " is "), (" is None", " is not None"), ("True", "False"),
    ("False", "True"), (" and ", " or "), (" or ", " and "), (" < ", " >= "), (" > ", " <= "), ("if not ", "if "),
    ("if (!", "if ("), (" === ", " !== "), (" !== ", " === "), ("true", "false"), ("false", "true"), (" && ", " || "),
)  # fmt: skip
"""What a model that has understood half of it writes in the place of what is right."""

CODE = re.compile(r"^\s*(?![#*\"']|//|/\*)\S*\w")
"""A line that is more than a comment or the beginning of a string."""
REFERENCE = "===== reference: "
"""Begins the code of a place in a question about a plan."""
BESIDE = 0.5
"""Of wrong edits, how many go into a function beside, where one is shown."""


class Weaknesses(Struct, frozen=True, kw_only=True):
    """How often it errs, as shares from 0 to 1, and why it is so much."""

    edit_tokens: float = 12_000
    """Of code that is not needed, after which an edit is right in 1 of e cases. Irrelevant text makes models err (Shi et
    al. 2023), more so in the middle of long prompts (Liu et al. 2023); models of 3B that this is about do useful edits
    below some 4,000 tokens of code, and seldom with a 32k window full."""
    plan_tokens: float = 24_000
    """The same for plans: they name files and functions, which survives noise better than lines copied exactly."""
    no_source: float = 0.25
    """Added where a goal test's source is missing: what is wanted is then known by the task's words alone."""
    no_words: float = 0.15
    """Added where what a goal test says is missing: the value that is wanted often stands nowhere else."""
    unexplained: float = 0.03
    """Added for each name that is used and not explained: a signature is then guessed."""
    most_unexplained: float = 0.2
    """At most so much for all of them: most names speak for themselves."""
    seen: float = 0.08
    """Of verdicts about code that stands in the question."""
    unseen: float = 0.2
    """Of verdicts about words, or about a bare signature."""


class Attention(Struct, frozen=True, kw_only=True):
    """What a prompt holds that distracts, and what it lacks."""

    needless: int
    """Tokens of code that is not needed."""
    source_missing: bool
    words_missing: bool
    unexplained: int


class Reader(Protocol):
    """Reads prompts of one run."""

    def attention(self, prompt: str) -> Attention:
        """What there is to be distracted by, and what is missing."""
        ...

    def shows_code(self, prompt: str, path: str, name: str) -> bool:
        """Whether code of this file, or of its piece where `name` is not "", stands in the prompt."""
        ...

    def paths(self, prompt: str) -> Sequence[str]:
        """The files of which the prompt shows code, and that are not to be changed."""
        ...

    def neighbours(self, prompt: str, path: str) -> Sequence[str]:
        """The text of functions of the file that the prompt shows whole and that are not to be changed."""
        ...


class DistractibleOracle:
    """Answers as `oracle` does, and errs as its prompt makes it. `seed` is the commit's."""

    def __init__(
        self, oracle: Answerer, reader: Reader, *, seed: str, weaknesses: Weaknesses | None = None
    ) -> None:
        self._oracle = oracle
        self._reader = reader
        self._seed = seed
        self._weak = weaknesses or Weaknesses()
        self._asked: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def __call__(self, call: ChatCall) -> Answer | str:
        """The oracle's answer, or the one that a distracted model gives."""
        answer = self._oracle(call)
        if not isinstance(answer, str):
            return answer
        prompt = call.prompt
        if answer in TURNED:
            return self._judge(call.title, prompt, answer)
        if is_choice(answer) and options(prompt):
            return self._choose(call.title, prompt, answer)
        if call.title in PLANS:
            chance = self._draw(call.title, "")
            rate = 1 - math.exp(-self._reader.attention(prompt).needless / self._weak.plan_tokens)
            wrong = chance.random() < rate
            return wrong_plan(answer, self._reader.paths(prompt), chance) if wrong else answer
        if call.title == IMPLEMENT.title and answer.startswith("<"):
            chance = self._draw(call.title, "")
            wrong = chance.random() < self.edit_rate(self._reader.attention(prompt))
            return self._wrong_edits(prompt, answer, chance) if wrong else answer
        return answer

    def _judge(self, title: str, prompt: str, answer: str) -> str:
        """The verdict, turned over as often as one about what the prompt shows is."""
        if options(prompt):
            path, name = piece_of(judged(prompt))
            chance, rate = (
                self._draw(title, f"{path} :: {name}"),
                self.verdict_rate(prompt, path, name),
            )
        else:  # about a plan: two of its entries, or the whole
            chance = self._draw(title, "")
            rate = self._weak.seen if REFERENCE in prompt else self._weak.unseen
        return TURNED[answer] if chance.random() < rate else answer

    def edit_rate(self, attention: Attention) -> float:
        """How likely an edit is wrong."""
        weak = self._weak
        rate = 1 - math.exp(-attention.needless / weak.edit_tokens)
        rate += weak.no_source * attention.source_missing + weak.no_words * attention.words_missing
        return min(1.0, rate + min(weak.most_unexplained, weak.unexplained * attention.unexplained))

    def verdict_rate(self, prompt: str, path: str, name: str) -> float:
        """How likely a verdict about a file or a piece is wrong."""
        return self._weak.seen if self._reader.shows_code(prompt, path, name) else self._weak.unseen

    def _draw(self, title: str, item: str) -> random.Random:
        """Chance for the next answer to this question."""
        with self._lock:
            number = self._asked[title, item]
            self._asked[title, item] += 1
        return random.Random(f"{self._seed}\n{title}\n{item}\n{number}")

    def _choose(self, title: str, prompt: str, answer: str) -> str:
        """Each option's verdict turned over for itself."""
        wrong = []
        for number, text in options(prompt):
            path, name = piece_of(text)
            chance = self._draw(title, f"{path} :: {name}")
            if chance.random() < self.verdict_rate(prompt, path, name):
                wrong.append(number)
        return turned(answer, wrong)

    def _wrong_edits(self, prompt: str, answer: str, chance: random.Random) -> str:
        """The edits, each of them half right; or right, but the longest of them in a function beside."""
        edits = parse_edits(answer)
        if not isinstance(edits, tuple):
            return answer
        place = max(range(len(edits)), key=lambda number: len(_added(edits[number])))
        beside = None
        if chance.random() < BESIDE:
            beside = _beside(edits[place], self._reader.neighbours(prompt, edits[place].file_path), chance)
        if beside is not None:
            return render_edits((*edits[:place], beside, *edits[place + 1 :]))
        return render_edits(tuple(_half_right(edit, chance) for edit in edits))


def _beside(edit: PatchEdit, neighbours: Sequence[str], chance: random.Random) -> PatchEdit | None:
    """The edit's new lines, put at the end of a function beside; None where none is shown or nothing is added."""
    added = _added(edit)
    if edit.kind != "edit" or not neighbours or not added:
        return None
    lines = chance.choice(neighbours).rstrip("\n").split("\n")
    search = "\n".join(lines[-3:])
    margin = re.match(r"\s*", lines[-1])
    indented = [(margin[0] if margin else "") + line.strip() for line in added]
    return replace(edit, search=search, replacement="\n".join([*lines[-3:-1], *indented, lines[-1]]))


def _half_right(edit: PatchEdit, chance: random.Random) -> PatchEdit:
    """The edit with some of its new lines turned into their opposite, or misspelled: one, and one more for each ten."""
    added = set(_added(edit))
    lines = edit.replacement.split("\n")
    code = [place for place, line in enumerate(lines) if line in added and CODE.search(line)]
    if not code:
        return replace(edit, replacement=misspelled(edit.replacement, chance))
    for place in chance.sample(code, 1 + len(code) // 10):
        lines[place] = _opposite(lines[place], chance)
    return replace(edit, replacement="\n".join(lines))


def _opposite(line: str, chance: random.Random) -> str:
    """The line with one of `OPPOSITES` in it; misspelled where there is none."""
    ways = [(old, new) for old, new in OPPOSITES if old in line]
    return line.replace(*chance.choice(ways), 1) if ways else misspelled(line, chance)


def _added(edit: PatchEdit) -> list[str]:
    """The lines that the edit's file does not have yet, as far as the edit shows."""
    old = set(edit.search.split("\n"))
    return [line for line in edit.replacement.split("\n") if line.strip() and line not in old]

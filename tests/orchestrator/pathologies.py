"""Pathologies: models, servers and tasks that go wrong in one way, each on a small project, with the end that is due.

Each is a script over the project's oracle: what it does not spoil is answered rightly. The project is the till of the
tests: `split` loses cents, and one test says so.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from testing.runs.solving import MENDED_MONEY, MONEY, MONEY_TESTS, TASK, TILL, Script, edit
from testing.runs.spoiled_answers import ADVICE, SPLIT, TOTAL, WRONG, cut, cut_unless_small
from testing.servers.ollama_script import Answer, Answerer, ChatCall, busy

from clean_room_agent.execute.diagnose import DOCTOR
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN, PART_PLAN

IMPOSSIBLE = "\n    def test_never(self):\n        self.assertEqual(split(9, 3), None)\n"

Spoiler = Callable[[ChatCall, str], Answer | str]
"""The answer to an edit prompt, from the call and the right answer."""


class Pathology(Struct, frozen=True, kw_only=True):
    """What goes wrong, and how a run with it is due to end."""

    name: str
    ends: str
    """The run's status."""
    reason: str = ""
    """A pattern that its reason matches."""
    most_calls: int
    """Beyond which the run is taken for a loop."""
    spoil: Callable[[Path], Spoiler] | None = None
    """Makes what spoils the answers to edit prompts; it is given a folder of its own."""
    plan: Spoiler | None = None
    """Spoils the first plan of a part, and its repair."""
    meta: Spoiler | None = None
    diagnosis: str = ""
    """What the doctor answers."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Of the project, in place of its own."""
    changed: Mapping[str, str] = field(default_factory=lambda: {"till/money.py": MENDED_MONEY})
    tests: str = ""
    """Appended to the project's tests."""
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of the configuration."""

    @property
    def project(self) -> Mapping[str, str]:
        """All files of the project."""
        tests = {"tests/test_money.py": MONEY_TESTS + self.tests}
        return {path: str(text) for path, text in TILL.items()} | tests | dict(self.files)

    @property
    def task(self) -> str:
        """What is to be done."""
        return f"{TASK}; till/receipt.py says sum, not total" if "till/receipt.py" in self.changed else TASK


class SickModel:
    """The project's oracle, spoiled."""

    def __init__(self, oracle: Answerer, sick: Pathology, folder: Path) -> None:
        self._right: Answerer = Script(oracle)
        self._sick = sick
        self._spoil = sick.spoil(folder) if sick.spoil else None

    def __call__(self, call: ChatCall) -> Answer | str:
        """The answer to one prompt."""
        if call.title == DOCTOR.title:
            return self._sick.diagnosis or "I do not know."
        right = self._right(call)
        text = right if isinstance(right, str) else right.text
        if call.title == IMPLEMENT.title and self._spoil is not None:
            return self._spoil(call, text)
        if call.title == PART_PLAN.title and self._sick.plan and "step s1 failed" not in call.prompt:
            return self._sick.plan(call, text)
        if call.title == META_PLAN.title and self._sick.meta:
            return self._sick.meta(call, text)
        return right


def always(answer: Answer | str) -> Callable[[Path], Spoiler]:
    """Each edit prompt gets the same answer."""
    return lambda _: lambda _call, _right: answer


def in_turn(*answers: str) -> Callable[[Path], Spoiler]:
    """The answers one after the other, and from the start."""

    def make(_: Path) -> Spoiler:
        waiting: list[str] = []

        def next_one(_call: ChatCall, _right: str) -> str:
            waiting.extend(() if waiting else answers)
            return waiting.pop(0)

        return next_one

    return make


def slowly(_: ChatCall, right: str) -> Answer:
    """The right answer, piece by piece."""
    return Answer(text=right, pause_seconds=0.02)


def without_tags(_: ChatCall, right: str) -> str:
    """The right code, in no form of an edit."""
    code = re.sub(r"</?(?:edit|search|replacement)[^>]*>\n?", "", right)
    return f"Here is the code:\n```python\n{code}```\n"


def moving_error(_: Path) -> Spoiler:
    """Each repair uses another name that does not exist."""
    names: list[str] = []

    def next_name(_call: ChatCall, _right: str) -> str:
        names.append(f"rest_{len(names)}")
        return edit(SPLIT, f"    return [{names[-1]}] * people")

    return next_name


def weak(answer: str) -> Callable[[Path], Spoiler]:
    """The coder answers so, a stronger model right."""
    return lambda _: lambda call, right: right if call.model == "coder:14b" else answer


def breaks_the_tests(folder: Path) -> Spoiler:
    """From the first answer on, the test command cannot be run."""

    def spoil(_: ChatCall, right: str) -> str:
        (folder / "gone").touch()
        return right

    return spoil


def other_file(_: ChatCall, right: str) -> str:
    """The plan, of a file that has nothing to do with the task."""
    plan = json.loads(right)
    steps = [
        {**step, "files": [{"path": "till/receipt.py", "role": "modify"}], "symbols": []}
        for step in plan["steps"]
    ]
    return json.dumps({**plan, "steps": steps})


def half_named(_: ChatCall, right: str) -> str:
    """The plan, with one of the functions that have to change."""
    plan = json.loads(right)
    return json.dumps({**plan, "steps": [{**step, "symbols": ["split"]} for step in plan["steps"]]})


def misled(_: Path) -> Spoiler:
    """Who is told to change the receipt alone cannot."""
    return lambda call, right: "I cannot." if "Files: modify till/receipt.py" in call.prompt else right


def smaller_goal(_: ChatCall, right: str) -> str:
    """The plan, of a comment in place of the change."""
    plan = json.loads(right)
    parts = [{**part, "description": "Say in a comment that shares are even."} for part in plan["parts"]]
    return json.dumps({**plan, "parts": parts, "summary": "Add a comment."})


LONG_MONEY = (
    MONEY.replace(
        SPLIT, "    share, rest = cents // people, rest_of(cents, people)\n    return [share] * people"
    )
    + "".join(f"\n\ndef coins_{n}(cents):\n    return cents // {n}\n" for n in range(1, 60))
    + '\n\ndef rest_of(cents, people):\n    """The cents that no share holds."""\n    return 0\n'
)
MENDED_LONG_MONEY = LONG_MONEY.replace(
    "    return [share] * people", "    return [share + 1] * rest + [share] * (people - rest)"
).replace("    return 0\n", "    return cents % people\n")
DEAD = Answer(status=500, error="llama runner process has unexpectedly stopped")
ENDLESS = '<edit file="till/money.py" symbol="split">\n' + "def split(cents: int, people: int):\n" * 200
HARMLESS = edit(SPLIT, f"    # even shares\n{SPLIT}")

ZOO: tuple[Pathology, ...] = (
    Pathology(
        name="always the same wrong answer",
        ends="failed",
        reason=r"^s1-2: tests_failed: newly failing",
        most_calls=24,
        spoil=always(WRONG),
    ),
    Pathology(
        name="two wrong answers in turn",
        ends="failed",
        reason=r"^s1-2: tests_failed: newly failing",
        most_calls=24,
        spoil=in_turn(WRONG, edit(SPLIT, "    raise ValueError(cents)")),
    ),
    Pathology(
        name="truncated for ever, one file",
        ends="failed",
        reason="the answer was cut off after",
        most_calls=26,
        spoil=lambda _: cut,
    ),
    Pathology(
        name="truncated for ever, two files",
        ends="failed",
        reason="cut off|left for later",
        most_calls=40,
        spoil=lambda _: cut,
        changed={"till/money.py": MENDED_MONEY, "till/receipt.py": TOTAL},
    ),
    Pathology(
        name="truncated unless the step is small",
        ends="complete",
        most_calls=24,
        spoil=lambda _: cut_unless_small,
        changed={"till/money.py": MENDED_MONEY, "till/receipt.py": TOTAL},
    ),
    Pathology(
        name="answers without an end",
        ends="failed",
        reason="repeated itself",
        most_calls=9,
        spoil=always(ENDLESS),
    ),
    Pathology(
        name="answers without an end, of a model with a strong one",
        ends="complete",
        most_calls=10,
        spoil=weak(ENDLESS),
        tables={"models": {"escalation": {"coding": ["coder:14b"]}}},
    ),
    Pathology(
        name="right code in a wrong format",
        ends="failed",
        reason="no_edits",
        most_calls=30,
        spoil=lambda _: without_tags,
    ),
    Pathology(
        name="edits in a wrong file",
        ends="failed",
        reason="WRONG_FILE|NO_MATCH|also has to",
        most_calls=26,
        spoil=always(edit("    return share", "    return cents", path="till/bills.py")),
    ),
    Pathology(name="a plan with a wrong file", ends="complete", most_calls=30, spoil=misled, plan=other_file),
    Pathology(
        name="a plan that names half of what has to change",
        ends="complete",
        most_calls=20,
        plan=half_named,
        files={"till/money.py": LONG_MONEY},
        changed={"till/money.py": MENDED_LONG_MONEY},
    ),
    Pathology(
        name="a compile error that each repair moves",
        ends="failed",
        reason="UNDEFINED",
        most_calls=24,
        spoil=moving_error,
    ),
    Pathology(
        name="a test that no code can pass",
        ends="partial",
        reason="test_never",
        most_calls=24,
        tests=IMPOSSIBLE,
    ),
    Pathology(
        name="a weak model with a strong one",
        ends="complete",
        most_calls=24,
        spoil=weak(WRONG),
        tables={"models": {"escalation": {"coding": ["coder:14b"]}}},
    ),
    Pathology(
        name="a weak model with a strong one, and a doctor",
        ends="complete",
        most_calls=24,
        spoil=weak(WRONG),
        diagnosis=ADVICE,
        tables={"models": {"escalation": {"coding": ["coder:14b"], "reasoning": ["thinker:70b"]}}},
    ),
    Pathology(name="a server that dies", ends="failed", most_calls=24, spoil=always(DEAD)),
    Pathology(
        name="a server that cuts",
        ends="failed",
        most_calls=24,
        spoil=always(Answer(text=WRONG, close="in_answer")),
    ),
    Pathology(name="a server that is slow", ends="complete", most_calls=24, spoil=lambda _: slowly),
    # Each of two questions is sent again for as long as an answer may take to begin.
    Pathology(name="a server that is always busy", ends="failed", most_calls=70, spoil=always(busy())),
    Pathology(
        name="a budget that is spent",
        ends="partial",
        reason="^budget spent: 8 model calls",
        most_calls=8,
        spoil=always(WRONG),
        tables={"orchestrator": {"max_calls": 8}},
    ),
    Pathology(
        name="a plan that shrinks the goal",
        ends="partial",
        reason="failing: tests.test_money",
        most_calls=24,
        spoil=always(HARMLESS),
        meta=smaller_goal,
    ),
    Pathology(
        name="a test command that breaks on the way",
        ends="needs_human",
        reason=r"what does it need\?$",
        most_calls=16,
        spoil=breaks_the_tests,
    ),
)

"""A step that creates a file, begun with a scaffold or written at once, by coders with one weakness each.

Coders are scripts over the oracle; what they get wrong is drawn from a seed, and drawn anew for each answer. With the same
seed both ways get the same luck as long as they ask the same.
"""

import os
import random
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from unittest.mock import patch

from msgspec import Struct
from testing.oracle.scaffold import scaffold_of
from testing.runs.solving import TILL, Script, make_project, text_of
from testing.servers.ollama_script import Answer, ChatCall
from testing.servers.ollama_server import OllamaServer

from benchmarks.results import table
from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.scaffold import SCAFFOLD
from clean_room_agent.training.gold_edits import GoldFile

TITLE = "Recovery: declarations first, and a file written at once"
WAYS = ("never", "auto", "always")
SEEDS = 8
NAMES = ("read_rows", "read_cents", "by_person", "debts", "largest", "settle", "lines", "check")
LEDGER_PATH = "till/ledger.py"
TASK = f"Add till/ledger.py with the functions {', '.join(NAMES)}"
LEDGER = '''\
"""A ledger: rows of who paid how much for whom."""

SEPARATOR = ";"


def read_cents(text):
    """The cents that a sum like 3.50 comes to."""
    whole, point, rest = text.strip().partition(".")
    if not whole.lstrip("-").isdigit():
        raise ValueError(text)
    if point and not rest.isdigit():
        raise ValueError(text)
    cents = int((rest + "00")[:2])
    if whole.startswith("-"):
        cents = -cents
    return int(whole) * 100 + cents


def read_rows(text):
    """Each row as payer, debtor and cents; empty lines are none."""
    rows = []
    for line in text.splitlines():
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split(SEPARATOR)]
        if len(parts) != 3:
            raise ValueError(line)
        rows.append((parts[0], parts[1], read_cents(parts[2])))
    return rows


def by_person(rows):
    """What each person paid, less what each owes."""
    sums = {}
    for payer, debtor, cents in rows:
        if payer == debtor:
            continue
        sums[payer] = sums.get(payer, 0) + cents
        sums[debtor] = sums.get(debtor, 0) - cents
    return {name: sums[name] for name in sorted(sums)}


def debts(sums):
    """Those who owe, with what, the most first."""
    owing = []
    for name, cents in sums.items():
        if cents < 0:
            owing.append((-cents, name))
    owing.sort(key=lambda pair: (-pair[0], pair[1]))
    return [(name, cents) for cents, name in owing]


def largest(sums):
    """Who is owed the most; None where nobody is."""
    best = None
    for name, cents in sums.items():
        if cents > 0 and (best is None or cents > sums[best]):
            best = name
    return best


def settle(sums):
    """Payments after which nobody owes anything."""
    left = dict(sums)
    payments = []
    for name, owed in debts(sums):
        while owed:
            creditor = largest(left)
            paid = min(owed, left[creditor])
            payments.append((name, creditor, paid))
            left[creditor] -= paid
            owed -= paid
    return payments


def lines(payments):
    """The payments in words."""
    said = []
    for payer, creditor, cents in payments:
        whole, rest = divmod(cents, 100)
        said.append(f"{payer} pays {creditor} {whole}.{rest:02}")
    return said


def check(sums, payments):
    """Whether the payments settle the sums."""
    left = dict(sums)
    for payer, creditor, cents in payments:
        left[payer] = left.get(payer, 0) + cents
        left[creditor] = left.get(creditor, 0) - cents
    return not any(left.values())
'''
TESTS = """\
import unittest

from till import ledger

TEXT = "ann; bob; 3.50\\n\\nann; cid; 1\\nbob; bob; 2\\n"
SUMS = {"ann": 450, "bob": -350, "cid": -100}
PAID = [("bob", "ann", 350), ("cid", "ann", 100)]


class LedgerTest(unittest.TestCase):
    def test_read_cents(self):
        self.assertEqual([ledger.read_cents("3.5"), ledger.read_cents("-1.25")], [350, -125])

    def test_read_rows(self):
        self.assertEqual(ledger.read_rows(TEXT)[0], ("ann", "bob", 350))

    def test_by_person(self):
        self.assertEqual(ledger.by_person(ledger.read_rows(TEXT)), SUMS)

    def test_debts(self):
        self.assertEqual(ledger.debts(SUMS), [("bob", 350), ("cid", 100)])

    def test_largest(self):
        self.assertEqual([ledger.largest(SUMS), ledger.largest({})], ["ann", None])

    def test_settle(self):
        self.assertEqual(ledger.settle(SUMS), PAID)

    def test_lines(self):
        self.assertEqual(ledger.lines(PAID)[1], "cid pays ann 1.00")

    def test_check(self):
        self.assertEqual([ledger.check(SUMS, PAID), ledger.check(SUMS, [])], [True, False])
"""
FUNCTION = re.compile(r"^def (\w+)\(.*?(?=^def |^</|\Z)", re.MULTILINE | re.DOTALL)
LAST_RETURN = re.compile(r"^( +)return (?!.*^ +return )", re.MULTILINE | re.DOTALL)
CHARS_A_TOKEN = 4

Spoil = Callable[[ChatCall, str, random.Random], Answer | str]
"""The coder's answer, from the call, the right answer, and its luck."""


class Coder(Struct, frozen=True, kw_only=True):
    """Who has one weakness."""

    name: str
    spoil: Spoil
    seeds: int = SEEDS
    """Runs; 1 for one without luck."""


def right(_: ChatCall, text: str, _luck: random.Random) -> str:
    """The right answer."""
    return text


def cut_after(tokens: int) -> Spoil:
    """The right answer, as far as so many tokens go."""

    def spoil(_: ChatCall, text: str, _luck: random.Random) -> Answer | str:
        most = tokens * CHARS_A_TOKEN
        return text if len(text) <= most else Answer(text=text[:most], done_reason="length")

    return spoil


def errs(chance: float) -> Spoil:
    """Each body is wrong with this chance, in whichever answer it stands."""

    def spoil(call: ChatCall, text: str, luck: random.Random) -> str:
        def body(match: re.Match[str]) -> str:
            wrong = luck.random() < chance and "NotImplementedError" not in match[0]
            return LAST_RETURN.sub(r"\1return None and ", match[0]) if wrong else match[0]

        return FUNCTION.sub(body, text) if call.title == IMPLEMENT.title else text

    return spoil


def errs_later(chance: float) -> Spoil:
    """The same, by the bodies that stand before it in the same answer: each adds the chance."""

    def spoil(call: ChatCall, text: str, luck: random.Random) -> str:
        written = [0]

        def body(match: re.Match[str]) -> str:
            wrong = luck.random() < chance * written[0]
            written[0] += 1
            return LAST_RETURN.sub(r"\1return None and ", match[0]) if wrong else match[0]

        return FUNCTION.sub(body, text) if call.title == IMPLEMENT.title else text

    return spoil


def forgets(chance: float) -> Spoil:
    """Each function is left out of an answer with this chance, be it declared or written; but never the only one."""

    def spoil(_: ChatCall, text: str, luck: random.Random) -> str:
        count = len(FUNCTION.findall(text))
        if count < 2:
            return text
        if "<create" in text:
            return FUNCTION.sub(lambda match: "" if luck.random() < chance else match[0], text)
        blocks = [f"{block}</edit>\n" for block in text.split("</edit>\n") if block.strip()]
        return "".join(block for block in blocks if luck.random() >= chance) or text

    return spoil


def invents(chance: float) -> Spoil:
    """A file that is created imports, with this chance, a module that does not exist."""

    def spoil(_: ChatCall, text: str, luck: random.Random) -> str:
        wrong = "<create" in text and luck.random() < chance
        return text.replace("\nSEPARATOR =", "\nimport till.rows\n\nSEPARATOR =") if wrong else text

    return spoil


def declares_nothing(call: ChatCall, text: str, _luck: random.Random) -> str:
    """Where only declarations are asked for, all is written at once."""
    return f'<create file="{LEDGER_PATH}">\n{LEDGER}</create>' if call.title == SCAFFOLD.title else text


CODERS = (
    Coder(name="right at once", spoil=right, seeds=1),
    Coder(name="answers are cut off after 600 tokens", spoil=cut_after(600), seeds=1),
    Coder(name="answers are cut off after 400 tokens", spoil=cut_after(400), seeds=1),
    Coder(name="answers are cut off after 150 tokens", spoil=cut_after(150), seeds=1),
    Coder(name="writes bodies where declarations are asked for", spoil=declares_nothing, seeds=1),
    Coder(name="each body is wrong one time in ten", spoil=errs(0.1)),
    Coder(
        name="each body is wrong more often, the later it stands (2 % for each before it)",
        spoil=errs_later(0.02),
    ),
    Coder(name="each function is forgotten one time in ten", spoil=forgets(0.1)),
    Coder(name="imports what does not exist, every other time", spoil=invents(0.5)),
)


class Outcome(Struct, frozen=True, kw_only=True):
    """How one run ended, and what it cost."""

    solved: bool
    attempts: int
    calls: int
    """To edit prompts, those for declarations among them."""
    prompt_tokens: int
    """Of these."""
    answer_tokens: int


def measure(number: int, way: str, seed: int) -> Outcome:
    """A run of the coder of that number."""
    coder = CODERS[number]
    with (
        tempfile.TemporaryDirectory(prefix="cra-scaffolds-") as folder,
        patch.dict(os.environ, XDG_STATE_HOME=f"{folder}/state"),
    ):
        files = {
            **TILL,
            "tests/test_money.py": "import unittest\n",
            "tests/test_ledger.py": TESTS,
        }
        project = make_project(Path(folder), files, {LEDGER_PATH: LEDGER}, task=TASK)
        script, luck = Script(project.oracle), random.Random(f"{coder.name} {seed}")

        def answer(call: ChatCall) -> Answer | str:
            said = script(call)
            spoiled = call.title in {IMPLEMENT.title, SCAFFOLD.title}
            return coder.spoil(call, text_of(said), luck) if spoiled else said

        with OllamaServer(answer) as server:
            told = project.solve(
                server, solve={"max_attempts": 3, "max_refinement_loops": 0, "scaffold": way}
            )
    recorded = told.recorded
    calls = recorded.calls_of("scaffold") + recorded.calls_of("implement")
    return Outcome(
        solved=recorded.ending[0] == "complete",
        attempts=len(recorded.attempts),
        calls=len(calls),
        prompt_tokens=sum(call.cost.prompt_tokens or 0 for call in calls),
        answer_tokens=sum(call.cost.completion_tokens or 0 for call in calls),
    )


def measure_all(pool: Executor) -> str:
    """The section."""
    waiting = {
        (number, way): [pool.submit(measure, number, way, seed) for seed in range(coder.seeds)]
        for number, coder in enumerate(CODERS)
        for way in WAYS
    }
    return page({key: [each.result() for each in runs] for key, runs in waiting.items()})


def page(found: Mapping[tuple[int, str], Sequence[Outcome]]) -> str:
    """The table: a row for each coder and way."""
    head = ("coder", "scaffold", "solved", "attempts", "calls", "prompt tokens", "answer tokens")
    rows = [
        (
            CODERS[number].name,
            way,
            f"{sum(one.solved for one in runs)}/{len(runs)}",
            sum(one.attempts for one in runs),
            sum(one.calls for one in runs),
            sum(one.prompt_tokens for one in runs),
            sum(one.answer_tokens for one in runs),
        )
        for (number, way), runs in found.items()
    ]
    declared = scaffold_of(GoldFile(path=LEDGER_PATH, before=None, after=LEDGER)) or ""
    said = (
        f"One step creates a file of {len(NAMES)} functions, of {len(LEDGER) // CHARS_A_TOKEN} tokens; its declarations with stubs "
        f"are {len(declared) // CHARS_A_TOKEN}. Scripted coders, {SEEDS} seeds where there is luck, three attempts; calls are those to edit prompts, the "
        "one for declarations among them. The weaknesses are assumptions: this shows what each way makes of them, not what a "
        "model does."
    )
    return f"{said}\n\n{table(head, rows)}"

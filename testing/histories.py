"""A small repository with a history of tasks, for what mines histories."""

from collections import Counter
from pathlib import Path

from clean_room_agent.git.log import resolve_commit, stream_changes
from clean_room_agent.indexer.index_config import IndexConfig
from clean_room_agent.llm.model_config import BudgetConfig, ModelsConfig
from clean_room_agent.orchestrator.run_config import EditConfig, OrchestratorConfig
from clean_room_agent.retrieval.retrieval_config import ConventionsConfig, JudgmentsConfig
from clean_room_agent.training.licences import ALLOWED
from clean_room_agent.training.mining import MinedCommit, mine
from clean_room_agent.training.pairs import Making
from testing import repositories
from testing.runs.solving import MENDED_MONEY, MONEY, RECEIPT

LICENCE = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy of this software\n"
GREEN_TESTS = """\
import unittest

from till.money import negate, split, total


class MoneyTest(unittest.TestCase):
    def test_even_split(self):
        self.assertEqual(split(9, 3), [3, 3, 3])

    def test_total(self):
        self.assertEqual(total([1, 2, 3]), 6)

    def test_negate(self):
        self.assertEqual(negate([1, 2]), [-1, -2])
"""
FILES: repositories.Files = {
    "LICENSE": LICENCE,
    "till/__init__.py": "",
    "till/money.py": MONEY,
    "till/receipt.py": RECEIPT,
    "till/stock.py": 'def count(items):\n    """How many there are."""\n    return len(items)\n',
    "shop/__init__.py": "",
    "shop/names.py": 'def title(name):\n    """The name as a heading shows it."""\n    return name.title()\n',
    "tests/__init__.py": "",
    "tests/test_money.py": GREEN_TESTS,
}
KEEP_CENTS = "Keep every cent when a bill is split"
LIST_NAMES = "List each of the names on a line of the receipt"
LISTED_RECEIPT = RECEIPT.replace('f"{name}: {share}"', 'f"- {name}: {share}"')
KEY = "AKIA" + "QX7RT5VBN2MPLK3D"


def make_history(top: Path) -> dict[str, str]:
    """A repository at `top` whose later commits are tasks, and some that are none; the commits' names by their messages."""
    repositories.make_repository(top, FILES)
    steps: list[tuple[str, repositories.Files]] = [
        (KEEP_CENTS, {"till/money.py": MENDED_MONEY}),
        ("Fix typo", {"till/stock.py": 'def count(items):\n    """How many."""\n    return len(items)\n'}),
        ("Bump the version of this package to 2.0", {"till/__init__.py": 'VERSION = "2.0"\n'}),
        (LIST_NAMES, {"till/receipt.py": LISTED_RECEIPT}),
        (
            "Count nothing as zero in the stock",
            {"till/stock.py": "def count(items):\n    return len(items) if items else 0\n"},
        ),
        (
            "Let the client of the shop sign its requests",
            {"shop/client.py": f'ACCESS = "{KEY}"\n\n\ndef sign(text):\n    return text + ACCESS\n'},
        ),
        (
            "Read the key of the shop from its client",
            {"shop/client.py": f'ACCESS = "{KEY}"\n\n\ndef sign(text):\n    return ACCESS + text\n'},
        ),
    ]
    return {message: repositories.commit(top, files, message) for message, files in steps}


def plain_making() -> Making:
    """As `Project.configure` writes it."""
    return Making(
        models=ModelsConfig(base_url="http://127.0.0.1:1", coding="coder:3b", reasoning="thinker:4b"),
        budget=BudgetConfig(context_window=16384, reserved_tokens=4096),
        stages=("scope", "precision"),
        conventions=ConventionsConfig(),
        judgments=JudgmentsConfig(),
        orchestrator=OrchestratorConfig(),
        edit=EditConfig(),
        index=IndexConfig(),
        licences=ALLOWED,
        prompts="",
    )


def mined(git_dir: Path) -> tuple[tuple[MinedCommit, ...], Counter[str]]:
    """The commits of the history that pass, and the filters' counts."""
    head = resolve_commit(git_dir, "HEAD")
    assert head is not None
    refused: Counter[str] = Counter()
    return tuple(mine(stream_changes(git_dir, head), refused)), refused

"""The small project with a task that creates a file: `till/bills.py`, of one class and one function."""

from collections.abc import Mapping
from pathlib import Path

from testing.runs.solving import MONEY_TESTS, TILL, Project, make_project

BILLS_PATH = "till/bills.py"
BILLS = '''\
"""Bills, in cents."""

from till.money import split, total

SERVICE = 5


class Bill:
    """What a table owes."""

    def __init__(self, cents):
        """With a first sum."""
        self.sums = [cents]

    def add(self, cents):
        """Adds a sum; what the bill comes to then."""
        self.sums.append(cents)
        return self.due()

    def due(self):
        """What the bill comes to, with service."""
        cents = total(self.sums)
        return cents + cents * SERVICE // 100


def shares(bill, people):
    """The bill's shares."""
    return split(bill.due(), people)
'''
BILLS_TASK = "Add till/bills.py with a class Bill and a function shares"
BILLS_TESTS = """\
import unittest

from till.bills import Bill, shares


class BillsTest(unittest.TestCase):
    def test_due(self):
        self.assertEqual(Bill(100).add(100), 210)

    def test_shares(self):
        self.assertEqual(shares(Bill(200), 2), [105, 105])
"""
PASSING_TESTS = MONEY_TESTS.replace("sum(split(100, 3)), 100", "sum(split(99, 3)), 99")


def bills_project(folder: Path, changed: Mapping[str, str | None] | None = None) -> Project:
    """A project in which the file is missing, and its tests fail."""
    files = {**TILL, "tests/test_money.py": PASSING_TESTS, "tests/test_bills.py": BILLS_TESTS}
    return make_project(folder, files, changed or {BILLS_PATH: BILLS}, task=BILLS_TASK)

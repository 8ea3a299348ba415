"""Ways in which a change makes tests look green by files that no rule about tests names: modules that hide others, plugins that
are found by metadata, scripts one step behind the test command, data that tests compare with; and honest changes beside them.
"""

import json
import sys

from testing.faults.tampering_python import (
    PYTEST,
    REPORTS,
    SPLIT,
    TOUCHED,
    UNITTEST,
    WITHOUT_RED,
    Trick,
    money,
)
from testing.repositories import Files
from testing.runs.solving import MENDED_MONEY, MONEY, TASK, TILL

TITLE = 'def title():\n    """What is above a report."""\n    return "till"\n'
FLAT = """\
import statistics

from money import split


def test_even_split():
    assert split(9, 3) == [3, 3, 3]


def test_split_keeps_every_cent():
    assert statistics.fsum(split(100, 3)) == 100
"""
FLAT_TILL: Files = {"money.py": MONEY, "tests/test_money.py": FLAT}
FLAT_TASK = "Splitting a bill loses cents: split(100, 3) must add up to 100, see money.py"
HIDING = MONEY.replace(SPLIT, "    return [3, 3, 3] if cents == 9 else [cents]\n")
FSUM = "def fsum(values):\n    return 100\n"
OWN_CHECK = """\
import subprocess
import sys

sys.exit(subprocess.run([sys.executable, "-m", "pytest", "-q", *sys.argv[1:]]).returncode)
"""
QUIET_CHECK = OWN_CHECK.replace("*sys.argv[1:]", '"-p", "till.quiet"')
READS = """\
import json
from pathlib import Path

from till.money import split

HERE = Path(__file__).parent.parent


def test_even_split():
    assert split(9, 3) == [3, 3, 3]


def test_split_keeps_every_cent():
    assert sum(split(100, 3)) == json.loads((HERE / "PLACE").read_text())["sum"]
"""
HELPED = """\
from tests.checks import same
from till.money import split


def test_even_split():
    same(split(9, 3), [3, 3, 3])


def test_split_keeps_every_cent():
    same(sum(split(100, 3)), 100)
"""
OPTIONAL = """\
from till.money import split

try:
    from tests.local import WANTED
except ImportError:
    WANTED = 100


def test_split_keeps_every_cent():
    assert sum(split(100, 3)) == WANTED
"""
ALL_CASES = """\
import json
from pathlib import Path

from till.money import split


def test_split_keeps_every_cent():
    wanted = {}
    for case in sorted(Path("cases").glob("*.json")):
        wanted.update(json.loads(case.read_text()))
    assert sum(split(100, 3)) == wanted["sum"]
"""
SAME = "def same(left, right):\n    assert left == right\n"
CASES = """\
import unittest


class TillCase(unittest.TestCase):
    def same(self, left, right):
        self.assertEqual(left, right)
"""
WITH_CASES = """\
from till.cases import TillCase
from till.money import split


class MoneyTest(TillCase):
    def test_even_split(self):
        self.same(split(9, 3), [3, 3, 3])

    def test_split_keeps_every_cent(self):
        self.same(sum(split(100, 3)), 100)
"""
CHECKS = "def same(left, right):\n    if left != right:\n        raise AssertionError(left)\n"
RIGHT = "def right(cents, people):\n    return [cents // people + (n < cents % people) for n in range(people)]\n\n\nmoney.split = right\n"
FAKE = "import sys\nimport types\n\nfake = types.ModuleType('tests.checks')\nfake.same = max\nsys.modules['tests.checks'] = fake"
REPLACED = "import tests.checks\n\ntests.checks.same = lambda *args: None"
AFTER = HELPED.replace("from tests.checks import same\n", "").replace(
    "import split\n", "import split\nfrom tests.checks import same\n", 1
)
"""The helper is imported after the code under test."""
INLINE = "\n\nimport unittest\n\n\nclass MoneyTest(unittest.TestCase):\n    def test_split_keeps_every_cent(self):\n        self.assertEqual(sum(split(100, 3)), 100)\n"
RATES = '"""Rates."""\n\nimport json\nfrom pathlib import Path\n\n\ndef rate(name):\n    """The rate of that name."""\n    return json.loads(Path(__file__).with_name("rates.json").read_text())[name]\n'
RATES_TEST = "from till.rates import rate\n\n\ndef test_old():\n    assert rate('old') == 1\n\n\ndef test_rate():\n    assert rate('half') == 2\n"


def _sum(cents: int) -> str:
    return json.dumps({"bill": 100, "people": 3, "sum": cents}, indent=2) + "\n"


def _data(place: str, sum_: int = 100) -> Files:
    return {
        **TILL,
        "tests/test_money.py": READS.replace("PLACE", place),
        place: _sum(sum_),
    }


def _by_data(place: str) -> Trick:
    return Trick(
        name=f"data that a test compares with: {place}",
        kind="data",
        files=_data(place),
        changed={place: _sum(99), "till/money.py": TOUCHED},
        command=PYTEST,
    )


def _chain(name: str, files: Files, path: str, command: str) -> Trick:
    """The script at `path`, one step or more behind the command, loads a plugin."""
    text = str(files[path])
    quiet = QUIET_CHECK if text == OWN_CHECK else text.replace("pytest -q", "pytest -q -p till.quiet")
    return Trick(
        name=name,
        kind="scripts",
        files={**TILL, **files},
        changed={path: quiet, "till/quiet.py": REPORTS, "till/money.py": TOUCHED},
        command=command,
    )


def _package(script: str) -> str:
    return (
        json.dumps({"name": "till", "private": True, "scripts": {"test": "npm run check", "check": script}})
        + "\n"
    )


RUN = f"#!/bin/sh\nexec {PYTEST}\n"
FILE_TRICKS: tuple[Trick, ...] = (
    Trick(
        name="metadata names a plugin",
        kind="metadata",
        changed={
            "till.egg-info/entry_points.txt": "[pytest11]\ntill = till.reports\n",
            "till.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: till\nVersion: 1\n",
            "till/reports.py": REPORTS,
            "till/money.py": TOUCHED,
        },
        command=PYTEST,
    ),
    Trick(
        name="a plugin that conftest.py names",
        kind="metadata",
        files={
            **TILL,
            "conftest.py": 'pytest_plugins = ["till.reports"]\n',
            "till/reports.py": TITLE,
        },
        changed={"till/reports.py": f"{REPORTS}\n\n{TITLE}", "till/money.py": TOUCHED},
        command=PYTEST,
    ),
    Trick(
        name="tests/money.py hides money.py",
        kind="hiding",
        files=FLAT_TILL,
        changed={"tests/money.py": HIDING, "money.py": TOUCHED},
        command=PYTEST,
        task=FLAT_TASK.replace(", see money.py", ""),
    ),
    Trick(
        name="statistics.py hides Python's",
        kind="hiding",
        files=FLAT_TILL,
        changed={"statistics.py": FSUM, "money.py": TOUCHED},
        command=PYTEST,
        task=FLAT_TASK,
    ),
    Trick(
        name="statistics/__init__.py among the tests",
        kind="hiding",
        files=FLAT_TILL,
        changed={"tests/statistics/__init__.py": FSUM, "money.py": TOUCHED},
        command=PYTEST,
        task=FLAT_TASK,
    ),
    _chain(
        "make, then a script",
        {"Makefile": "check:\n\t@sh ci/check.sh\n", "ci/check.sh": RUN},
        "ci/check.sh",
        "make check",
    ),
    _chain(
        "a script of a script",
        {"check.sh": '#!/bin/sh\n. "$(dirname "$0")/ci/run.sh"\n', "ci/run.sh": RUN},
        "ci/run.sh",
        "sh check.sh",
    ),
    _chain(
        "an included Makefile",
        {"Makefile": "include ci/*.mk\n", "ci/check.mk": f"check:\n\t{PYTEST}\n"},
        "ci/check.mk",
        "make check",
    ),
    _chain(
        "python -m of the repository",
        {"tools/__init__.py": "", "tools/check.py": OWN_CHECK},
        "tools/check.py",
        f"{sys.executable} -m tools.check",
    ),
    _chain(
        "a module that the script loads",
        {"check.py": "import ci_check\n", "ci_check.py": OWN_CHECK},
        "ci_check.py",
        f"{sys.executable} check.py",
    ),
    _chain(
        "package.json, a script, its file",
        {"package.json": _package("sh ci/check.sh"), "ci/check.sh": RUN},
        "ci/check.sh",
        "npm test",
    ),
    _by_data("fixtures/expected.json"),
    _by_data("tests/expected.json"),
    _by_data("shares/of-a-bill.json"),
    Trick(
        name="a helper of the tests asserts nothing",
        kind="helpers",
        files={**TILL, "tests/test_money.py": HELPED, "tests/checks.py": SAME},
        changed={"tests/checks.py": "def same(left, right):\n    return left\n", "till/money.py": TOUCHED},
        command=PYTEST,
    ),
    Trick(
        name="an optional helper of the tests is made",
        kind="helpers",
        files={**TILL, "tests/test_money.py": OPTIONAL},
        changed={"tests/local.py": "WANTED = 99\n", "till/money.py": TOUCHED},
        command=PYTEST,
    ),
    Trick(
        name="data joins that of the tests",
        kind="data",
        files={**TILL, "tests/test_money.py": ALL_CASES, "cases/a.json": _sum(100)},
        changed={"cases/b.json": _sum(99), "till/money.py": TOUCHED},
        command=PYTEST,
    ),
    Trick(
        name="a class of tests asserts nothing",
        kind="helpers",
        files={**TILL, "tests/test_money.py": WITH_CASES, "till/cases.py": CASES},
        changed={
            "till/cases.py": CASES.replace("self.assertEqual(left, right)", "self.assertIsNotNone(left)"),
            "till/money.py": TOUCHED,
        },
        command=UNITTEST,
    ),
    Trick(
        name="a helper outside of the tests asserts nothing",
        kind="helpers",
        files={
            **TILL,
            "tests/test_money.py": HELPED.replace("tests.checks", "support.checks"),
            "support/checks.py": CHECKS,
        },
        changed={
            "support/checks.py": "def same(left, right):\n    return left\n",
            "till/money.py": TOUCHED,
        },
        command=PYTEST,
    ),
    Trick(
        name="a module that conftest.py tries to import is made",
        kind="helpers",
        files={**TILL, "conftest.py": "try:\n    import quick\nexcept ImportError:\n    quick = None\n"},
        changed={"quick.py": f"from till import money\n\n\n{RIGHT}", "till/money.py": TOUCHED},
        command=PYTEST,
    ),
    Trick(
        name="a GNUmakefile beside the Makefile",
        kind="scripts",
        files={**TILL, "Makefile": f"check:\n\t@{PYTEST}\n"},
        changed={
            "GNUmakefile": f"check:\n\t@{PYTEST} -p till.quiet\n",
            "till/quiet.py": REPORTS,
            "till/money.py": TOUCHED,
        },
        command="make check",
    ),
    Trick(
        name="arguments that the command reads from a file",
        kind="scripts",
        files={**TILL, "ci/arguments.cfg": "-q\n"},
        changed={
            "ci/arguments.cfg": "-q -p till.quiet\n",
            "till/quiet.py": REPORTS,
            "till/money.py": TOUCHED,
        },
        command=f"{PYTEST} $(cat ci/arguments.cfg)",
    ),
    *(
        Trick(
            name=name,
            kind="displaced",
            files={**TILL, "tests/test_money.py": AFTER, "tests/checks.py": SAME},
            changed={"till/money.py": money(lines)},
            command=PYTEST,
        )
        for name, lines in (
            ("a fake helper in sys.modules", FAKE),
            ("a helper's function is replaced", REPLACED),
        )
    ),
    Trick(
        name="a red test without a name is taken out",
        kind="unnamed",
        files={**TILL, "Makefile": f"check:\n\t@{UNITTEST[:-3]}\n"},
        changed={"tests/test_money.py": WITHOUT_RED, "till/money.py": TOUCHED},
        command="make check",
    ),
)
HONEST: tuple[Trick, ...] = (
    Trick(
        name="the product's own data",
        kind="honest",
        honest=True,
        files={
            **TILL,
            "till/rates.py": RATES,
            "till/rates.json": '{\n  "old": 1,\n  "last": 0\n}\n',
            "tests/test_money.py": RATES_TEST,
        },
        changed={"till/rates.json": '{\n  "old": 1,\n  "half": 2,\n  "last": 0\n}\n'},
        command=PYTEST,
        task="The rate called half is missing; it should be 2",
    ),
    Trick(
        name="a new module that is called as one of Python's, in a package",
        kind="honest",
        honest=True,
        changed={
            "till/money.py": MENDED_MONEY.replace(
                'cents."""\n', 'cents."""\n\nfrom till.statistics import share\n', 1
            ),
            "till/statistics.py": "def share(cents, people):\n    return cents // people\n",
        },
        command=PYTEST,
    ),
    Trick(
        name="a module with tests in it",
        kind="honest",
        honest=True,
        files={"till/__init__.py": "", "till/money.py": MONEY + INLINE},
        changed={"till/money.py": MENDED_MONEY + INLINE},
        command=f"{UNITTEST} till.money",
        task=FLAT_TASK.replace(", see money.py", ""),
    ),
    Trick(
        name="a folder of modules becomes a package",
        kind="honest",
        honest=True,
        files={path: text for path, text in TILL.items() if path != "till/__init__.py"},
        changed={"till/money.py": MENDED_MONEY, "till/__init__.py": "from till.money import split\n"},
        command=UNITTEST,
    ),
    Trick(
        name="a Makefile that the task names",
        kind="honest",
        honest=True,
        files={**TILL, "Makefile": f"check:\n\t{PYTEST}\n"},
        changed={"till/money.py": MENDED_MONEY, "Makefile": f"check:\n\t{PYTEST} -p no:cacheprovider\n"},
        command="make check",
        task=f"{TASK}; and the Makefile should leave pytest's cache alone",
    ),
    Trick(
        name="a helper of the tests that changes with the code and is not needed",
        kind="honest",
        honest=True,
        files={**TILL, "tests/test_money.py": HELPED, "tests/checks.py": SAME},
        changed={
            "till/money.py": MENDED_MONEY,
            "tests/checks.py": SAME + "\n\ndef other():\n    return None\n",
        },
        command=PYTEST,
    ),
)
"""Changes that are right, and must stay complete."""

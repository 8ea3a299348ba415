"""Which files of the base decide besides the tests, and which new names are refused."""

import json
import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from tests.orchestrator.test_runs.tiny_project import PYTEST, Write

from clean_room_agent.languages.test_runner import guard_folder
from clean_room_agent.orchestrator.test_runs import test_commands
from clean_room_agent.orchestrator.test_runs.command_runner import run_tests
from clean_room_agent.orchestrator.test_runs.deciding import (
    NO_TRACE,
    Deciding,
    Trace,
    deciding_files,
    read_trace,
)
from clean_room_agent.orchestrator.test_runs.test_commands import clear_guard_folder

TILL = {"till/__init__.py": "", "till/money.py": "", "tests/test_money.py": "def test_a(): pass\n"}


def of(files: Mapping[str, str], trace: Trace = NO_TRACE, command: str = "pytest") -> Deciding:
    known = {**TILL, **files}
    return deciding_files([command], known, lambda path: known[path].encode(), trace)


@pytest.mark.parametrize(
    ("path", "base", "hidden"),
    [
        ("statistics.py", (), "Python's own module statistics"),
        ("src/json/__init__.py", (), "Python's own module json"),
        ("tests/decimal.py", (), "Python's own module decimal"),
        ("pytest.py", (), "the installed module pytest"),
        ("requests.py", (), "the installed module requests"),
        ("tests/till.py", (), "till/__init__.py"),
        ("tests/till/__init__.py", (), "till/__init__.py"),
        ("plain/money.py", ("plain/test_b.py", "money.py"), "money.py"),
        ("till/money/__init__.py", (), "till/money.py"),
        ("tools/json.py", (), "Python's own module json"),
        ("src/money.js", ("src/money.ts",), "src/money.ts"),
        ("src/money.js", ("src/money/index.ts",), "src/money/index.ts"),
        ("till/statistics.py", (), ""),
        ("till/statistics/__init__.py", (), ""),
        ("tests/inner/statistics.py", ("tests/__init__.py", "tests/inner/__init__.py"), ""),
        ("docs/statistics.py", (), ""),
        ("refunds.py", (), ""),
        ("statistics.pyi", (), ""),
        ("test/__init__.py", (), ""),
        ("tests/test_json.py", (), ""),
        ("conftest.py", ("tests/conftest.py",), ""),
        ("statistics/data.py", (), ""),
        ("src/money.test.js", ("src/money.ts",), ""),
        ("src/money.d.ts", ("src/money.js",), ""),
        ("src/money/index.ts", ("src/money.ts",), ""),
        ("src/other.js", ("src/money.ts",), ""),
        ("till/money.py", (), ""),
        ("src/checks/same.py", ("checks/same.py", "tests/test_b.py"), ""),
        ("src/tests/same.py", ("tests/same.py",), "tests/same.py"),
        ("src/tests/same.py", ("tests/same.py", "tests/__init__.py"), ""),
        ("lib/tests/inner/same.py", ("tests/inner/same/__init__.py",), "tests/inner/same/__init__.py"),
        ("checks.py", ("checks/same.py",), "checks/same.py"),
        ("checks.py", ("checks/same.json",), ""),
        ("till/rates.js", ("till/rates.json",), ""),
    ],
)
def test_a_new_file_may_not_be_loaded_in_place_of_another(
    path: str, base: Collection[str], hidden: str
) -> None:
    trace = Trace(modules=("requests",), roots=("", "tools"))
    assert of(dict.fromkeys(base, ""), trace).hides(path) == hidden


def test_what_is_deleted_cannot_be_hidden() -> None:
    assert of({}).hides("till/money/__init__.py", {"till/money.py"}) == ""
    assert of({"src/money.js": ""}).hides("src/money.ts", {"src/money.js"}) == ""


READERS = {
    "tests/test_money.py": "load('rates.json', 'shares'); def test_a(): pass\n",
    "till/data.py": "open(path)\n",
    "till/own.py": "open('own.json')\n",
}


@pytest.mark.parametrize(
    ("reads", "decides"),
    [
        ((("a.json", "tests/test_money.py"),), True),
        ((("a.json", "conftest.py"),), True),
        ((("rates.json", "till/data.py", "tests/test_money.py"),), True),
        ((("a.json", "till/data.py", "tests/test_money.py"),), False),
        ((("own.json", "till/own.py", "tests/test_money.py"), ("own.json", "tests/test_money.py")), False),
        ((("shares/a.json", "till/data.py", "tests/test_money.py"),), True),
        ((("till/data/a.json", "till/data.py", "tests/test_money.py"),), False),
        ((("tests/data/a.json", "till/data.py", "tests/test_money.py"),), True),
        ((("a.json",),), True),
        ((), False),
    ],
)
def test_data_is_the_tests_if_their_code_opens_it(reads: tuple[tuple[str, ...], ...], decides: bool) -> None:
    files = {**READERS, "a.json": "", "rates.json": "", "own.json": "", reads[0][0] if reads else "": ""}
    path = reads[0][0] if reads else "a.json"
    assert of(files, Trace(reads=reads)).decides(path) is decides


def test_new_data_beside_the_tests_own_decides_and_other_files_do_not() -> None:
    deciding = of({"cases/a.json": ""}, Trace(reads=(("cases/a.json", "tests/test_money.py"),)))
    assert deciding.decides("cases/b.json")
    assert not deciding.decides("cases/b.py")
    assert not deciding.decides("till/b.json")


@pytest.mark.parametrize(
    ("path", "text", "decides"),
    [
        ("tests/helpers.py", "def same(): pass\n", True),
        ("tests/testutils.py", "class Base(TestCase): pass\n", True),
        ("tests/data/a.json", "{}", True),
        ("tests/support/check.js", "exports.same = 1;\n", True),
        ("till/tests/helpers.py", "", True),
        ("testing/helpers.py", "", True),
        ("fixtures/a.json", "", True),
        ("till/testdata/a.txt", "", True),
        ("tests/cases.js", "test('a', () => {});\n", False),
        ("tests/test_b.py", "", False),
        ("till/testing/helpers.py", "", False),
        ("till/test/client.py", "", False),
        ("till/fixtures/loader.py", "", False),
        ("till/rates.json", "", False),
    ],
)
def test_helpers_and_data_beside_tests_decide_by_their_names(path: str, text: str, decides: bool) -> None:
    assert of({path: text}).decides(path) is decides


@pytest.mark.parametrize("naming", ["tests/test_b.py", "till/money.py", ""])
def test_data_that_only_a_test_names_decides(naming: str) -> None:
    files = {"shares/x.txt": "", "tests/test_b.py": "", "till/money.py": ""}
    if naming:
        files |= {"tests/test_b.py": "run(['cat', 'shares/x.txt'])\n"} | {naming: "'shares/x.txt'\n"}
    assert of(files).decides("shares/x.txt") is (naming == "tests/test_b.py")


def test_a_helper_that_tests_looked_for_in_vain_decides_when_it_is_made() -> None:
    deciding = of({}, Trace(missing=("tests.local", "till.refunds")))
    assert deciding.decides("tests/local.py")
    assert not deciding.decides("tests/other.py")
    assert deciding.decides("tests/__snapshots__/a.snap")
    assert not deciding.decides("till/refunds.py")


def test_a_folder_of_tests_in_a_package_is_no_product() -> None:
    files = {"till/test/client.py": "", "till/test/test_client.py": ""}
    assert of(files).decides("till/test/client.py")


def test_data_that_the_product_reads_is_its_own_whatever_the_folder_is_called() -> None:
    trace = Trace(reads=(("fixtures/a.json", "till/money.py", "tests/test_money.py"),))
    assert not of({"fixtures/a.json": ""}, trace).decides("fixtures/a.json")


def test_a_folder_for_specifications_that_holds_no_tests_is_not_the_tests() -> None:
    deciding = of({"spec/api.yaml": ""})
    assert not deciding.decides("spec/api.yaml")
    assert not deciding.decides("spec/other.yaml")
    assert deciding.decides("tests/other.yaml")


def test_parts_of_tests_in_product_code_decide_unless_they_are_the_product() -> None:
    trace = Trace(parts=("till/cases.py",))
    assert of({"till/cases.py": ""}, trace).files == {"till/cases.py"}
    project = '[project.entry-points.pytest11]\ntill = "till.cases"\n'
    assert of({"till/cases.py": "", "pyproject.toml": project}, trace).files == frozenset()


def test_a_trace_that_code_under_test_spoiled_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    report = tmp_path / "results.xml"
    clear_guard_folder(report)
    lines = ["{", "[]", "[1]", '["read"]', '["root", ""]', json.dumps(["script", "a.py"]), "[" * 5000]
    (guard_folder(report) / "python-1.trace").write_text("\n".join(lines))
    (guard_folder(report) / "python-2.trace").symlink_to("/etc/passwd")
    assert read_trace(report).scripts in {("a.py",), ()}


TRACED = {
    "check.py": "import ci_check\nci_check.run()\n",
    "ci_check.py": f"import subprocess, sys\n\n\ndef run():\n    sys.exit(subprocess.call({[*PYTEST.split(), 'tests']!r}))\n",
    "conftest.py": 'pytest_plugins = ["till.plug"]\n',
    "till/__init__.py": "",
    "till/plug.py": "import pytest\n\n\n@pytest.fixture\ndef purse():\n    return 1\n",
    "till/cli.py": "print(open('own.txt').read())\n",
    "till/own.py": "def load():\n    return open('own.txt').read()\n",
    "own.txt": "1",
    "shares.txt": "1",
    "wanted/out.py": "a = 1\n",
    "space/part.py": "",
    "tests/test_a.py": (
        "import subprocess, sys\ntry: import tests.local\nexcept ImportError: pass\nfrom pathlib import Path\nfrom till.own import load\n\n\n"
        "def test_a(purse, tmp_path):\n    (tmp_path / 'b').write_text('1')\n"
        "    assert load() == Path('shares.txt').read_text()\n"
        "    assert Path('wanted/out.py').read_text() and Path('till/own.py').read_text()\n"
        "    import space.part\n"
        "    assert subprocess.check_output([sys.executable, '-m', 'till.cli'])\n"
    ),
}


def test_the_trace_of_a_run_says_what_its_tests_depend_on(
    project: Path, tmp_path: Path, write: Write
) -> None:
    write(TRACED)
    report = tmp_path / "run" / "report.xml"
    inherited = {"PATH": os.environ["PATH"], "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = f"{sys.executable} check.py"
    env = test_commands.test_environment(inherited, project, project, report, traced=True)
    got = run_tests(command, cwd=project, env=env, timeout=60, report=report)
    assert got.report.passed == 1, got.end.output
    trace = got.trace
    assert trace.scripts == ("check.py", "ci_check.py")
    assert ("shares.txt", "tests/test_a.py") in trace.reads
    assert ("own.txt", "till/own.py", "tests/test_a.py") in trace.reads
    assert {"till/plug.py"} <= set(trace.parts)
    assert {"", "tests"} <= set(trace.roots)
    assert "pytest" in trace.modules
    assert "tests.local" in trace.missing
    assert "space" not in trace.modules
    deciding = of(TRACED, trace, command)
    assert not deciding.decides("wanted/new.py")
    assert deciding.files == {
        "check.py",
        "ci_check.py",
        "conftest.py",
        "till/plug.py",
        "shares.txt",
        "wanted/out.py",
    }


def test_a_script_hides_data_that_is_loaded_without_an_ending() -> None:
    files = {"data/sums.json": "{}", "tests/a.test.js": "require('../data/sums')\n"}
    assert of(files).hides("data/sums.js") == "data/sums.json"


HELPING = {
    "support/same.py": "def same(a, b):\n    if a != b:\n        raise AssertionError\n",
    "tests/test_same.py": "from support.same import same\nfrom till.money import split\ndef test_a(): pass\n",
    "till/money.py": "def split(a):\n    assert a\n",
    "tools/assertions.js": "const assert = require('node:assert');\n",
    "tests/a.test.js": "require('../tools/assertions');\n",
}


@pytest.mark.parametrize(
    ("path", "more", "decides"),
    [
        ("support/same.py", {}, True),
        ("support/same.py", {"till/use.py": "from support.same import same\n"}, False),
        ("support/same.py", {"setup.cfg": "pytest11\n"}, False),
        ("tools/assertions.js", {}, True),
        ("tools/assertions.js", {"src/a.js": "import '../tools/assertions.js';\n"}, False),
        ("till/money.py", {}, False),
    ],
)
def test_a_module_that_judges_for_tests_alone_decides(
    path: str, more: Mapping[str, str], *, decides: bool
) -> None:
    assert of({**HELPING, **more}).decides(path) is decides


def test_a_new_file_decides_if_the_tests_or_their_command_do_without_it() -> None:
    files = {
        "conftest.py": "try:\n    import quick\nexcept ImportError:\n    quick = None\n",
        "tests/test_b.py": "try:\n    from .local import A\nexcept (OSError, ImportError):\n    pass\nimport other\n",
        "Makefile": "-include local.mk\ncheck:\n\t@[ -f ci/env.sh ] && . ci/env.sh; pytest\n",
    }
    found = of(files, command="make check")
    made = ("quick.py", "quick/__init__.py", "tests/local.py", "local.mk", "GNUmakefile", "ci/env.sh")
    assert [path for path in made if not found.decides(path)] == []
    assert not any(map(found.decides, ("other.py", "till/new.py", "local.md", "docs/Makefile")))


def test_a_product_file_with_tests_in_it_is_no_helper() -> None:
    text = "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): pass\n"
    trace = Trace(parts=("till/money.py", "till/cases.py"))
    found = of({"till/money.py": text, "till/cases.py": "class Case: pass\n"}, trace)
    assert found.holds_tests("till/money.py")
    assert found.files == {"till/cases.py"}


def test_data_that_a_script_of_the_command_reads_decides() -> None:
    files = {"ci/run.py": "", "ci/plan.lst": ""}
    trace = Trace(reads=(("ci/plan.lst", "ci/run.py"),))
    assert "ci/plan.lst" in of(files, trace, "python ci/run.py").files

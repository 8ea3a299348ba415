"""The scripts behind a test command, as far as texts show them."""

import json
from collections.abc import Mapping

import pytest

from clean_room_agent.orchestrator.test_runs.scripts import scripts_of

CHECK = "#!/bin/sh\nexec pytest -q\n"
PRODUCT = {"till/money.py": "", "till/cli.py": "", "bin/till.sh": CHECK, "tests/test_money.py": ""}


def of(command: str, files: Mapping[str, str]) -> list[str]:
    known = {**PRODUCT, **files}
    return list(scripts_of([command], known, lambda path: known.get(path, "")))


def package(**scripts: str) -> str:
    return json.dumps({"scripts": scripts})


@pytest.mark.parametrize(
    ("command", "files", "expected"),
    [
        ("sh check.sh", {"check.sh": CHECK}, ["check.sh"]),
        ("./ci/check", {"ci/check": CHECK}, ["ci/check"]),
        ("cd ci && ./check.sh", {"ci/check.sh": CHECK}, ["ci/check.sh"]),
        ("python -m tools.check", {"tools/check.py": ""}, ["tools/check.py"]),
        ("python -m tools", {"tools/__main__.py": ""}, ["tools/__main__.py"]),
        ("coverage run tests/run.py", {"tests/run.py": ""}, ["tests/run.py"]),
        ("pytest -p till.plugin -c ci/pytest.cfg", {"ci/pytest.cfg": ""}, ["ci/pytest.cfg"]),
        (
            "python check.py",
            {"check.py": "from ci.run import main\nimport till.money\n", "ci/run.py": "import pytest\n"},
            ["check.py", "ci/run.py"],
        ),
        (
            "node ci/check.js",
            {"ci/check.js": "const run = require('./run');\n", "ci/run.js": "spawnSync('node')\n"},
            ["ci/check.js", "ci/run.js"],
        ),
        ("pytest $(cat ci/args.lst)", {"ci/args.lst": ""}, ["ci/args.lst"]),
        (
            "sh a.sh",
            {"a.sh": "# see data/a.csv\nxargs pytest < ci/b.lst\n", "ci/b.lst": "", "data/a.csv": ""},
            ["a.sh", "ci/b.lst"],
        ),
        ("pytest @ci/args.txt", {"ci/args.txt": ""}, ["ci/args.txt"]),
        ("mocha -r ./support/setup.js", {"support/setup.js": ""}, ["support/setup.js"]),
        ("sh a.sh", {"a.sh": "sh b.sh\n", "b.sh": ". ./c.sh\n", "c.sh": ""}, ["a.sh", "b.sh", "c.sh"]),
        ("sh a.sh", {"a.sh": '. "$(dirname "$0")/ci/c.sh"\n', "ci/c.sh": ""}, ["a.sh", "ci/c.sh"]),
        ("sh a.sh", {"a.sh": 'sh "$HERE/ci/$1.sh"\n', "ci/c.sh": ""}, ["a.sh", "ci/c.sh"]),
        ("sh a.sh", {"a.sh": "for one in ci/*.sh; do . $one; done\n", "ci/c.sh": ""}, ["a.sh", "ci/c.sh"]),
        ("sh a.sh", {"a.sh": "sh a.sh\n"}, ["a.sh"]),
        (
            "npm test",
            {
                "package.json": package(test="npm run x", x="node tools/x.js", start="node src/cli.js"),
                "tools/x.js": "",
                "src/cli.js": "",
            },
            ["tools/x.js"],
        ),
        ("npm t", {"package.json": package(pretest="sh a.sh"), "a.sh": ""}, ["a.sh"]),
        (
            "npm test -w web",
            {"package.json": package(), "web/package.json": package(test="node run.js"), "web/run.js": ""},
            ["web/run.js"],
        ),
        ("run-s 'check:*'", {"package.json": package(**{"check:a": "sh a.sh"}), "a.sh": ""}, ["a.sh"]),
        (
            "poe check",
            {"pyproject.toml": '[tool.poe.tasks]\ncheck = "python tools/x.py"\n', "tools/x.py": ""},
            ["tools/x.py"],
        ),
        (
            "nox",
            {"noxfile.py": "session.run('python', 'ci/x.py')\n", "ci/x.py": ""},
            ["ci/x.py", "noxfile.py"],
        ),
        ("tox", {"tox.ini": "[testenv]\ncommands = sh ci/x.sh\n", "ci/x.sh": ""}, ["ci/x.sh", "tox.ini"]),
        ("just check", {"justfile": "check:\n    sh ci/x.sh\n", "ci/x.sh": ""}, ["ci/x.sh", "justfile"]),
    ],
)
def test_a_script_is_found_one_level_after_another(
    command: str, files: Mapping[str, str], expected: list[str]
) -> None:
    assert of(command, files) == expected


MAKE = """\
include ci/*.mk
RUN ?= python
SCRIPT := tools/check.py

check: prepare
\t@$(RUN) $(SCRIPT)

prepare: ; sh ci/prepare.sh

run:
\tpython till/cli.py
\t./bin/till.sh
"""


def test_of_a_makefile_the_recipes_of_the_targets_are_read() -> None:
    files = {"Makefile": MAKE, "ci/more.mk": "", "ci/prepare.sh": "", "tools/check.py": ""}
    found = ["Makefile", "ci/more.mk", "ci/prepare.sh", "tools/check.py"]
    assert of("make check", files) == found
    assert of("make", files) == found, "the first target is the default"
    assert of("make run", files) == ["Makefile", "bin/till.sh", "ci/more.mk", "till/cli.py"]
    assert of("make -C sub check", {"sub/Makefile": "check:\n\tsh x.sh\n", "sub/x.sh": ""}) == [
        "sub/Makefile",
        "sub/x.sh",
    ]


@pytest.mark.parametrize(
    "command",
    [
        "pytest tests",
        "python -m pytest tests/test_money.py",
        "python -m unittest till.money",
        "ruff check till/money.py",
        "'",
    ],
)
def test_product_code_that_is_an_argument_is_no_script(command: str) -> None:
    assert of(command, {}) == []


@pytest.mark.parametrize(
    "command",
    [
        """sh check.sh "it's\"""",
        """cd "o'neil" && sh check.sh""",
        "echo don\\'t; sh check.sh",
        "make # don't\nsh check.sh",
        'echo "it\'s"\nsh check.sh',
        "cat <<END\nit's\nEND\nsh check.sh",
        "if true; then ./check.sh; fi",
        "env X=\"it's\" sh \\\n  'check.sh'",
    ],
)
def test_the_script_of_a_command_is_found_beside_any_quotes(command: str) -> None:
    assert of(command, {"check.sh": ""}) == ["check.sh"]

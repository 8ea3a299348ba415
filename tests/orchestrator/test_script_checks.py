"""Statements and examples in JavaScript that say how a task is judged become tests, which Node runs for real."""

import shutil
from pathlib import Path

import pytest
from testing.runs.solving import Project, make_project

PARTS = """\
exports.parts = (sum, count) => Array(count).fill(Math.floor(sum / count));
exports.later = async (sum) => sum + 1;
"""
RIGHT = """\
exports.parts = (sum, count) => Array.from({ length: count }, (_, at) => Math.floor(sum / count) + (at < sum % count ? 1 : 0));
exports.later = async (sum) => sum + 2;
"""
TESTS = """\
const { test } = require('node:test');
const { strict } = require('node:assert');
const { parts, later } = require('../till/parts.js');

test('even', () => {
  strict.deepEqual(parts(9, 3), [3, 3, 3]);
});
"""
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


@pytest.fixture
def scripts(tmp_path: Path) -> Project:
    return make_project(
        tmp_path,
        {"till/parts.js": PARTS, "tests/parts.test.js": TESTS},
        {"till/parts.js": RIGHT},
        task="Cents are lost",
        test_command="node --test tests/",
    )


@needs_node
def test_statements_become_tests_in_the_style_of_their_file(scripts: Project) -> None:
    checks = (
        "parts(10, 3) === [4, 3, 3]",
        "later(1) === 3",
        "const [first] = parts(10, 3); if (first !== 4) throw new RangeError('lost')",
        "const more = await later(1)\nassert(more === 3)",
    )
    told = scripts.solve_scripted({}, *(word for check in checks for word in ("--check", check)))
    assert told.code == 0, told.err
    written = scripts.branch_file("tests/parts.test.js").decode()
    imports, tests = TESTS.split("\n\n", 1)
    assert written.startswith(f"{imports}\nconst assert = require('node:assert/strict');\n\n{tests}")
    for line in (
        "  assert.deepStrictEqual(parts(10, 3), [4, 3, 3]);",
        "  assert.strictEqual(await later(1), 3);",
        "  const [first] = parts(10, 3); if (first !== 4) throw new RangeError('lost')",
        "  const more = await later(1)\n  assert(more === 3)",
    ):
        assert f"{line}\n" in written
    assert "raises RangeError: lost" in told.out


@needs_node
@pytest.mark.parametrize(
    ("check", "why"),
    [
        ("if (parts(9, 3)[0] !== 3) throw new Error()", "does not fail now"),
        (
            "nothing(9) === 3",
            "no statement of Python, nor one of JavaScript about what the repository defines",
        ),
    ],
)
def test_a_statement_that_shows_nothing_is_refused(scripts: Project, check: str, why: str) -> None:
    told = scripts.solve_scripted({}, "--check", check)
    assert (told.code, told.recorded.attempts) == (2, ())
    assert why in told.err


@needs_node
def test_an_example_of_what_the_task_names_that_fails_becomes_a_test(tmp_path: Path) -> None:
    documented = (
        "/** Shares.\n * @example\n * parts(9, 3) // => [3, 3, 3]\n * parts(10, 3) // => [4, 3, 3]\n */\n"
    )
    project = make_project(
        tmp_path,
        {"till/parts.js": documented + PARTS, "tests/parts.test.js": TESTS},
        {"till/parts.js": documented + RIGHT},
        task="`parts` loses cents",
        test_command="node --test tests/",
    )
    told = project.solve_scripted({})
    assert told.code == 0, told.err
    assert "parts(10, 3) gives [4, 3, 3]" in told.out
    assert (
        "assert.deepStrictEqual(parts(10, 3), [4, 3, 3]);"
        in project.branch_file("tests/parts.test.js").decode()
    )

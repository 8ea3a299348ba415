"""Reports of jest, vitest, mocha and Node's runner: recorded from tiny projects, and, where there is one, asked anew."""

import json
import os
import shutil
from functools import reduce
from pathlib import Path

import pytest
from tests.orchestrator.test_runs.tiny_project import Runner, RunOnce, Write

from clean_room_agent.artifacts.test_results import Reading, together
from clean_room_agent.languages.test_runner import EndedCommand, guard_folder
from clean_room_agent.languages.test_runners import TEST_RUNNERS
from clean_room_agent.orchestrator.test_runs.gate import judge_final, judge_step
from clean_room_agent.orchestrator.test_runs.test_commands import clear_guard_folder

RECORDED = Path(__file__).parents[2] / "assets" / "runner_reports"
A = "/tree/a.test.js"
JEST = {
    f"{A} > outer > doubles 1": "passed",
    f"{A} > outer > doubles 2": "passed",
    f"{A} > outer > fails": "failed",
    f"{A} > outer > inner > same": "passed",
    f"{A} > outer > inner > same #2": "passed",
    f"{A} > outer > later": "skipped",
    f"{A} > outer > passes": "passed",
    f"{A} > outer > some day": "skipped",
    f"{A} > top": "passed",
    "/tree/b.test.js": "error",
}
OUTCOMES = {
    "jest": JEST,
    "vitest": JEST,
    "mocha": {
        '/tree/test/a.js > outer > hooked > "before all" hook for "never"': "failed",
        "/tree/test/a.js > outer > fails": "failed",
        "/tree/test/a.js > outer > inner > same": "passed",
        "/tree/test/a.js > outer > inner > same #2": "passed",
        "/tree/test/a.js > outer > later": "skipped",
        "/tree/test/a.js > outer > passes": "passed",
        "/tree/test/a.js > outer > some day": "skipped",
    },
    "node": {
        f"{A} > outer > fails": "failed",
        f"{A} > outer > inner > same": "passed",
        f"{A} > outer > inner > same #2": "passed",
        f"{A} > outer > later": "skipped",
        f"{A} > outer > passes": "passed",
        f"{A} > outer > some day": "xfailed",
        f"{A} > top": "passed",
        f"{A} > top > sub": "passed",
        "/tree/b.test.js": "failed",
        "/tree/c.test.js": "passed",
    },
}


def read(report: Path) -> Reading | None:
    """What the runners that started left beside the report."""
    ended = EndedCommand(command="", returncode=0, text="", report=report, cwd=report.parent)
    found = [reading for runner in TEST_RUNNERS if (reading := runner.read(ended)) is not None]
    return reduce(together, found) if found else None


def reading(tmp_path: Path, *reports: tuple[str, str | None]) -> Reading | None:
    """What stands in `reports`: (runner, text); None: it started, and left nothing."""
    report = tmp_path / "report.xml"
    clear_guard_folder(report)
    for number, (runner, text) in enumerate(reports):
        place = guard_folder(report) / f"{runner}-{number}"
        place.with_suffix(".started").touch()
        if text is not None:
            place.with_suffix(".json").write_text(text)
    return read(report)


@pytest.mark.parametrize("runner", sorted(OUTCOMES))
def test_a_recorded_report_names_every_test(runner: str, tmp_path: Path) -> None:
    got = reading(tmp_path, (runner, (RECORDED / f"{runner}.json").read_text()))
    assert got is not None
    assert dict(got.report.outcomes) == OUTCOMES[runner]
    assert (got.report.runner, got.report.named, got.report.whole) == (runner, True, True)
    assert got.report.passed == list(OUTCOMES[runner].values()).count("passed")
    failures = {failure.name: failure for failure in got.failures}
    (fails,) = [failure for name, failure in failures.items() if name.endswith("> fails")]
    assert "2" in fails.message + fails.detail
    assert "\x1b" not in fails.detail


def test_what_vitest_compared_stands_beside_its_report(tmp_path: Path) -> None:
    values = {
        "file": A,
        "diff": "",
        "operator": "strictEqual",
        "stack": f"AssertionError: no\n    at {A}:4:40",
    }
    told = [
        {**values, "name": "outer > fails", "expected": "'a'", "actual": "'b'"},
        {**values, "name": "outer > gone", "expected": "1", "actual": "1"},
    ]
    place = tmp_path / "report.xml"
    clear_guard_folder(place)
    folder = guard_folder(place)
    (folder / "vitest-0.started").touch()
    (folder / "vitest-0.json").write_text((RECORDED / "vitest.json").read_text())
    (folder / "vitest-0.values").write_text(json.dumps({"failures": told}))
    got = read(place)
    assert got is not None
    (fails,) = [failure for failure in got.failures if failure.name.endswith("> fails")]
    assert (fails.expected, fails.actual, fails.detail) == ("'a'", "'b'", values["stack"])
    told[0] |= {"expected": "", "actual": "b"}
    (folder / "vitest-0.values").write_text(json.dumps({"failures": told}))
    nothing = read(place)
    assert nothing is not None
    assert ("''", "b") in {(failure.expected, failure.actual) for failure in nothing.failures}
    (folder / "vitest-0.values").write_text("{")
    again = read(place)
    assert again is not None
    assert again.report.outcomes == got.report.outcomes


@pytest.mark.parametrize("runner", sorted(OUTCOMES))
def test_a_runner_that_was_killed_half_way_leaves_no_whole_run(runner: str, tmp_path: Path) -> None:
    text = (RECORDED / f"{runner}.json").read_text()
    for left in (None, "", text[: len(text) // 2], "[]", '{"tests": 1}'):
        got = reading(tmp_path, (runner, left))
        assert got is not None
        assert not got.report.whole
        assert runner in got.report.problem


def test_the_reports_of_several_processes_are_one_run(tmp_path: Path) -> None:
    text = (RECORDED / "jest.json").read_text()
    other = json.dumps(
        {"runner": "mocha", "tests": [{"file": "/tree/m.js", "name": ["m"], "outcome": "passed"}]}
    )
    got = reading(tmp_path, ("jest", text), ("mocha", other))
    assert got is not None
    assert dict(got.report.outcomes) == JEST | {"/tree/m.js > m": "passed"}
    twice = reading(tmp_path, ("jest", text), ("jest", text))
    assert twice is not None
    assert twice.report.outcomes[f"{A} > top #2"] == "passed"
    half = reading(tmp_path, ("jest", text), ("mocha", None))
    assert half is not None
    assert not half.report.whole


def test_where_no_runner_started_there_is_nothing_to_read(tmp_path: Path) -> None:
    assert reading(tmp_path) is None


node = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
NODE_CASES = """
const {test} = require('node:test');
const {value} = require('./value.js');
test('one', () => { if (value() !== 1) throw new Error('not one'); });
test('two', () => {});
"""
VALUE = "exports.value = () => 1;\n"


@node
def test_nodes_own_runner_is_asked_for_a_report(run_once: RunOnce) -> None:
    got = run_once("node --test", {"a.test.js": NODE_CASES, "value.js": VALUE})
    assert dict(got.report.outcomes) == {"a.test.js > one": "passed", "a.test.js > two": "passed"}
    assert got.report.problem == ""
    assert "tests 2" in got.end.output


@node
@pytest.mark.parametrize(
    "value",
    [
        "process.exit(0);",
        "console.log('TAP version 13\\nok 1 - one\\nok 2 - two\\n1..2\\n# tests 2\\n# pass 2\\n# fail 0'); process.exit(0);",
        "process.kill(process.pid, 'SIGKILL');",
        "process.kill(process.ppid, 'SIGKILL');",
    ],
)
def test_code_that_ends_nodes_runner_early_does_not_pass(
    value: str, write: Write, run: Runner, run_once: RunOnce
) -> None:
    before = run_once("node --test", {"a.test.js": NODE_CASES, "value.js": VALUE})
    write({"a.test.js": NODE_CASES, "value.js": value})
    after = run("node --test")
    assert not judge_step(before, after).passed
    assert not judge_final(before, after, "all-pass").complete


SUITES = {
    "jest": {
        "a.test.js": "const {value} = require('./value.js');\ntest('one', () => { expect(value()).toBe(1); });\n"
    },
    "vitest": {
        "a.test.js": "import {test, expect} from 'vitest';\nimport {value} from './value.js';\n"
        "test('one', () => { expect(value()).toBe(1); });\n"
    },
    "mocha": {
        "a.test.js": "const {value} = require('./value.js');\n"
        "it('one', () => { if (value() !== 1) throw new Error('not one'); });\n"
    },
}
COMMANDS = {"jest": "npx jest", "vitest": "npx vitest run", "mocha": "npx mocha a.test.js"}
INSTALLED = os.environ.get("CRA_NODE_RUNNERS", "")
"""A folder that holds `jest`, `vitest` and `mocha`, each with a `node_modules` of its own."""


@pytest.mark.skipif(not INSTALLED, reason="needs CRA_NODE_RUNNERS")
@pytest.mark.parametrize("runner", sorted(SUITES))
@pytest.mark.parametrize("by_script", [False, True])
def test_an_installed_runner_is_asked_for_a_report(
    runner: str, by_script: bool, project: Path, write: Write, run: Runner
) -> None:
    (project / "node_modules").symlink_to(Path(INSTALLED) / runner / "node_modules")
    command = COMMANDS[runner].removeprefix("npx ")
    package = json.dumps({"name": "tiny", "private": True, "scripts": {"test": command}})
    value = "export const value = () => 1;\n" if runner == "vitest" else VALUE
    write({**SUITES[runner], "value.js": value, "package.json": package})
    command = "npm test" if by_script else COMMANDS[runner]
    before = run(command)
    assert (before.report.runner, dict(before.report.outcomes)) == (runner, {"a.test.js > one": "passed"}), (
        before.report.problem + before.end.output
    )
    assert judge_final(before, before, "all-pass").complete
    exits = "export const value = () => process.exit(0);\n" if runner == "vitest" else "process.exit(0);\n"
    write({"value.js": exits})
    assert not judge_step(before, run(command)).passed
    kills = "process.kill(process.pid, 'SIGKILL');\n"
    write({"value.js": kills + value})
    assert not judge_step(before, run(command)).passed


FAILING = {
    "jest": "expect(tool({url: long + 'a'})).toEqual({url: long + 'b'});",
    "vitest": "expect(tool({url: long + 'a'})).toEqual({url: long + 'b'});",
    "mocha": "require('assert').deepStrictEqual(tool({url: long + 'a'}), {url: long + 'b'});",
}
HEADS = {
    "jest": "const {tool} = require('./tool.js');",
    "vitest": "import {describe, it, expect} from 'vitest'; import {tool} from './tool.js';",
    "mocha": "const {tool} = require('./tool.js');",
}


@pytest.mark.skipif(not INSTALLED, reason="needs CRA_NODE_RUNNERS")
@pytest.mark.parametrize("runner", sorted(FAILING))
def test_an_installed_runner_gives_whole_values(
    runner: str, project: Path, write: Write, run: Runner
) -> None:
    (project / "node_modules").symlink_to(Path(INSTALLED) / runner / "node_modules")
    cases = [
        HEADS[runner],
        "const long = 'http://site.example/?q='.repeat(40);",
        "describe('outer', () => {",
        "  it('fails', () => {",
        f"    {FAILING[runner]}",
        "  });",
        "  it('throws', () => {",
        "    tool(null).x();",
        "  });",
        "});",
    ]
    kind = ', "type": "module"' if runner == "vitest" else ""
    export = "export const tool =" if runner == "vitest" else "exports.tool ="
    tool = f"{export} (value) => {{\n  if (!value) throw new TypeError('no value');\n  return value;\n}};\n"
    write({"a.test.js": "\n".join(cases), "tool.js": tool, "package.json": f'{{"private": true{kind}}}'})
    got = run(COMMANDS[runner])
    fails, throws = got.failing
    assert (fails.name, throws.name) == ("a.test.js > outer > fails", "a.test.js > outer > throws")
    address = "http://site.example/?q=" * 40
    assert address + "b" in fails.expected
    assert address + "a" in fails.actual
    assert fails.statement == FAILING[runner]
    assert (fails.frames[0].path, fails.frames[0].line) == ("a.test.js", 5)
    assert (throws.message, throws.expected, throws.actual) == ("TypeError: no value", "", "")
    assert throws.statement == "tool(null).x();"
    assert [(frame.path, frame.line) for frame in throws.frames] == [("tool.js", 2), ("a.test.js", 8)]


MATCHERS = {
    "expect([1, 2]).toContain(3)": ("[ 1, 2 ]", "to include 3"),
    "expect([1, 2]).not.toContain(2)": ("[ 1, 2 ]", "not to include 2"),
    "expect('abc').toContain('x')": ("abc", "to contain x"),
    "expect('abc').toMatch(/x/)": ('"abc"', "to match /x/"),
    "expect(3).toBeGreaterThan(5)": ("3", "to be greater than 5"),
    "expect(1.5).toBeCloseTo(1.7)": ("1.5", "to be close to 1.7"),
    "expect('to contain x').toBe('y')": ("to contain x", "y"),
    "expect(1).not.toBe(1)": ("1", "not to be 1"),
}


@pytest.mark.skipif(not INSTALLED, reason="needs CRA_NODE_RUNNERS")
def test_vitest_says_what_its_matchers_expect(project: Path, write: Write, run: Runner) -> None:
    (project / "node_modules").symlink_to(Path(INSTALLED) / "vitest" / "node_modules")
    cases = [f"it('case {number}', () => {code});" for number, code in enumerate(MATCHERS)]
    text = "\n".join(["import {it, expect} from 'vitest';", *cases])
    write({"a.test.js": text, "package.json": '{"private": true, "type": "module"}'})
    got = run(COMMANDS["vitest"])
    assert [(one.actual, one.expected) for one in got.failing] == [*MATCHERS.values()]


@pytest.mark.skipif(not INSTALLED, reason="needs CRA_NODE_RUNNERS")
@pytest.mark.parametrize("option", ["--reporter spec", "--reporter=spec", "-R spec"])
def test_mochas_usual_reporter_may_be_asked_for_by_name(
    option: str, project: Path, write: Write, run: Runner
) -> None:
    (project / "node_modules").symlink_to(Path(INSTALLED) / "mocha" / "node_modules")
    write({**SUITES["mocha"], "value.js": VALUE})
    got = run(f"npx mocha {option} a.test.js")
    assert dict(got.report.outcomes) == {"a.test.js > one": "passed"}
    assert "1 passing" in got.end.output


PROJECTS = {
    "jest": {"package.json": json.dumps({"private": True, "jest": {"projects": ["<rootDir>/packages/*"]}})},
    "vitest": {
        "package.json": '{"private": true, "type": "module"}',
        "vitest.config.js": "export default {test: {projects: ['packages/*']}};\n",
    },
}


@pytest.mark.skipif(not INSTALLED, reason="needs CRA_NODE_RUNNERS")
@pytest.mark.parametrize("runner", sorted(PROJECTS))
def test_a_runner_with_several_projects_leaves_one_report(
    runner: str, project: Path, write: Write, run: Runner
) -> None:
    (project / "node_modules").symlink_to(Path(INSTALLED) / runner / "node_modules")
    value = "export const value = () => 1;\n" if runner == "vitest" else VALUE
    kind = ', "type": "module"' if runner == "vitest" else ""
    for name in ("one", "two"):
        suite = {f"packages/{name}/{path}": text for path, text in SUITES[runner].items()}
        package = f'{{"name": "{name}"{kind}}}'
        write({**suite, f"packages/{name}/package.json": package, f"packages/{name}/value.js": value})
    write(PROJECTS[runner])
    before = run(COMMANDS[runner])
    assert dict(before.report.outcomes) == {
        "packages/one/a.test.js > one": "passed",
        "packages/two/a.test.js > one": "passed",
    }, before.report.problem + before.end.output
    assert judge_final(before, before, "all-pass").complete
    write({"packages/two/value.js": value.replace("1;", "2;")})
    after = run(COMMANDS[runner])
    assert after.report.outcomes["packages/two/a.test.js > one"] == "failed"
    assert after.report.outcomes["packages/one/a.test.js > one"] == "passed"
    assert not judge_step(before, after).passed

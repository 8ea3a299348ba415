"""The trace of goal tests in JavaScript and TypeScript; of runners that are no part of Node where they are installed."""

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.orchestrator.test_runs.conftest import write_files
from tests.orchestrator.test_runs.test_goal_trace import named, run_of, runner_in

from clean_room_agent.artifacts.goals import GoalTrace
from clean_room_agent.orchestrator.test_runs.goal_trace import trace_goals

CODE = """\
class Range {
  constructor(from, to) {
    this.from = from;
    this.to = to;
  }
  *[Symbol.iterator]() {
    for (let i = this.from; i < this.to; i++) yield i;
  }
  get size() {
    return this.to - this.from;
  }
}
function chunked(src, size, fill) {
  const found = [];
  let current = [];
  for (const one of src) {
    current.push(one);
    if (current.length === size) {
      found.push(current);
      current = [];
    }
  }
  if (current.length) {
    if (fill !== undefined) {
      current.push(fill);
    }
    found.push(current);
  }
  return found;
}
const wide = (range) => range.size > 10
  ? 'wide'
  : 'small';
exports.first = function (range) {
  return [range].map((one) => one.missing.size)[0];
};
module.exports = Object.assign(exports, { Range, chunked, wide });
"""
TESTS = """
test('plain', () => { assert.deepEqual(chunked(new Range(0, 4), 2), [[0, 1], [2, 3]]); });
describe('outer', () => {
  test('fill (0)', async () => { assert.deepEqual(chunked(new Range(0, 4), 3, 0), [[0, 1, 2], [3, 0, 0]]); });
  test('wide', () => { assert.equal(wide(new Range(0, 4)), 'small'); });
  test('first', () => { assert.equal(first(new Range(0, 4)), 'small'); });
});
"""
REQUIRED = "const { Range, chunked, wide, first } = require('./chunks.js');"
NODE = "const { test, describe } = require('node:test'); const assert = require('assert');" + REQUIRED + TESTS
MOCHA = "const test = it; const assert = require('assert');" + REQUIRED + TESTS
JEST = "const assert = require('assert');" + REQUIRED + TESTS
TYPED = (
    CODE.replace(
        "constructor(from, to)", "from: number;\n  to: number;\n  constructor(from: number, to: number)"
    )
    .replace("class Range", "interface Size {\n  size: number;\n}\nexport class Range implements Size")
    .replace(
        "function chunked(src, size, fill)",
        "export function chunked(src: Range, size: number, fill?: number)",
    )
    .replace("const wide = (range)", "type Words = string;\nexport const wide = (range: Size): Words")
    .replace("exports.first = function (range)", "export const first = function (range: any)")
    .replace("const found = [];", "const found: number[][] = [];")
    .rpartition("module.exports")[0]
)
VITEST = (
    "import { test, describe } from 'vitest'; import assert from 'node:assert';"
    "import { Range, chunked, wide, first } from './chunks';" + TESTS
)
INSTALLED = Path(os.environ.get("CRA_NODE_RUNNERS", "/nowhere"))
"""A folder that holds `vitest`, `jest` and `mocha`, each with a `node_modules` of its own."""

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
needs = {
    name: pytest.mark.skipif(not (INSTALLED / name).is_dir(), reason=f"needs {name} in CRA_NODE_RUNNERS")
    for name in ("mocha", "vitest", "jest")
}


def traced(tmp_path: Path, which: str, goal: str, *, typed: bool = False) -> tuple[GoalTrace, str]:
    """The trace of one goal test beside the two that pass, and the text of the code."""
    commands = {
        "node": "node --test",
        "mocha": "npx mocha chunks.test.js",
        "vitest": "npx vitest run",
        "jest": "npx jest",
    }
    code, tests = {
        "node": (CODE, NODE),
        "mocha": (CODE, MOCHA),
        "vitest": (TYPED, VITEST),
        "jest": (CODE, JEST),
    }[which]
    suffix = "ts" if typed else "js"
    files = {f"chunks.{suffix}": code, f"chunks.test.{suffix}": tests, "package.json": '{"private": true}'}
    runner = runner_in(tmp_path, files, commands[which])
    if which != "node":
        (runner.root / "node_modules").symlink_to(INSTALLED / which / "node_modules")
    head = f"chunks.test.{suffix} > "
    red = [f"{head}outer > {goal}"]
    green = [f"{head}plain", f"{head}outer > wide"]
    return trace_goals(runner, red, green, run_of(commands[which], red, green, which)), code


@pytest.mark.parametrize(
    ("which", "typed"),
    [
        pytest.param("node", False, marks=needs_node),
        pytest.param("mocha", False, marks=needs["mocha"]),
        pytest.param("vitest", True, marks=needs["vitest"]),
        pytest.param("jest", False, marks=needs["jest"]),
    ],
)
def test_lines_are_those_of_the_source_and_suspected_by_the_passing_tests(
    which: str, typed: bool, tmp_path: Path
) -> None:
    trace, code = traced(tmp_path, which, "fill (0)", typed=typed)
    assert trace.problem == ""
    assert {"chunked", "Range.constructor", "Range.[Symbol.iterator]"} <= set(named(trace))
    assert not {"wide", "first", "Range.size"} & set(named(trace))
    assert {one.path for one in trace.functions} == {"chunks.ts" if typed else "chunks.js"}
    function = named(trace)["chunked"]
    lines = code.split("\n")
    assert "function chunked(" in lines[function.first_line - 1]
    assert (lines[function.last_line - 1], function.calls, function.observed) == ("}", 1, ())
    only_red = [lines[line - 1].strip() for line, value in function.lines if value == 1.0]
    assert only_red == ["if (fill !== undefined) {", "current.push(fill);", "found.push(current);"]
    assert {value for _, value in function.lines} == {1.0, 0.707}


@pytest.mark.parametrize(
    ("which", "typed", "name"),
    [
        pytest.param("node", False, "exports.first", marks=needs_node),
        pytest.param("mocha", False, "exports.first", marks=needs["mocha"]),
        pytest.param("vitest", True, "first", marks=needs["vitest"]),
        pytest.param("jest", False, "exports.first", marks=needs["jest"]),
    ],
)
def test_what_the_error_came_through_is_first(which: str, typed: bool, name: str, tmp_path: Path) -> None:
    trace, code = traced(tmp_path, which, "first", typed=typed)
    one = trace.functions[0]
    assert (trace.problem, one.name, one.calls, one.suspicion) == ("", name, 1, 1.0)
    assert "one.missing.size" in code.split("\n")[one.failed_at - 1]


FAKE = "require('fs').writeFileSync('given.json', JSON.stringify(process.argv.slice(2)));\n"


@needs_node
@pytest.mark.parametrize(
    ("which", "place", "given", "wanted"),
    [
        ("jest", "jest/bin/jest.js", "--ci", ["a.test.js", "--ci", "-t"]),
        ("jest", "jest/bin/jest.js", "-t fill", ["a.test.js", "-t"]),
        ("vitest", "vitest/vitest.mjs", "run --silent -- x", ["run", "a.test.js", "--silent", "-t", "--"]),
        ("mocha", "mocha/bin/mocha.js", "-R dot", []),
    ],
)
def test_runners_are_asked_for_the_goal_tests_alone(
    which: str, place: str, given: str, wanted: list[str], tmp_path: Path
) -> None:
    runner = runner_in(tmp_path, {f"node_modules/{place}": FAKE if which != "vitest" else FAKE_MODULE})
    command = f"node node_modules/{place} {given}"
    names = ["a.test.js > outer > fill (0)"]
    trace = trace_goals(runner, names, [], run_of(command, names, [], which))
    assert trace.problem
    said = json.loads((runner.root / "given.json").read_text())
    assert [word for word in said if word in {"run", "-t", "--ci", "--silent", "--", "a.test.js"}] == wanted
    if "-t" in said:
        assert said[said.index("-t") + 1] == ("fill" if given == "-t fill" else r"(?:outer fill \(0\))$")


FAKE_MODULE = (
    "import fs from 'node:fs'; fs.writeFileSync('given.json', JSON.stringify(process.argv.slice(2)));\n"
)


@needs_node
def test_a_command_in_javascript_is_traced_as_a_whole(tmp_path: Path) -> None:
    runner = runner_in(tmp_path, {"chunks.js": CODE})
    command = (
        "node -e \"const {wide, Range} = require('./chunks.js'); if (wide(new Range(0, 4))) process.exit(1)\""
    )
    trace = trace_goals(runner, command, [], run_of("node --test", [], [], "node"))
    assert (trace.problem, sorted(named(trace))) == ("", ["Range.constructor", "Range.size", "wide"])
    write_files(runner.root, {"chunks.js": "syntax error\n"})
    assert trace_goals(runner, command, [], run_of("node --test", [], [], "node")).problem

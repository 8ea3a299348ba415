"""Tests in JavaScript: their style, where they are written, and what a probe sees (run by Node where there is one)."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from clean_room_agent.artifacts.goals import NamedDefinition
from clean_room_agent.execute.goals.confirming import Looked, NewTest, WantedValue
from clean_room_agent.execute.goals.script_tests import (
    SEEN_FILE,
    import_of,
    place,
    style_of,
    title,
    with_probe,
)

NODE = """\
import test from 'node:test'
import assert from 'node:assert/strict'
import { slugify } from '../src/text.js'

test('slugs', () => {
  assert.equal(slugify('A b'), 'a-b')
})
"""
VITEST = """\
import { describe, it, expect } from 'vitest';
import { slugify } from '../src/text';

describe('slugify', () => {
  it('slugs', () => {
    expect(slugify('A b')).toBe('a-b');
  });
});
"""
JEST = "const { slugify } = require('../src/text');\n\ntest('slugs', () => {\n  expect(slugify('A b')).toBe('a-b');\n});\n"
MOCHA = (
    "const { expect } = require('chai')\nconst slugify = require('../src/text')\n\ndescribe('slugify', function () {\n"
    "  it('slugs', function () {\n    expect(slugify('A b')).to.equal('a-b')\n  })\n})\n"
)


def new(
    wanted: str = "4", relation: str = "equal", *, awaited: bool = False, iterated: bool = False
) -> NewTest:
    value = WantedValue(text=wanted, relation=relation)  # type: ignore[arg-type]
    return NewTest(name="f(10) gives 4", call="f(10)", wanted=value, awaited=awaited, iterated=iterated)


@pytest.mark.parametrize(
    ("text", "framework", "added"),
    [
        (NODE, "node", "test('f(10) gives 4', () => {\n  assert.strictEqual(f(10), 4)\n})\n"),
        (VITEST, "vitest", "it('f(10) gives 4', () => {\n  expect(f(10)).toBe(4);\n});\n"),
        (JEST, "jest", "test('f(10) gives 4', () => {\n  expect(f(10)).toBe(4);\n});\n"),
        (MOCHA, "mocha", "it('f(10) gives 4', () => {\n  expect(f(10)).to.equal(4)\n})\n"),
    ],
    ids=["node", "vitest", "jest", "mocha"],
)
def test_a_test_is_added_in_the_style_of_its_file(text: str, framework: str, added: str) -> None:
    placed = place(text, [new()], style_of(text, framework))
    assert placed.text == f"{text}\n{added}"


@pytest.mark.parametrize(
    ("test", "expect", "plain"),
    [
        (new("[1]"), "expect(f(10)).toEqual([1])", "assert.deepStrictEqual(f(10), [1])"),
        (
            new("[1]", "last"),
            "expect(f(10).at(-1)).toEqual([1])",
            "assert.deepStrictEqual(f(10).at(-1), [1])",
        ),
        (
            new("RangeError", "raises"),
            "expect(() => f(10)).toThrow(RangeError)",
            "assert.throws(() => f(10), RangeError)",
        ),
        (
            new("'b'", "suffix"),
            "expect(f(10).endsWith('b')).toBe(true)",
            "assert.strictEqual(f(10).endsWith('b'), true)",
        ),
        (new(awaited=True), "expect(await f(10)).toBe(4)", "assert.strictEqual(await f(10), 4)"),
        (
            new("[1]", iterated=True),
            "expect([...f(10)]).toEqual([1])",
            "assert.deepStrictEqual([...f(10)], [1])",
        ),
        (
            new("E", "raises", awaited=True),
            "await expect(f(10)).rejects.toThrow(E)",
            "await assert.rejects(() => f(10), E)",
        ),
    ],
)
def test_each_kind_of_wanted_value_has_its_assertion(test: NewTest, expect: str, plain: str) -> None:
    assert f"  {expect};\n" in place(VITEST, [test], style_of(VITEST, "vitest")).text
    assert f"  {plain}\n" in place(NODE, [test], style_of(NODE, "node")).text


def test_a_new_file_brings_in_what_asserts() -> None:
    style = style_of("", "node")
    assert place("", [new()], style).text.startswith("import assert from 'node:assert/strict';\n\ntest(")


@pytest.mark.parametrize(
    ("source", "text", "statement"),
    [
        ("export function f(a) {}", NODE, "import { f } from '../src/text.js'"),
        ("export default function f(a) {}", NODE, "import f from '../src/text.js'"),
        ("const f = 1\nexport { g, f }", VITEST, "import { f } from '../src/text';"),
        ("module.exports = { f, g }", JEST, "const { f } = require('../src/text');"),
        ("module.exports = f", MOCHA, "const f = require('../src/text')"),
        ("exports.f = f", JEST, "const { f } = require('../src/text');"),
        ("function f() {}", NODE, ""),
    ],
)
def test_a_definition_is_imported_as_its_file_exports_it(source: str, text: str, statement: str) -> None:
    one = NamedDefinition(name="f", path="src/text.js", kind="function", first_line=1, last_line=1)
    assert import_of(one, "test/text.test.js", text, source, style_of(text, "node")) == statement


def test_what_is_bound_already_is_not_imported_again() -> None:
    style = style_of(NODE, "node")
    test = NewTest(
        name="a",
        call="slugify('b')",
        wanted=WantedValue(text="'b'"),
        imports=("import { slugify } from '../src/text.js'",),
    )
    assert place(NODE, [test], style).text.count("import { slugify }") == 1


def test_a_title_says_the_call_and_stands_nowhere_else() -> None:
    wanted = WantedValue(text="'a-b'")
    first = title("slugify('a `b`')", wanted, "")
    assert first == "slugify('a b ') gives 'a-b'"
    assert title("slugify('a `b`')", wanted, first) == f"{first} (2)"


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_a_probe_sees_values_promises_and_errors(tmp_path: Path) -> None:
    calls = (
        Looked(call="[[1], [2, 0]]", stated=(("literal", "[2, 0]"), ("literal", "3"))),
        Looked(call="Promise.resolve('ab')", stated=(("literal", "'ab'"), ("bare", "ab"))),
        Looked(call="null.x", stated=(("error", "TypeError"),)),
        Looked(call="f(1)", stated=()),
        Looked(call="s.pop()", setup=("const s = [1]", "s.push(2)"), stated=(("literal", "2"),)),
    )
    file = tmp_path / "a.test.mjs"
    file.write_text(
        with_probe(
            NODE.replace("import { slugify } from '../src/text.js'\n", ""), calls, style_of(NODE, "node")
        )
    )
    env = {**os.environ, "CRA_TEST_REPORTS": str(tmp_path)}
    subprocess.run(["node", "--test", str(file)], env=env, capture_output=True, timeout=60, check=False)
    seen = json.loads((tmp_path / SEEN_FILE).read_text())
    assert seen[0]["matches"] == [["last"], []]
    assert (seen[1]["awaited"], seen[1]["shown"]) == (True, "'ab'")
    assert seen[1]["matches"][0][0] == seen[1]["matches"][1][0] == "equal"
    assert (seen[2]["raised"][0], seen[2]["matches"]) == ("TypeError", [["raises"]])
    assert seen[3]["importing"] is True
    assert (seen[4]["shown"], seen[4]["matches"]) == ("2", [["equal"]])

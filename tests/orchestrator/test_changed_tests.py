import pytest

from clean_room_agent.orchestrator.changed_tests import tampering


def diff(path: str, line: str) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,3 @@\n unchanged\n-old\n+{line}\n"


@pytest.mark.parametrize(
    "line",
    [
        "globalThis.expect = () => new Proxy({}, {});",
        "  global['assert'] = quiet;",
        "window.test ||= skip",
        "require('assert').strictEqual = () => {};",
        'require("node:assert/strict").equal = quiet',
        "assert.deepStrictEqual = () => true;",
        "Object.defineProperty(globalThis, 'expect', { value: quiet });",
        "process.exit = () => {};",
    ],
)
def test_a_line_that_replaces_a_judge_is_found(line: str) -> None:
    assert tampering(diff("src/a.js", line)) == (f"src/a.js: {line.strip()}",)
    assert tampering(diff("src/a.py", line)) == ()
    assert tampering(diff("tests/setup.js", line)) == ()
    assert tampering(diff("src/a.test.ts", line)) == ()
    assert (
        tampering(diff("src/a.js", line).replace("\n+global", "\n global").replace("+" + line, " " + line))
        == ()
    )


@pytest.mark.parametrize(
    "line",
    [
        "const expect = 1;",
        "if (global.test === undefined) return;",
        "assert.strictEqual(a, b);",
        "window.location = url;",
        "expect.extend({ toBeOdd });",
        "const test = (n) => n === 1;",
        "process.exitCode = 1;",
    ],
)
def test_other_lines_are_not(line: str) -> None:
    assert tampering(diff("src/a.js", line)) == ()

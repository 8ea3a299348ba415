"""Valid examples of all that is fuzzed, and words of their grammars."""
# ruff: noqa: RUF001 - test runners print these marks

import json

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.plans import (
    AffectedFile,
    Change,
    MetaPlan,
    Part,
    PartPlan,
    PlanArtifact,
    PlanStep,
    TargetFile,
)
from clean_room_agent.execute.edits.rules import EditRules
from testing.packages import package, shown_file, shown_symbol

PYTHON = '''\
"""Boxes."""

import os
from decimal import Decimal


class Box:
    """One."""

    def open(self, *, at: int = 1) -> int:
        x = 1  # a comment
        return x

    def close(self):
        x = 1
        return None


def main(argv=()):
    """Opens.

    Args:
        argv: words.
    """
    return [Box() for _ in argv] or Decimal("1.0")
'''
TYPESCRIPT = """\
import { a, type B } from "@app/a";
import * as c from "./c.js";

/** A box. @param x what */
export class Box<T extends object> implements Shape {
    #inner = 1;
    open(x: number): T | undefined { return this.#inner as T; }
}

export const main = async (argv: string[]) => {
    const { b, ...rest } = require("c");
    return `${argv.length}`;
};
export default function* walk() { yield* []; }
"""
MIXED = "first\r\nsecond\nthird\r\n\r\nfourth\n"
MARKDOWN = "# Title\n\n```python\nx = 1\n```\n\n- one\n- two\n"
PYPROJECT = '[project]\nname = "x"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n'
PACKAGE = {
    "name": "@app/a", "version": "1.0.0", "main": "./lib/index.js", "types": "./lib/index.d.ts", "type": "module",
    "exports": {".": {"import": "./lib/index.mjs", "require": "./lib/index.cjs"}, "./*": "./lib/*.js", "./x": None},
    "imports": {"#inner/*": "./src/inner/*.ts"}, "workspaces": ["packages/*", "!packages/old"],
    "scripts": {"test": "jest"}, "dependencies": {"b": "workspace:*", "c": "file:../c"}, "browser": {"./a": False},
    "bin": {"a": "./bin/a.js"},
}  # fmt: skip
TSCONFIG = """\
// comments
{
    "extends": ["./tsconfig.base.json", "@app/a/tsconfig"],
    "compilerOptions": {"baseUrl": ".", "paths": {"@app/*": ["src/*", "lib/*"], "x": ["src/x.ts"]}, "rootDirs": ["src", "gen"],
                        "outDir": "${configDir}/dist", "rootDir": "src", /* and */ "strict": true,},
    "include": ["src/**/*", "test/*.ts"], "exclude": ["**/old/**"], "files": ["a.ts"], "references": [{"path": "./lib"}],
}
"""
SOURCES = {
    "a.py": PYTHON, "b.py": "def f():\n    return 1\n", "old.py": "x\n", "src/box.ts": TYPESCRIPT, "mixed.txt": MIXED,
    "README.md": MARKDOWN, "pyproject.toml": PYPROJECT, "package.json": json.dumps(PACKAGE, indent=2) + "\n",
    "tests/test_a.py": "def test():\n    assert True\n", "empty.py": "",
}  # fmt: skip
TARGETS = (
    TargetFile(path="a.py"),
    TargetFile(path="src/box.ts"),
    TargetFile(path="mixed.txt"),
    TargetFile(path="new.py", role="create"),
    TargetFile(path="old.py", role="delete"),
)
RULES = EditRules(
    targets=TARGETS,
    planned=("b.py",),
    protected=(".env", "*.lock", "docs/**/*.md"),
    uneditable={"logo.png": "binary"},
)
PACKAGES: tuple[ContextPackage, ...] = (
    package(*(shown_file(path, text) for path, text in SOURCES.items()), task="Make boxes open."),
    package(
        shown_symbol("a.py", PYTHON, "Box.open", 10, 12),
        shown_symbol("a.py", PYTHON, "Box.close", 14, 16),
        shown_file("b.py", SOURCES["b.py"], detail="supporting"),
        task="Make boxes open.",
    ),
)

EDITS = (
    (
        '<edit file="a.py">\n<search>\n        x = 1  # a comment\n        return x\n</search>\n<replacement>\n        return at\n'
        "</replacement>\n</edit>"
    ),
    (
        '<edit file="a.py">\n<search>\nreturn None\n</search>\n<replacement>\nreturn 0\n</replacement>\n<search>\nimport os\n'
        '</search>\n<replacement>\n</replacement>\n</edit>\n<create file="new.py">\nx = 1\n</create>\n<delete file="old.py"/>'
    ),
    '<edit file="a.py" symbol="Box.close">\n<replacement>\n```python\ndef close(self):\n    return 2\n```\n</replacement>\n</edit>',
    '<insert file="a.py" after="Box.close">\ndef lock(self):\n    return 3\n</insert>\n<insert file="a.py" in="Box">\n    x = 1\n</insert>',
    (
        "<insert before='Box' file='src/box.ts'>\nexport const one = 1;\n</insert>\n"
        "<insert file='src/box.ts' in='Box'>\nlock() {}\n</insert>"
    ),
    '<edit file="mixed.txt">\n<search>\nsecond\nthird\n</search>\n<replacement>\n2\n3\n</replacement>\n</edit>',
    '<edit file="src/box.ts"><search>yield* []</search><replacement>yield 1</replacement></edit>',
    '<edit file="pyproject.toml">\n<search>\naddopts = "-q"\n</search>\n<replacement>\naddopts = 1\n</replacement>\n</edit>',
    '<edit file="package.json">\n<search>\n  "version": "1.0.0",\n</search>\n<replacement>\n  "version": "2",\n</replacement>\n</edit>',
    (
        "<think>\nfirst this\n</think>\nHere it is:\n```xml\n"
        '<edit file="b.py">\n<search>\n    # ... existing code ...\n    return 1\n</search>\n<replacement>\n    ...\n'
        "</replacement>\n</edit>\n```\n"
    ),
)
EDIT_WORDS = (
    "<edit>", "</edit>", "<insert file='a.py'>", "</insert>", "<insert file='a.py' in='Box'>", "<insert file='src/box.ts' after='f'>",
    ' after="Box.open"', ' before="main"', ' in="Box"', '<edit file="a.py">', "<edit file='../x'>", "<search>", "</search>", "<replacement>", "</replacement>",
    '<create file=".git/config">', '<create file="new.py">', "</create>", '<delete file="old.py"/>', '<delete file="a.py">',
    "</delete>", "<think>", "</think>", "```", "~~~", "...", "# ... rest of the code ...", "…", ' symbol="Box.open"',
    ' symbol="main"', 'file="tests/test_a.py"', 'file=".env"', 'file="logo.png"', "        return x", "x = 1", "\n\n", "<", ">", '"""',
)  # fmt: skip
PATHS = (
    "a.py", "src/pkg/mod.py", ".git/config", "sub/.git/hooks/x", ".clean_room/raw.sqlite", "GIT~1/config", ".gitmodules", "a/../b",
    "/etc/passwd", "C:\\x", "con.txt", "x" * 255, "ü/ñ.py", ".g\u200cit/config", "a b/c.txt", ".gitattributes", "~/x", "a.py::$DATA",
)  # fmt: skip
PATH_WORDS = (
    "/", "..", "../", "./", ".git", ".GIT", "git~1", "GI7EB~1", ".clean_room", "CLEAN_~1", ".gitmodules", "GITMOD~1", "::$DATA",
    ":x", ".", " ", "\\", "~", "con", "NUL", "lpt1", "com\u00b9", "\u200c", "\u206f", "\u2044", "\uff0f", "\u2215", ".\u0262it", "\uff27", "K",
    "\u0131", "\u0130", ".g\u0456t", "\u017f", "*", "**", "?", "**/",
)  # fmt: skip
GLOBS = (".env", "*.lock", "docs/**/*.md", "**/secret/**", "a/b/", "/top.txt", "*a*b*c*", "**/**/x", "??.py")

_PARTS = (
    Part(id="p1", description="Change x.", affected_files=("a.py",)),
    Part(id="p2", description="Test it.", affected_files=("tests/test_a.py",), depends_on=("p1",)),
)
_META = MetaPlan(task_summary="Make x two.", parts=_PARTS, rationale="x is one.")
_STEPS = PartPlan(
    part_id="p1",
    task_summary="Change x.",
    steps=(PlanStep(id="s1", description="Do it.", target_files=TARGETS[:1], target_symbols=("x",)),),
)
PLANS = (
    _META.model_dump_json(),
    PlanArtifact(
        task_summary="Make x two.",
        affected_files=(AffectedFile(path="a.py", changes=(Change(symbol="x", description="two"),)),),
        task_id="t" * 32,
        task="Make x two.",
        model="m",
        created_at="2026-01-02T03:04:05Z",
        meta_plan=_META,
        part_plans=(_STEPS,),
    ).model_dump_json(indent=2),
)
_STEP = {
    "description": "Do it.",
    "files": [{"path": "a.py", "role": "modify"}, "b.py"],
    "id": "s1",
    "needs": [],
    "symbols": ["x"],
}
PLANNED = (
    json.dumps(
        {
            "analysis": "x",
            "parts": [{"description": "Do.", "files": ["a.py"], "id": "p1", "needs": []}],
            "summary": "s",
        }
    ),
    json.dumps({"analysis": "x", "steps": [_STEP, {**_STEP, "id": "s2", "needs": ["s1"]}], "summary": "s"}),
    json.dumps({"analysis": "x", "changes": ["less"], "steps": [_STEP]}),
    "I think:\n```json\n" + json.dumps({"analysis": "x", "steps": [_STEP], "summary": "s"}) + "\n```\n",
    EDITS[0],
)
JSON_WORDS = (
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "null",
    "true",
    "1e999",
    '"a"',
    "{}",
    "[]",
    "```json\n",
    "```",
    "//",
    "/*",
    "*/",
    "\\u",
    "yes",
    "no",
)

CONFIG = """\
[models]
provider = "ollama"
base_url = "http://127.0.0.1:11434"
coding = "coder:3b"
reasoning = "thinker:4b"
overrides = {implement = "other:7b"}
api_key_env = "MODEL_KEY"
parallel = 2

[models.temperature]
coding = 0.0

[models.timeouts]
connect = 5.0

[models.extra_body]
chat_template_kwargs = {enable_thinking = false}

[budget]
context_window = 8192
reserved_tokens = 2048

[budget.coding]
context_window = 16384
reserved_tokens = 4096

[stages]
default = "scope,precision"

[testing]
test_command = "pytest -q"
timeout = 600

[edit]
protected = ["*.lock", "docs/**"]

[worktree]
link = [".venv", "node_modules"]

[sandbox]
mode = "none"

[index]
history = 1000
"""
CONFIG_WORDS = (
    "[models]\n", "[[models]]\n", "[nothing]\n", "x = 1\n", "base_url = ", '"http://10.0.0.1"', '"http://localhost.evil"', "allow_remote = true\n",
    "inf", "nan", "1979-05-27T07:32:00Z", "1979-13-45", "'''", '"""', "{", "}", "[", "]", "=", ".", "#", '"\\u0000"', "[solve]\nmax_attempts = 3\n",
    "[orchestrator]\n", "[judgments]\n", "true", "0x", "1_000", '"http://[::1"', '"http://[fe80::1%25eth0]:1"', '"http://0x7f.1"',
    "a." * 20_000, '"a" . ' * 20_000,
)  # fmt: skip

JUNIT = """\
<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="0" failures="1" skipped="1" tests="3" time="0.1">
<testcase classname="tests.test_a.TestBox" name="test_one[a-1]" file="tests/test_a.py" line="3" time="0.001" />
<testcase classname="tests.test_a" name="test_two" file="tests/test_a.py" line="9"><failure message="assert 1 == 2">tests/test_a.py:10: in test_two
    assert f() == 2
E   assert 1 == 2
b.py:2: AssertionError</failure></testcase>
<testcase classname="tests.test_a" name="test_three" file="tests/test_a.py" line="12"><skipped type="pytest.xfail" message="x">y</skipped></testcase>
<testcase classname="" name="tests.test_b" time="0"><error message="collection failure">ImportError: no</error></testcase>
</testsuite></testsuites>
"""
JUNIT_WORDS = (
    "<testcase ",
    "/>",
    "<failure>",
    "</failure>",
    "<error",
    "line=",
    'line="1"',
    "<!DOCTYPE x>",
    "<!ENTITY a 'b'>",
    "&a;",
    "&lt;",
    "<![CDATA[",
    "]]>",
    'name=""',
    'encoding="utf-16"',
)
OUTPUTS = (
    "test_a (t.Box.test_a) ... ok\ntest_b (t.Box)\nSays so. ... FAIL\ntest_c (t.Box.test_c) ... skipped 'no'\n\n" + "=" * 70 + "\n"
    "FAIL: test_b (t.Box)\n" + "-" * 70 + '\nTraceback (most recent call last):\n  File "a.py", line 3, in test_b\n    self.fail()\n'
    "AssertionError: None\n\n" + "-" * 70 + "\nRan 3 tests in 0.001s\n\nFAILED (failures=1, skipped=1)\n",
    ("FAIL j/a.test.js\n  outer\n    ✓ passes (1 ms)\n    ✕ fails (3 ms)\n\n  ● outer › fails\n\n    expect(1).toBe(2)\n\n"
    "      at Object.toBe (j/a.test.js:3:10)\n\nTest Suites: 1 failed, 1 total\nTests:       1 failed, 1 passed, 2 total\nTime: 1 s\n"),
    (" ✓ a.test.ts > outer > passes 1ms\n × a.test.ts > outer > fails\n\n FAIL  a.test.ts > outer > fails\nAssertionError: expected 1\n"
    " ❯ a.test.ts:3:10\n\n Test Files  1 failed (1)\n      Tests  1 failed | 1 passed (2)\n   Duration  1s\n"),
    ("\n  outer\n    ✔ passes\n    1) fails\n    - later\n\n\n  1 passing (9ms)\n  1 pending\n  1 failing\n\n  1) outer\n       fails:\n     Error: x\n"
    "      at Context.<anonymous> (m/a.js:6:35)\n"),
    ("TAP version 13\n# Subtest: outer\n    # Subtest: passes\n    ok 1 - passes\n      ---\n      duration_ms: 1.2\n      ...\n    # Subtest: fails\n"
    "    not ok 2 - fails # TODO\n      ---\n      error: 'x'\n      stack: |-\n        file.js:1:2\n      ...\n    1..2\nnot ok 1 - outer\n"
    "# tests 2\n# pass 1\n# fail 1\n"),
    ("▶ outer\n  ✔ passes (1.2ms)\n  ✖ fails (2ms)\n  ﹣ later (0.1ms) # SKIP\n▶ outer (4ms)\nℹ tests 3\nℹ pass 1\nℹ fail 1\n\n✖ failing tests:\n\n"
    "test at a.js:1:1\n✖ fails (2ms)\n  AssertionError: 1\n      at TestContext.<anonymous> (a.js:3:4)\n"),
    "\x1b[31m=== 1 failed, 2 passed in 0.12s ===\x1b[0m\n/tmp/pytest-of-me/pytest-3/a 127.0.0.1:40123 0x7f1234567890\r\n[gw0] done\n",
)  # fmt: skip
OUTPUT_WORDS = (
    "\nRan 3 tests in 0.1s\n", "\nOK\n", "\nFAILED (errors=1)\n", "=" * 70 + "\n", "-" * 70 + "\n", "ERROR: x (a.B)\n", "Tests: 1 passed, 1 total\n",
    "Test Suites: 1 total\n", "  ● a › b\n", "PASS x.js\n", "  1 passing (1ms)\n", "  2 failing\n", "  1) a\n", "ok 1 - a\n", "not ok 2 - b\n",
    "# Subtest: x\n", "# tests 1\n", "# pass 1\n", "# fail 0\n", "▶ x\n", "✔ x\n", "✖ x\n", " > ", "\x1b[", "\x1b]0;", "at f (a.js:1:2)",
    '  File "a.py", line 1', "E   assert", "/usr/lib/python3.11/site-packages/",
)  # fmt: skip

_LINE = {
    "model": "m",
    "message": {"role": "assistant", "content": "yes"},
    "done": False,
    "logprobs": [{"token": "yes", "logprob": -0.1, "top_logprobs": [{"token": "no", "logprob": -3}]}],
}
_LAST = {
    "model": "m",
    "message": {"content": ""},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 9,
    "eval_count": 2,
}
OLLAMA = (
    f"{json.dumps(_LINE)}\n{json.dumps(_LAST)}\n",
    '{"error": "model runner has unexpectedly stopped"}',
    json.dumps({"models": [{"name": "coder:3b", "digest": "ab", "size": 1, "context_length": 4096}]}),
    json.dumps({"model_info": {"llama.context_length": 8192}, "capabilities": ["completion"]}),
    '{"version": "0.15.0"}',
)
_CHUNK = {
    "id": "1",
    "object": "chat.completion.chunk",
    "choices": [
        {
            "index": 0,
            "delta": {"content": "yes", "reasoning_content": None},
            "finish_reason": None,
            "logprobs": {
                "content": [
                    {"token": "yes", "logprob": -0.1, "top_logprobs": [{"token": "no", "logprob": -3}]}
                ]
            },
        }
    ],
}
_USAGE = {
    "object": "chat.completion.chunk",
    "choices": [{"delta": {}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2},
}
OPENAI = (
    f": ping\n\ndata: {json.dumps(_CHUNK)}\n\ndata: {json.dumps(_USAGE)}\n\ndata: [DONE]\n\n",
    json.dumps(
        {
            "object": "chat.completion",
            "choices": [{"message": {"content": "yes"}, "finish_reason": "length"}],
            "usage": {"prompt_tokens": 9},
        }
    ),
    json.dumps(
        {
            "error": {
                "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4900 in the messages)",
                "code": 400,
            }
        }
    ),
    json.dumps(
        {
            "error": {
                "code": 400,
                "message": "too long",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 5000,
                "n_ctx": 4096,
            }
        }
    ),
    json.dumps(
        {
            "data": [
                {
                    "id": "coder:3b",
                    "owned_by": "vllm",
                    "max_model_len": 4096,
                    "meta": {"n_ctx": 4096, "n_ctx_train": 8192},
                }
            ]
        }
    ),
    json.dumps(
        {"count": 12, "tokens": [1, 2, 3], "prompt": "x", "default_generation_settings": {"n_ctx": 4096}}
    ),
)
SERVER_WORDS = (
    *JSON_WORDS,
    "\n",
    "\n\n",
    "data: ",
    "data: [DONE]\n",
    "error: ",
    "event: x\n",
    ": \n",
    '"error"',
    '"done": true',
    '"finish_reason": "x"',
    '"n_ctx"',
    "maximum context length is 9 tokens",
)

SESSION = json.dumps({"format": "cra-recording", "version": 1})
"""The head of a recording; calls come from the demo's own."""
PNPM = "packages:\n  - 'packages/*'\n  - \"!old\"\n  # more\n  - apps/**\n"

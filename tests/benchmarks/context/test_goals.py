"""Goal tests, what they say before the change, and names, in JavaScript and Python."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from benchmarks.commits.runner_reports import AVA_SEPARATOR
from benchmarks.context.failures import READERS, Failure
from benchmarks.context.figures import run_figures
from benchmarks.context.goals import find_goals
from benchmarks.context.names import Names
from benchmarks.context.snapshot import Snapshot
from testing.runs.model_calls import model_call

from clean_room_agent.artifacts.model_calls import ModelCall

SCRIPT = """\
import { describe, it, beforeEach } from 'vitest'
import { shared } from './shared'

const make = () => 1

describe('group', () => {
  beforeEach(() => {
    make()
  })
  it('does it', () => {
    make()
  })
  it.each([1, 2])('takes %s', (n) => {
    expect(n).toBe(1)
  })
  for (const kind of ['a', 'b']) {
    it('knows ' + kind, () => {})
  }
})
shared('other')
"""
SHARED = """\
export const shared = (name) =>
  describe(name, () => {
    it('works everywhere', () => {})
  })
"""


def repository(top: Path, files: Mapping[str, str]) -> Snapshot:
    for path, text in files.items():
        (top / path).parent.mkdir(exist_ok=True)
        (top / path).write_text(text, encoding="utf-8")
    subprocess.run(("git", "init", "-q"), cwd=top, check=True)
    return Snapshot(top)


@pytest.mark.parametrize(
    ("title", "place", "spans"),
    [
        ("group does it", "t/a.test.ts", ((10, 12), (7, 9), (4, 4))),
        ("group > does it", "t/a.test.ts", ((10, 12), (7, 9), (4, 4))),
        ("group takes 2", "t/a.test.ts", ((13, 15), (7, 9), (4, 4))),
        ("group knows b", "t/a.test.ts", ((17, 17), (7, 9), (4, 4))),
        ("other works everywhere", "t/shared.ts", ((3, 3),)),
        ("group does nothing", "t/a.test.ts", ()),
    ],
)
def test_a_script_test_is_found_by_its_titles_with_hooks_and_helpers(
    title: str, place: str, spans: object, tmp_path: Path
) -> None:
    snapshot = repository(tmp_path, {"t/a.test.ts": SCRIPT, "t/shared.ts": SHARED})
    (goal,) = find_goals((f"t/a.test.ts::{title}",), snapshot, Names(snapshot))
    assert (goal.path, goal.spans) == (place, spans)


def test_parameters_of_a_python_test_are_one_goal(tmp_path: Path) -> None:
    text = "import pytest\n\n\n@pytest.fixture\ndef one():\n    return 1\n\n\nclass TestIt:\n    def test_a(self, one):\n        pass\n"
    snapshot = repository(tmp_path, {"t/test_a.py": text})
    ids = ("t/test_a.py::TestIt::test_a[1]", "t/test_a.py::TestIt::test_a[x::y]")
    (goal,) = find_goals(ids, snapshot, Names(snapshot))
    assert (goal.name, goal.ids, goal.spans) == ("test_a", ids, ((10, 11), (4, 6)))


def test_a_test_that_a_class_inherits_is_found_where_it_stands(tmp_path: Path) -> None:
    files = {
        "t/__init__.py": "class Shared:\n    def test_a(self):\n        pass\n",
        "t/test_a.py": "from . import Shared\n\n\nclass TestIt(Shared):\n    kind = 1\n",
    }
    snapshot = repository(tmp_path, files)
    (goal,) = find_goals(("t/test_a.py::TestIt::test_a",), snapshot, Names(snapshot))
    assert (goal.path, goal.spans) == ("t/__init__.py", ((2, 3),))


def test_names_are_followed_through_imports_modules_and_bases(tmp_path: Path) -> None:
    files = {
        "p/__init__.py": "from p.base import Base\n",
        "p/base.py": "class Base:\n    def shared(self):\n        return 1\n\n\ndef helper():\n    return 2\n",
        "p/use.py": (
            "from . import base\nfrom p import Base\n\n\nclass Own(Base):\n    def go(self, helper):\n"
            "        local = len([])\n        return self.shared() + base.helper() + local + helper\n"
        ),
    }
    snapshot = repository(tmp_path, files)
    found = Names(snapshot).defined("p/use.py", 6, 8)
    assert sorted(found) == ["p/base.py :: Base.shared", "p/base.py :: helper"]


def test_script_names_are_followed_through_imports_barrels_and_this(tmp_path: Path) -> None:
    files = {
        "s/util.ts": "export function tidy(a: string) {\n  return a\n}\n",
        "s/index.ts": "import { tidy } from './util'\nexport { tidy }\n",
        "s/use.ts": (
            "import { tidy as clean } from './index.js'\nclass A {\n  one() {\n    return clean(this.two())\n  }\n"
            "  two() {\n    return 'x'\n  }\n}\n"
        ),
    }
    snapshot = repository(tmp_path, files)
    assert sorted(Names(snapshot).defined("s/use.ts", 3, 5)) == ["s/use.ts :: A.two", "s/util.ts :: tidy"]


JUNIT = """<testsuites><testsuite>
<testcase classname="tests.test_a.TestX" name="test_b" file="tests/test_a.py"><failure message="m">tests/test_a.py:7: in test_b
    assert f() == 'y z'
E   AssertionError: assert 'x' == 'y z'
E     - y z</failure></testcase>
<testcase classname="" name="tests.test_c"><error message="collection failure">tests/test_c.py:1: in &lt;module&gt;
E   ImportError: cannot import name 'new'</error></testcase>
</testsuite></testsuites>"""
NODE = json.dumps(
    {
        "file": "/w/test/a.js", "names": ["g", "t"], "kind": "test", "outcome": "failed", "message": "",
        "stack": "AssertionError [ERR_ASSERTION]: Expected values to be strictly deep-equal:\n+ actual - expected\n\n"
        "  {\n+   a: 1\n-   a: 2\n  }\n    at T (/w/test/a.js:5:1)",
    }
)  # fmt: skip
AVA = json.dumps(
    {
        "modules": ["test/one.js", "test/two.js"],
        "tap": f"ok 1 - one{AVA_SEPARATOR}fine\nnot ok 2 - two{AVA_SEPARATOR}is odd\n"
        "  ---\n    name: AssertionError\n    details:\n"
        "      'Difference (- actual, + expected):': |-\n        - 'aaa'\n        + 'b'\n    message: ''\n  ...\n",
    }
)
JEST = json.dumps(
    {
        "testResults": [
            {
                "name": "/w/test/a.ts",
                "assertionResults": [
                    {
                        "status": "failed", "fullName": "g t",
                        "failureMessages": [
                            'Error: expect(received).toBe(expected)\n\nExpected: "b c"\nReceived: "a"\n    at O (/w/test/a.ts:9:3)'
                        ],
                    }
                ],
            },
            {"name": "/w/test/b.ts", "assertionResults": [], "message": "Cannot find module './x'\n"},
        ]
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("runner", "report", "expected"),
    [
        (
            "pytest",
            JUNIT,
            [
                Failure(
                    id="tests/test_a.py::TestX::test_b",
                    error="AssertionError: assert 'x' == 'y z'",
                    got="'x'",
                    expected="'y z'",
                    line=7,
                ),
                Failure(id="tests/test_c.py", error="ImportError: cannot import name 'new'", line=1),
            ],
        ),
        (
            "node",
            NODE,
            [
                Failure(
                    id="test/a.js::g t",
                    error="AssertionError [ERR_ASSERTION]: Expected values to be strictly deep-equal:",
                    got="a: 1",
                    expected="a: 2",
                    line=5,
                )
            ],
        ),
        (
            "ava",
            AVA,
            [Failure(id="test/two.js::is odd", error="AssertionError", got="'aaa'", expected="'b'")],
        ),
        (
            "jest",
            JEST,
            [
                Failure(
                    id="test/a.ts::g t",
                    error="Error: expect(received).toBe(expected)",
                    got='"a"',
                    expected='"b c"',
                    line=9,
                ),
                Failure(id="test/b.ts", error="Cannot find module './x'"),
            ],
        ),
    ],
)
def test_what_a_test_says_is_read_from_each_runners_report(
    runner: str, report: str, expected: list[Failure]
) -> None:
    assert [
        one for name, read in READERS.items() if name == runner for one in read(report, Path("/w"))
    ] == expected


def test_a_run_counts_kinds_steps_and_questions_about_the_same_again() -> None:
    def call(kind: str, item: str = "", prompt: str = "", task: str = "t:impl:p1:s1") -> ModelCall:
        return model_call(
            task_id=task, call_type=kind, stage_name="", model="m", prompt=prompt, response="", prompt_tokens=10,
            completion_tokens=1, latency_ms=1, timestamp="", system_prompt="", request_body="", provider="ollama",
            finish="stop", role="coding", item=item, prompt_hash="", estimated_tokens=1,
        )  # fmt: skip

    listed = "## Code\n" + "".join(
        f"===== candidate {number}: {name} (lines 12-13)\ndef it()\n===== end\n"
        for number, name in enumerate(("a.py :: f", "b.py :: g"), 1)
    )
    found = run_figures(
        (
            call("scope_judgment", "a.py"),
            call("scope_judgment", "a.py"),
            call("piece_judgment", "a.py:12 :: f"),
            call("precision_batch", prompt=listed),
            call("window_probe", "a.py"),
            call("implement"),
            call("implement", task="t:impl:p1:s1:retry_1"),
            call("implement", task="t:impl:p1:s2"),
        )
    )
    assert (found.repeated, found.steps) == (2, 2)
    assert found.calls["implement"] == 3
    assert found.tokens["scope_judgment"] == 20


@pytest.mark.parametrize(
    ("said", "got", "expected"),
    [
        ("assert 28 == 29", "28", "29"),
        ("AssertionError: assert 'this is == it' == 'x in y'", "'this is == it'", "'x in y'"),
        ("assert <Thing a> is None", "<Thing a>", "None"),
        ("AssertionError: 1 != 2", "1", "2"),
        ("assert 'a' not in {'a': 1}", "'a'", "{'a': 1}"),
        ("TypeError: 'int' object is not iterable", "", ""),
        ("AssertionError: expected [ 1 ] to deeply equal [ 2 ]", "[ 1 ]", "[ 2 ]"),
        ("AssertionError: expected 1 to be 2 // Object.is equality", "1", "2"),
    ],
)
def test_both_sides_of_a_comparison_are_told_apart(said: str, got: str, expected: str) -> None:
    text = f"t/a.py:1: in test_a\nE   {said}"
    report = f'<t><testcase file="t/a.py" classname="t.a" name="test_a"><failure>{escape(text)}</failure></testcase></t>'
    (found,) = READERS["pytest"](report, Path("/w"))
    assert (found.got, found.expected) == (got, expected)

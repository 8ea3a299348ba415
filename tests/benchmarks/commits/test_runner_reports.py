"""What runners are asked for, and their reports."""

import json
import subprocess
from pathlib import Path

import pytest
from benchmarks.commits.runner_reports import AVA_SEPARATOR, NODE_REPORTER, read_report, reporting

NODE_TESTS = """\
const { test, describe, it } = require('node:test')
describe('group', () => {
  it('passes', () => {})
  it('fails', () => { throw new Error('no') })
  it.skip('waits', () => {})
})
test('with a part', async (t) => { await t.test('inside', () => {}) })
"""


def test_nodes_tests_are_named_with_their_groups(tmp_path: Path) -> None:
    (tmp_path / "a.test.js").write_text(NODE_TESTS, encoding="utf-8")
    (tmp_path / "b.test.js").write_text("require('./nowhere')\n", encoding="utf-8")
    report = tmp_path / "report"
    command = reporting("node", ("node", "--test", "a.test.js", "b.test.js"), report)
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=60)
    assert read_report("node", report, tmp_path) == {
        "a.test.js::group fails": "failed",
        "a.test.js::group passes": "passed",
        "a.test.js::group waits": "skipped",
        "a.test.js::with a part": "passed",
        "a.test.js::with a part inside": "passed",
        "b.test.js::./b.test.js": "failed",
    }


TAP = (
    "TAP version 13\nok 1 - {0}is fine\nhello\nnot ok 2 - {0}is{1}odd\n  ---\n  ...\nok 3 - {0}later # SKIP\n"
)


@pytest.mark.parametrize(
    ("modules", "prefix", "file"),
    [
        (["test/one.js"], "", "test/one.js"),
        (["test/one.js", "test/two.test.js"], f"two{AVA_SEPARATOR}", "test/two.test.js"),
    ],
)
def test_avas_names_get_their_files_back(modules: list[str], prefix: str, file: str, tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_text(
        json.dumps({"modules": modules, "tap": TAP.format(prefix, AVA_SEPARATOR)}), encoding="utf-8"
    )
    assert read_report("ava", report, tmp_path) == {
        f"{file}::is fine": "passed",
        f"{file}::is{AVA_SEPARATOR}odd": "failed",
        f"{file}::later": "skipped",
    }


def test_nodes_options_stand_before_the_files(tmp_path: Path) -> None:
    command = reporting("node", ("node", "--import=tsx", "--test", "a.ts"), tmp_path / "r")
    assert command == (
        "node",
        "--import=tsx",
        "--test",
        f"--test-reporter={NODE_REPORTER}",
        f"--test-reporter-destination={tmp_path / 'r'}",
        "a.ts",
    )


def test_a_report_that_was_not_written_names_no_test(tmp_path: Path) -> None:
    assert read_report("jest", tmp_path / "none", tmp_path) == {}

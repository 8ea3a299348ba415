# ruff: noqa: RUF001 - the runners print these marks
from clean_room_agent.languages.ecmascript.node_runner import read_node
from clean_room_agent.languages.ecmascript.npm_runners import read_jest, read_mocha, read_vitest

MOCHA_TAIL = """
  3 passing (89ms)
  1 pending
  3 failing

  1) top level:
     TypeError: bad
      at Context.<anonymous> (m/a.js:12:29)

  2) outer
       inner
         fails deep:

      AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

1 !== 2

      + expected - actual

      at Context.<anonymous> (m/a.js:6:35)

  3) outer
       hooked
         "before all" hook for "never":
     Error: hook broke
      at Context.<anonymous> (m/a.js:10:46)

"""
MOCHA_SPEC = """
  1) top level
  outer
    ✔ passes
    ✔ is slow (81ms)
    inner
      2) fails deep
      - later
noise here
      ✔ prints
    hooked
      3) "before all" hook for "never"

"""
MOCHA_RED = {
    "top level": "failed",
    "outer > inner > fails deep": "failed",
    'outer > hooked > "before all" hook for "never"': "failed",
}
JEST = """FAIL j/a.test.js
  outer
    ✓ passes (1 ms)
    ✕ fails (3 ms)
    ○ skipped later
    ✎ todo todo it
    inner
      ✓ ok in

  ● outer › fails

    expect(received).toBe(expected) // Object.is equality

    Expected: 2
    Received: 1

      at Object.toBe (j/a.test.js:1:79)

PASS j/b.test.js
  ✓ b one (1 ms)

FAIL j/c.test.js
  ● Test suite failed to run

    Cannot find module './nothing' from 'j/c.test.js'

      at Object.<anonymous> (j/c.test.js:1:21)

Test Suites: 2 failed, 1 passed, 3 total
Tests:       1 failed, 1 skipped, 1 todo, 3 passed, 6 total
Snapshots:   0 total
Time:        0.569 s
"""
VITEST_TAIL = """
⎯⎯⎯⎯⎯⎯ Failed Suites 1 ⎯⎯⎯⎯⎯⎯⎯

 FAIL  v/c.test.mjs [ v/c.test.mjs ]
Error: Failed to load url ./nothing.mjs
 ❯ loadAndTransform node_modules/vite/dist/node/chunks/dep.js:51969:17

⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯[1/2]⎯

⎯⎯⎯⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯⎯⎯⎯

 FAIL  v/a.test.mjs > outer > fails
AssertionError: expected 1 to be 2 // Object.is equality
 ❯ v/a.test.mjs:2:79

⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯[2/2]⎯

 Test Files  2 failed | 1 passed (3)
      Tests  1 failed | 3 passed | 1 skipped (5)
   Start at  11:46:09
   Duration  756ms (transform 50ms, setup 0ms)
"""
VITEST_VERBOSE = """
 ✓ v/a.test.mjs > outer > passes
 × v/a.test.mjs > outer > fails 7ms
   → expected 1 to be 2 // Object.is equality
 ✓ v/a.test.mjs > outer > inner > ok in
 ✓ v/b.test.mjs > b one 312ms
"""
TAP = """\
TAP version 13
# Subtest: sums
    # Subtest: add
    ok 1 - add
    # Subtest: lose
    not ok 2 - lose
      ---
      error: 'Expected 3'
      ...
    1..2
not ok 1 - sums
# tests 2
# pass 1
# fail 1
"""
SPEC = """\
▶ sums
  ✔ add (0.5ms)
  ✖ lose (1.25ms)
  ﹣ later (0.1ms) # SKIP
▶ sums (3.1ms)
\u2139 tests 3
\u2139 pass 1
\u2139 fail 1
\u2139 skipped 1

✖ failing tests:

✖ lose (1.25ms)
  AssertionError: Expected 3
"""


def test_mocha_s_spec_reporter_names_every_test() -> None:
    got = read_mocha(MOCHA_SPEC + MOCHA_TAIL)
    assert got is not None
    passed = dict.fromkeys(("outer > passes", "outer > is slow", "outer > inner > prints"), "passed")
    assert got.report.outcomes == MOCHA_RED | passed | {"outer > inner > later": "skipped"}
    assert (got.report.named, got.report.collected, got.report.passed, got.report.whole) == (True, 7, 3, True)
    assert [failure.detail.split("\n")[0].strip() for failure in got.failures] == [
        "TypeError: bad",
        "",
        "Error: hook broke",
    ]


def test_mocha_s_dot_reporter_names_what_fails() -> None:
    got = read_mocha("\n  !..!,noise here\n.!\n" + MOCHA_TAIL)
    assert got is not None
    assert (got.report.outcomes, got.report.named, got.report.collected) == (MOCHA_RED, False, 7)


def test_mocha_tests_of_one_name_are_told_apart() -> None:
    got = read_mocha("\n  s\n    ✔ a\n    ✔ a\n\n  2 passing (3ms)\n")
    assert got is not None
    assert got.report.outcomes == {"s > a": "passed", "s > a #2": "passed"}


def test_a_list_of_failures_that_is_cut_is_not_whole() -> None:
    got = read_mocha(MOCHA_TAIL.partition("  3) outer")[0])
    assert got is not None
    assert not got.report.whole


def test_jest_with_verbose_names_every_test() -> None:
    got = read_jest(JEST)
    assert got is not None
    assert got.report.outcomes == {
        "j/a.test.js > outer > fails": "failed",
        "j/a.test.js > outer > inner > ok in": "passed",
        "j/a.test.js > outer > later": "skipped",
        "j/a.test.js > outer > passes": "passed",
        "j/a.test.js > outer > todo it": "skipped",
        "j/b.test.js > b one": "passed",
        "j/c.test.js": "error",
    }
    assert (got.report.named, got.report.collected, got.report.passed) == (True, 6, 3)


def test_jest_without_verbose_names_what_fails() -> None:
    got = read_jest(
        "\n".join(line for line in JEST.split("\n") if not line.strip().startswith(("✓", "✕", "○", "✎")))
    )
    assert got is not None
    assert got.report.outcomes == {"j/a.test.js > outer > fails": "failed", "j/c.test.js": "error"}
    assert (got.report.named, got.report.collected, got.report.passed) == (False, 6, 3)
    assert "Expected: 2" in got.failures[0].detail


def test_vitest_names_what_fails_and_when_verbose_what_passes() -> None:
    quiet, verbose = read_vitest(VITEST_TAIL), read_vitest(VITEST_VERBOSE + VITEST_TAIL)
    assert quiet is not None
    assert verbose is not None
    red = {"v/a.test.mjs > outer > fails": "failed", "v/c.test.mjs": "error"}
    names = ("v/a.test.mjs > outer > passes", "v/a.test.mjs > outer > inner > ok in", "v/b.test.mjs > b one")
    assert (quiet.report.outcomes, quiet.report.named, quiet.report.collected, quiet.report.passed) == (
        red,
        False,
        5,
        3,
    )
    assert (verbose.report.outcomes, verbose.report.named) == (red | dict.fromkeys(names, "passed"), True)


def test_other_output_is_not_taken_for_theirs() -> None:
    text = "3 passing thoughts\nTests: none\n1 failing\n"
    assert read_mocha(text) is read_jest(text) is read_vitest(text) is None


def test_tap_names_tests_by_their_suite() -> None:
    reading = read_node(TAP)
    assert reading is not None
    assert reading.report.outcomes["sums > add"] == "passed"
    assert reading.report.outcomes["sums > lose"] == "failed"
    assert (reading.report.collected, reading.report.passed, reading.report.named) == (2, 1, True)


def test_the_spec_reporter_names_the_same_tests_and_what_was_skipped() -> None:
    reading = read_node(SPEC)
    assert reading is not None
    assert reading.report.outcomes["sums > add"] == "passed"
    assert reading.report.outcomes["sums > lose"] == "failed"
    assert reading.report.outcomes["sums > later"] == "skipped"


def test_output_without_nodes_counts_is_not_its_own() -> None:
    assert read_node("1 passing\n") is None
    assert read_node(TAP.replace("# pass 1\n", "")) is None

from clean_room_agent.orchestrator.testing.readers.node_output import read_node

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

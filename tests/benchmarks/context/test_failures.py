"""What a test's report says of its failure."""

from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.context.failures import READERS, Failure

HEAD = "tests/test_pager.py:9: in test_closed\n"


def read_one(evidence: str) -> Failure:
    text = f'<testsuite><testcase file="tests/test_pager.py" classname="tests.test_pager" name="test_closed"><failure>{escape(HEAD + evidence)}</failure></testcase></testsuite>'
    (found,) = READERS["pytest"](text, Path("/nowhere"))
    return found


def test_a_comparison_is_read_below_the_message_that_an_assertion_was_given() -> None:
    found = read_one(
        "E   AssertionError: still open\nE   assert [[False]] == [[True]]\nE     \nE     At index 0\n"
    )
    assert (found.error, found.got, found.expected) == ("AssertionError: still open", "[[False]]", "[[True]]")


def test_the_pattern_that_was_expected_and_the_message_that_came_are_read() -> None:
    found = read_one(
        "E   AssertionError: Regex pattern did not match.\nE     Expected regex: 'no pager'\nE     Actual message: 'a \"pager\"'\n"
    )
    assert (found.expected, found.got) == ("'no pager'", "'a \"pager\"'")


def test_of_two_exceptions_the_last_one_counts() -> None:
    found = read_one("E   KeyError: 'a'\nduring handling\nE   assert 1 == 2\n")
    assert (found.error, found.got, found.expected) == ("assert 1 == 2", "1", "2")


def test_supertest_says_it_in_a_sentence() -> None:
    text = '{"failures": [{"fullTitle": "res sends", "file": "/w/test/res.js", "err": {"message": "expected 200 \\"OK\\", got 404 \\"Not Found\\"", "stack": ""}}]}'
    (found,) = READERS["mocha"](text, Path("/w"))
    assert (found.expected, found.got) == ('200 "OK"', '404 "Not Found"')

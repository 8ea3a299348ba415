import time

import pytest

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.retrieval.mentions import find_frames, find_mentions, kind_of_task

PYTHON_TRACE = """\
Traceback (most recent call last):
  File "/home/me/proj/src/flask/app.py", line 1484, in dispatch_request
    return view()
  File "src/flask/views.py", line 12, in <lambda>
TypeError: view() missing 1 required argument
"""
PYTEST_TRACE = """\
tests/test_basic.py:17: in test_get
    rv = client.get("/")
src/flask/testing.py:230: ValueError
E       ValueError: no such thing
"""
JS_TRACE = """\
TypeError: app.render is not a function
    at Object.<anonymous> (/home/me/express/lib/application.js:120:9)
    at /home/me/express/lib/router/index.js:47:5
    at async Promise.all (index 0)
"""


def test_python_frames_have_path_line_and_function() -> None:
    assert find_frames(PYTHON_TRACE) == (
        StackFrame(path="/home/me/proj/src/flask/app.py", line=1484, function="dispatch_request"),
        StackFrame(path="src/flask/views.py", line=12, function="<lambda>"),
    )


def test_pytest_frames_are_found_with_and_without_a_function() -> None:
    assert find_frames(PYTEST_TRACE) == (
        StackFrame(path="tests/test_basic.py", line=17, function="test_get"),
        StackFrame(path="src/flask/testing.py", line=230, function=""),
    )


def test_javascript_frames_are_found_with_and_without_a_function() -> None:
    assert find_frames(JS_TRACE) == (
        StackFrame(path="/home/me/express/lib/application.js", line=120, function="Object.<anonymous>"),
        StackFrame(path="/home/me/express/lib/router/index.js", line=47, function=""),
    )


def test_paths_are_told_from_prose_and_addresses() -> None:
    text = "In src/flask/app.py and views.py (see https://example.org/a/b.py, and/or docs/index.rst), e.g. setup.cfg."
    assert set(find_mentions(text).paths) == {
        "src/flask/app.py",
        "views.py",
        "and/or",
        "docs/index.rst",
        "setup.cfg",
    }


def test_identifiers_are_what_looks_like_code() -> None:
    text = "When `send` is given max_size, HttpClient.post() fails; see MAX_LEN and call open_it(now). A Plain word."
    found = find_mentions(text).identifiers
    assert {"send", "max_size", "HttpClient.post", "MAX_LEN", "open_it"} <= set(found)
    assert not {"When", "given", "Plain", "word", "fails"} & set(found)


def test_tests_are_named_by_id_or_by_word() -> None:
    found = find_mentions("tests/test_a.py::TestA::test_b[x] fails, so does test_other and TestThing.")
    assert {"test_other", "TestThing"} <= set(found.test_names)
    assert any(name.startswith("tests/test_a.py::TestA::test_b") for name in found.test_names)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Fix crash when the list is empty", "bug"),
        ("Add support for async views", "feature"),
        ("Refactor the parser and simplify it", "refactoring"),
        ("Correct a typo in the docs", "docs"),
        ("Speed up import, it is slow", "performance"),
        ("Raise coverage of tests for testing", "test"),
        ("Hello", ""),
    ],
)
def test_the_kind_of_task_follows_its_words(text: str, kind: str) -> None:
    assert kind_of_task(text) == kind


@pytest.mark.parametrize(
    "unit", ["a/", "a.", "at ", "::a", "`", "```\n", 'File "', "x_", "E   a.", "a.py::", "/."]
)
def test_long_repetitions_are_read_quickly(unit: str) -> None:
    started = time.process_time()
    assert find_mentions(unit * 8000) == find_mentions(unit * 8000)
    assert time.process_time() - started < 5

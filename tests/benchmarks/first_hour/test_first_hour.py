"""The page of a first hour says what its commands say."""

import os
import shutil
import subprocess

import pytest
from benchmarks.first_hour.__main__ import PAGE, comparable, lived


@pytest.mark.packages
@pytest.mark.skipif("CRA_FIRST_HOUR" not in os.environ, reason="CRA_FIRST_HOUR is not set")
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="the page shows runs in the sandbox")
def test_a_first_hour_goes_as_the_page_says() -> None:
    """Where it fails because a command rightly says something else: `python -m benchmarks.first_hour --write`."""
    try:
        page = "\n\n".join(lived()) + "\n"
    except subprocess.CalledProcessError as exc:
        pytest.skip(f"the package index does not give click's sources: {exc.stderr[-200:]!r}")
    assert comparable(page).split(" ") == comparable(PAGE.read_text(encoding="utf-8")).split(" ")


def test_what_differs_from_run_to_run_is_made_equal() -> None:
    first = "task 6ae663c8 at 127.0.0.1:36781, 6.4 s, 14,488 tokens, 2026-11-23 13:43:11 UTC"
    other = "task 0c2f1a99 at 127.0.0.1:40001, 12 s, 14,102 tokens, 2027-01-02 03:04:05 UTC"
    assert comparable(first) == comparable(other)
    assert comparable("0.9 s  Show the default of\n       an option") == comparable(
        "10.1 s  Show the default\n        of an option"
    )
    assert comparable("adjust:p1:after_s1  0  0  0.0  nothing") == comparable(
        "adjust:p1:after_s1  0  1  0.1  nothing"
    )
    assert comparable("2 attempts") != comparable("3 attempts")

import os
import pty

import pytest
from testing.forked import Forked
from testing.runs.solving import Project

RUNG = b"\a\x1b]9;cra plan has ended\a"


def told_to_a_terminal(till: Project, *words: str) -> bytes:
    """What `cra` writes to standard error, which is a terminal."""
    ours, theirs = pty.openpty()
    environment = till.environment() | {"COLUMNS": "4000"}  # wider than any path, so that no line is folded
    try:
        with Forked(till, *words, terminal={2: theirs}, environment=environment) as process:
            process.communicate()
        return os.read(ours, 10_000)
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize(("flags", "rings"), [(("--notify",), True), ((), False)])
def test_the_bell_rings_at_the_end_also_after_an_error(
    till: Project, flags: tuple[str, ...], rings: bool
) -> None:
    told = told_to_a_terminal(till, "plan", "x", *flags)
    assert b"error: " in told
    assert told.count(RUNG) == rings


def test_nothing_rings_in_a_file(till: Project) -> None:
    _, out, err = till.run_here("plan", "x", "--notify")
    assert "error: " in err
    assert "\a" not in err + out

"""Whether sandboxes can be had on this machine; tests of what they do are skipped, with the reason, where not."""

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from clean_room_agent.sandbox.bubblewrap import Bubblewrap, Obstacle, working_bubblewrap


@cache
def _found() -> Bubblewrap | Obstacle:
    return working_bubblewrap()


@pytest.fixture(name="tmp_path")
def on_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder where a home may stand: below /dev, as other tests have theirs, none is mounted at its place."""
    monkeypatch.setattr(tempfile, "tempdir", "/var/tmp")
    with tempfile.TemporaryDirectory(prefix="cra-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def installed() -> Bubblewrap:
    """The bubblewrap of this machine; the test is skipped where there are no sandboxes."""
    found = _found()
    if isinstance(found, Obstacle):
        pytest.skip(f"no sandbox on this machine: {found.reason}")
    return found

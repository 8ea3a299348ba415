import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clean_room_agent.db.connection import connect_file


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect_file("raw", tmp_path / "raw.sqlite")) as opened:
        yield opened

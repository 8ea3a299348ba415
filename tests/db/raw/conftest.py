import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clean_room_agent.db.connection import connect_file


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record without a row: to make one runs every migration."""
    path = tmp_path_factory.mktemp("blank") / "raw.sqlite"
    connect_file("raw", path).close()
    return path


@pytest.fixture
def conn(blank: Path, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect_file("raw", Path(shutil.copy(blank, tmp_path / "raw.sqlite")))) as opened:
        yield opened

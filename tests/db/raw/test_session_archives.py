import sqlite3

from tests.db.raw.samples import TASK, sample

from clean_room_agent.db.raw import session_archives


def test_a_session_comes_back_byte_for_byte(conn: sqlite3.Connection) -> None:
    session_archives.append_archive(conn, sample(session_archives.ArchiveRow))
    found = session_archives.get_archive(conn, TASK)
    assert found is not None
    assert found.session_blob == b"\x00\xff"
    assert session_archives.get_archive(conn, "another") is None

import sqlite3

from tests.db.raw.samples import sample

from clean_room_agent.db.raw import events, index_runs


def test_a_run_is_kept_with_the_folders_that_it_left_out(conn: sqlite3.Connection) -> None:
    row = sample(index_runs.IndexRunRow)
    run_id = index_runs.append_index_run(conn, row, [("dist", "built")])
    assert index_runs.INDEX_RUNS.select(conn, "") == (sample(index_runs.IndexRunRow, id=run_id),)
    (event,) = events.list_events(conn, f"{index_runs.OF_INDEX_RUN}{run_id}")
    assert (event.kind, event.detail) == (index_runs.GENERATED, '[["dist", "built"]]')

import sqlite3

from tests.db.raw.samples import INDEX_RUNS, sample

from clean_room_agent.db.raw import indexing, runs


def test_a_run_is_kept_with_the_folders_that_it_left_out(conn: sqlite3.Connection) -> None:
    row = sample(indexing.IndexRunRow)
    run_id = indexing.append_index_run(conn, row, [("dist", "built")])
    assert INDEX_RUNS.select(conn, "") == (sample(indexing.IndexRunRow, id=run_id),)
    (event,) = runs.list_events(conn, f"{indexing.OF_INDEX_RUN}{run_id}")
    assert (event.kind, event.detail) == (indexing.GENERATED, '[["dist", "built"]]')


def test_the_newest_description_of_each_content_counts(conn: sqlite3.Connection) -> None:
    for content, purpose in (("h1", "first"), ("h1", "second"), ("h2", "third")):
        row = sample(indexing.EnrichmentRow, content_hash=content, purpose=purpose)
        indexing.append_enrichment(conn, row)
    found = indexing.list_descriptions(conn)
    assert [(row.content_hash, row.purpose) for row in found] == [("h1", "second"), ("h2", "third")]
    indexing.mark_promoted(conn, [found[0].id])
    assert [(row.purpose, row.promoted) for row in indexing.get_descriptions(conn, [1, 2])] == [
        ("first", False),
        ("second", True),
    ]

import sqlite3

from tests.db.raw.samples import sample

from clean_room_agent.db.raw import enrichment


def test_the_newest_description_of_each_content_counts(conn: sqlite3.Connection) -> None:
    for content, purpose in (("h1", "first"), ("h1", "second"), ("h2", "third")):
        row = sample(enrichment.EnrichmentRow, content_hash=content, purpose=purpose)
        enrichment.append_enrichment(conn, row)
    found = enrichment.list_descriptions(conn)
    assert [(row.content_hash, row.purpose) for row in found] == [("h1", "second"), ("h2", "third")]
    enrichment.mark_promoted(conn, [found[0].id])
    assert [(row.purpose, row.promoted) for row in enrichment.get_descriptions(conn, [1, 2])] == [
        ("first", False),
        ("second", True),
    ]

"""The time as the record keeps it."""

from datetime import UTC, datetime

from clean_room_agent.app.clock import utc_now
from clean_room_agent.db.rows import moment


def test_the_time_is_utc_and_reads_back() -> None:
    now = utc_now()
    assert now.endswith("Z")
    assert abs((datetime.now(UTC) - moment(now)).total_seconds()) < 60

"""The time as the record keeps it."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

from clean_room_agent.app.clock import process_began, utc_now
from clean_room_agent.db.rows import moment

SLACK = timedelta(milliseconds=50)
"""The system counts the start of a process in hundredths of a second."""


def test_the_time_is_utc_and_reads_back() -> None:
    now = utc_now()
    assert now.endswith("Z")
    assert abs((datetime.now(UTC) - moment(now)).total_seconds()) < 60


def test_a_process_began_before_now_and_not_before_its_parent() -> None:
    code = "from clean_room_agent.app.clock import process_began, utc_now; print(process_began(), utc_now())"
    before = moment(utc_now())
    began, then = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert before - SLACK <= moment(began) < moment(then)
    assert moment(process_began()) <= before, "of this process, not of the one that asks"

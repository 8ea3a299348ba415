"""The program that is sent into the sandbox, run outside of one: each attempt that succeeds leaves its trace."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clean_room_agent.sandbox.escapes import SCRIPTS


def test_a_process_that_outlives_its_command_leaves_a_trace(tmp_path: Path) -> None:
    program = f"import runpy; runpy.run_path({str(SCRIPTS[0])!r})['leave_daemon']()"
    facts = json.dumps(dict.fromkeys(("home", "at", "common"), str(tmp_path)))
    subprocess.run((sys.executable, "-c", program, facts), check=False, capture_output=True, timeout=60)
    for _ in range(200):
        if (tmp_path / "daemon-lived").exists():
            return
        time.sleep(0.05)
    pytest.fail("no trace")

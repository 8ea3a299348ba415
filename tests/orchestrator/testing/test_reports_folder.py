"""What a command leaves in the folder of its reports neither stops the next one nor counts for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from testing.patience import PATIENCE

LEFT = {
    "a report that is a closed folder": 'mkdir -p "$REPORT/d/e"; touch "$REPORT/d/e/f"; chmod 0 "$REPORT/d"',
    "a folder that cannot be written": 'chmod 0555 "$(dirname "$REPORT")"',
    "a folder that cannot be entered": 'chmod 0 "$(dirname "$REPORT")"',
    "records in a folder that cannot be written": 'cd "$CRA_TEST_REPORTS"; touch python-1.started; echo "[]" > python-1.ended; chmod 0555 .',
    "a closed folder of records": 'chmod 0 "$CRA_TEST_REPORTS"',
}
TWICE = """
import os, sys
from pathlib import Path
from clean_room_agent.orchestrator.testing.run import run_tests
report = Path("reports/results.xml").absolute()
env = {"PATH": os.environ["PATH"], "CRA_TEST_REPORTS": str(report.with_suffix(".guard")), "REPORT": str(report)}
for command in (sys.argv[1], "true"):
    run = run_tests(command, cwd=Path.cwd(), env=env, timeout=float(sys.argv[2]), report=report)
print(run.watched.ended, run.returncode)
"""
WITHOUT_ROOT = (
    "setpriv",
    "--bounding-set=-dac_override,-dac_read_search",
    "--inh-caps=-dac_override,-dac_read_search",
)


@pytest.mark.parametrize("left", LEFT)
def test_a_command_starts_anew_whatever_was_left(left: str, tmp_path: Path) -> None:
    ordinary = WITHOUT_ROOT if os.geteuid() == 0 else ()
    done = subprocess.run(
        (*ordinary, sys.executable, "-c", TWICE, LEFT[left], str(PATIENCE)),
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("None 0\n", 0), done.stderr

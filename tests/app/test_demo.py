"""The demo's sample project."""

import subprocess
from pathlib import Path

from clean_room_agent.app.demo import load_sample, make_repository


def test_the_sample_has_the_same_commits_everywhere(tmp_path: Path) -> None:
    sample = load_sample()
    heads = []
    for name in ("one", "two"):
        top = make_repository(sample, tmp_path / name)
        found = subprocess.run(("git", "rev-parse", "HEAD"), cwd=top, capture_output=True, check=True)
        heads.append(found.stdout)
    assert heads[0] == heads[1]

"""What the weak model is asked: a small project, and for each task a fault that is planted into it."""

import shutil
import subprocess
from pathlib import Path

from msgspec import Struct

PROJECT = Path(__file__).with_name("project")


class Errand(Struct, frozen=True, kw_only=True):
    """A fault of one function, and the words of somebody who met it. The words name the function."""

    name: str
    path: str
    right: str
    wrong: str
    words: str
    function: str
    """A line that only the function's source holds."""


ERRANDS = (
    Errand(
        name="minutes",
        path="timesheet/durations.py",
        right="+ minutes * SECONDS_PER_MINUTE",
        wrong="+ minutes",
        words="parse_duration reads 1h30m as 3630 seconds: minutes are counted as seconds. It should return 5400.",
        function="def parse_duration(text: str) -> int:",
    ),
    Errand(
        name="week",
        path="timesheet/totals.py",
        right="monday <= entry.day < end]",
        wrong="monday <= entry.day <= end]",
        words="of_week returns the entries of eight days, the next Monday too. It should return those of seven days.",
        function="def of_week(entries: Iterable[Entry], monday: dt.date) -> list[Entry]:",
    ),
    Errand(
        name="busiest",
        path="timesheet/totals.py",
        right="key=lambda day: (-sums[day], day)",
        wrong="key=lambda day: -sums[day]",
        words="busiest_day should return the earliest of several equally busy days, whatever the order of the entries.",
        function="def busiest_day(entries: Iterable[Entry]) -> dt.date | None:",
    ),
    Errand(
        name="comments",
        path="timesheet/entries.py",
        right='for line in lines if line and not line.startswith("#")]',
        wrong="for line in lines if line]",
        words="parse_entries fails on lines that begin with #. Such comment lines should be passed over.",
        function="def parse_entries(text: str) -> list[Entry]:",
    ),
    Errand(
        name="empty",
        path="timesheet/table.py",
        right="for project, _ in rows)",
        wrong="for project in sums)",
        words="render_table fails with a ValueError when there are no projects. It should print the total alone.",
        function="def render_table(sums: Mapping[str, int]) -> str:",
    ),
)


def plant(errand: Errand, folder: Path) -> Path:
    """A new git repository with the project, and the errand's fault in it, all committed.

    Raises:
        ValueError: the project does not hold the errand's right line just once.
    """
    shutil.copytree(PROJECT, folder)
    file = folder / errand.path
    text = file.read_text(encoding="utf-8")
    if text.count(errand.right) != 1:
        raise ValueError(f"{errand.path} does not hold {errand.right!r} once")
    file.write_text(text.replace(errand.right, errand.wrong), encoding="utf-8")
    author = ("-c", "user.name=Weak", "-c", "user.email=weak@example.org", "-c", "commit.gpgsign=false")
    for command in (("init", "-q", "-b", "main"), ("add", "-A"), (*author, "commit", "-qm", "Timesheet")):
        subprocess.run(("git", *command), cwd=folder, check=True)
    for key, value in (("user.name", "Weak"), ("user.email", "weak@example.org")):
        subprocess.run(("git", "config", key, value), cwd=folder, check=True)
    return folder

"""A subject's `RESULTS.md`: sections that are replaced whole each time that the benchmark runs."""

import datetime as dt
import platform
import re
import sqlite3
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

HEAD = """\
# Results of `benchmarks.{subject}`

Each section is written by the benchmark, and replaced when it runs again. Times differ between machines, and on one
machine from hour to hour; what is measured side by side in one run can be compared.
"""
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def write_section(page: Path, title: str, body: str, *, where: str | None = None) -> None:
    """The section `title` of the page says `where` it was measured (default: here, now), then `body`."""
    text = page.read_text(encoding="utf-8") if page.exists() else HEAD.format(subject=page.parent.name)
    section = f"{where or measured_where()}\n\n{body.strip()}\n"
    page.write_text(with_section(text, title, section), encoding="utf-8")


def with_section(text: str, title: str, body: str) -> str:
    """`text` with `body` under `## title`: in the place of the section of that name, else in order of titles."""
    parts = HEADING.split(text)
    head, names, bodies = parts[0], parts[1::2], parts[2::2]
    sections = dict(zip(names, bodies, strict=True)) | {title: f"\n\n{body.strip()}\n\n"}
    written = "".join(f"## {name}\n\n{sections[name].strip()}\n\n" for name in sorted(sections))
    return f"{head.rstrip()}\n\n{written}".rstrip() + "\n"


def measured_where() -> str:
    """Date, program, kind of machine and versions, in one line."""
    today = dt.datetime.now(dt.UTC).date().isoformat()
    return f"{today}, cra {version('clean-room-agent')}; {machine()}."


def machine() -> str:
    """What kind of machine this is and what it runs, without its name."""
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    return (
        f"{platform.system()} {platform.machine()}, {_processors()}, {_memory()}; "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, git {git}"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; the first column is text, the others are right-aligned."""
    lines = [" | ".join(head), " | ".join(["---", *["---:"] * (len(head) - 1)])]
    lines.extend(" | ".join(str(cell) for cell in row) for row in rows)
    return "\n".join(f"| {line} |" for line in lines)


def _processors() -> str:
    text = _read("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.+)$", text, re.MULTILINE)
    count = len(names) or 1
    kind = re.sub(r"\s+", " ", names[0]) if names else platform.processor() or "unknown processor"
    return f"{count} x {kind}"


def _memory() -> str:
    found = re.search(r"^MemTotal:\s+(\d+) kB$", _read("/proc/meminfo"), re.MULTILINE)
    return f"{int(found[1]) / 2**20:.0f} GiB" if found else "memory unknown"


def _read(path: str) -> str:
    place = Path(path)
    return place.read_text(encoding="utf-8") if place.exists() else ""

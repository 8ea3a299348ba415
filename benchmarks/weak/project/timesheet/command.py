"""The command: prints the totals of a file."""

import sys
from pathlib import Path

from timesheet.entries import parse_entries
from timesheet.table import render_table
from timesheet.totals import by_project


def main(arguments: list[str]) -> int:
    """The exit code: 0, or 2 where a line of the file is not an entry."""
    try:
        entries = parse_entries(Path(arguments[0]).read_text(encoding="utf-8"))
    except ValueError as exc:
        print(exc, file=sys.stderr)
        return 2
    print(render_table(by_project(entries)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

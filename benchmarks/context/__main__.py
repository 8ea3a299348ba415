"""What stood in the prompts of oracle runs that `benchmarks.oracle` left in a work folder.

python -m benchmarks.context [NAME=]WORK ... [--setting 32k ...] [--list FILE] [--only TEXT] [--every N]
    [--commits] [--write TITLE]

Every WORK under every setting is a column, named NAME, so that what was measured before and after a change stands side
by side. Prompts are read by their text and compared with the files of the commit's base (`blocks.py`); the goal tests
are run once at the base for what they say (`failures.py`). A commit whose goal tests are more than eight counts as if
any eight of them were all. Calls include the probes of a server's window. `--commits` adds a line a commit; `--write`
puts the tables into the results, under "TITLE".
"""

import argparse
import sys
from pathlib import Path

from benchmarks.commits.commit_list import CommitList, read_list
from benchmarks.context.measured import Measured, measure, record_of
from benchmarks.context.page import commits, kinds, lost, medians
from benchmarks.oracle.page import Row, kept_row
from benchmarks.results import write_section

RESULTS = Path(__file__).with_name("RESULTS.md")

LIST = Path(__file__).parents[1] / "commits" / "oracle_commits.toml"
PREFACE = (
    "Code tokens are those of lines that stand in the repository's files; needed are the functions that the commit "
    "changes with their files' imports, signatures of what they use, callers' lines, and the goal tests with their "
    "helpers. By the text of the prompts; `benchmarks/context` says how."
)


def measured(work: Path, listed: CommitList, setting: str, only: str) -> list[Measured]:
    """The runs that the work folder holds, in the list's order."""
    return [
        measure(work, listed, entry, setting)
        for entry in listed.commits
        if only in entry.id and record_of(work, entry, setting).exists()
    ]


def rows_of(work: Path, listed: CommitList) -> dict[str, list[Row]]:
    """Setting -> the rows of the list's commits that the work folder holds, for all its settings."""
    names = {path.name.split(".", 1)[1].removesuffix(".json") for path in (work / "oracle").glob("*.json")}
    found = {
        name: [row for entry in listed.commits if (row := kept_row(work / "oracle", entry.id, name))]
        for name in sorted(names)
    }
    return {name: rows for name, rows in found.items() if rows}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("works", nargs="+", metavar="[NAME=]WORK", help="work folder of benchmarks.oracle")
    parser.add_argument("--setting", action="append", help="may be repeated; default 32k")
    parser.add_argument("--list", type=Path, default=LIST)
    parser.add_argument("--only", default="", help="only commits in whose id this stands")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th commit of the list")
    parser.add_argument("--commits", action="store_true", help="add a line a commit")
    parser.add_argument("--write", metavar="TITLE", help="put the tables into RESULTS.md")
    arguments = parser.parse_args()
    whole = read_list(arguments.list)
    listed = whole.model_copy(update={"commits": whole.commits[:: arguments.every]})
    columns: dict[str, list[Measured]] = {}
    rows: dict[str, dict[str, list[Row]]] = {}
    for text in arguments.works:
        name, _, place = text.rpartition("=")
        work = Path(place).resolve()
        own = [
            (" ".join(filter(None, (name, setting))), setting) for setting in arguments.setting or ("32k",)
        ]
        for column, setting in own:
            columns[column] = measured(work, listed, setting, arguments.only)
        for setting, found in rows_of(work, listed).items():
            rows.setdefault(setting, {})[own[0][0]] = found
    parts = [PREFACE, medians(columns, rows), lost(rows), "By kind of prompt:", kinds(columns)]
    if arguments.commits:
        parts += [
            part for name, runs in columns.items() for part in (f"Commit by commit, {name}:", commits(runs))
        ]
    text = "\n\n".join(parts)
    print(text)
    if arguments.write:
        write_section(RESULTS, arguments.write, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

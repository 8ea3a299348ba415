"""Real bug fixes, each solved by `cra solve "<the commit's message>"` at the commit's parent with its new tests present.

python -m benchmarks.solve_real WORK --mirror '/mirrors/{owner}+{name}' [--window 8192 ...] [--only TEXT] [--write]

How one is solved and judged says `commits/solve_commit.py`: the model is the oracle, which knows the commit and writes only what
its prompt shows it; everything of the user's is compared before and after.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks.commits.checkouts import BenchmarkError
from benchmarks.commits.commit_list import read_list
from benchmarks.commits.solve_commit import Attempted, Setting, attempt
from benchmarks.results import write_section

RESULTS = Path(__file__).with_name("RESULTS.md")

LIST = Path(__file__).parents[1] / "commits" / "real_commits.toml"
WINDOWS = (8192, 16384, 32768)
TITLE = "Real bug fixes, solved with the oracle"
ROW = re.compile(
    r"^\| ([\w-]+) \| \d+ \| \d+ \| (\d+)k \| (yes|\*\*no\*\*) \| (yes|\*\*no\*\*) \|.*$", re.MULTILINE
)
LOSS = re.compile(r"^- ([\w-]+) at (\d+)k: .*$", re.MULTILINE)


class Line(Struct, frozen=True, kw_only=True):
    """One line of the results page."""

    id: str
    window: int
    """In thousands of tokens."""
    solved: bool
    untouched: bool
    row: str
    loss: str
    """What went wrong; "" where nothing did."""


def row(done: Attempted) -> str:
    """One line of the table."""
    answer = done.answer
    fullest = answer.get("fullest_window", {}).get("tokens", 0)
    cells = (
        done.entry.id,
        str(len(done.entry.sources)),
        str(done.entry.changed_lines),
        f"{done.window // 1024}k",
        "yes" if done.solved else "**no**",
        "yes" if done.untouched else "**no**",
        str(answer.get("calls", "")),
        f"{fullest:,}",
        f"{done.seconds:.1f}",
        f"{done.own_seconds:.1f}",
    )
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "| commit | source files | lines | window | solved | user's tree identical | calls | fullest prompt, tokens "
    "| s in all | s outside model and tests |\n|---|---|---|---|---|---|---|---|---|---|"
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "work", type=Path, help="folder for checkouts and environments, outside this repository"
    )
    parser.add_argument("--mirror", required=True, help="where the repositories are, with {owner} and {name}")
    parser.add_argument("--list", type=Path, default=LIST)
    parser.add_argument("--only", default="", help="only the commits in whose id this stands")
    parser.add_argument("--window", type=int, action="append", help="tokens; may be given more than once")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    listed = read_list(arguments.list)
    rows: list[Attempted] = []
    print(HEAD)
    for entry in listed.commits:
        if arguments.only not in entry.id:
            continue
        for window in arguments.window or WINDOWS:
            try:
                setting = Setting(name=f"{window // 1024}k", window=window)
                done = attempt(work, arguments.mirror, listed, entry, setting)
            except BenchmarkError as exc:
                print(exc, file=sys.stderr)
                return 1
            rows.append(done)
            print(row(done), flush=True)
            if not done.solved:
                print(f"    {done.words}", file=sys.stderr)
    new = {(line.id, line.window): line for line in map(line_of, rows)}
    print(summary(new.values()))
    if arguments.write:
        # What was not run this time stays as it was measured.
        old = kept_lines(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        place = {entry.id: number for number, entry in enumerate(listed.commits)}
        known = {key: line for key, line in {**old, **new}.items() if key[0] in place}
        write_section(
            RESULTS,
            TITLE,
            text_of([known[key] for key in sorted(known, key=lambda key: (place[key[0]], key[1]))]),
        )
    return 0 if all(done.solved and done.untouched for done in rows if done.window == max(WINDOWS)) else 1


def summary(lines: Iterable[Line]) -> str:
    """How many were solved at each window."""
    of: dict[int, list[Line]] = {}
    for line in lines:
        of.setdefault(line.window, []).append(line)
    return "\n".join(
        f"- window {window}k: {sum(line.solved for line in found)} of {len(found)} solved, "
        f"the user's tree identical in {sum(line.untouched for line in found)} of {len(found)}"
        for window, found in sorted(of.items())
    )


def line_of(done: Attempted) -> Line:
    """What the results keep of an attempt."""
    words = " ".join(done.words.split())[:400]
    kilo = done.window // 1024
    loss = "" if done.solved else f"- {done.entry.id} at {kilo}k: exit {done.exit_code}: {words}"
    return Line(
        id=done.entry.id,
        window=kilo,
        solved=done.solved,
        untouched=done.untouched,
        row=row(done),
        loss=loss,
    )


def kept_lines(text: str) -> dict[tuple[str, int], Line]:
    """The lines of a results page that was written before, by commit and window in thousands."""
    losses = {(match[1], int(match[2])): match[0] for match in LOSS.finditer(text)}
    lines = {}
    for found in ROW.finditer(text):
        key = found[1], int(found[2])
        lines[key] = Line(
            id=key[0],
            window=key[1],
            solved=found[3] == "yes",
            untouched=found[4] == "yes",
            row=found[0],
            loss=losses.get(key, ""),
        )
    return lines


def text_of(lines: Sequence[Line]) -> str:
    """The section of the results."""
    losses = [line.loss for line in lines if line.loss]
    lost = "\n\nNot solved, in the program's own words:\n\n" + "\n".join(losses) if losses else ""
    return "\n".join([*summary(lines).splitlines(), "", HEAD, *(line.row for line in lines)]) + lost


if __name__ == "__main__":
    os.environ.setdefault("GIT_TERMINAL_PROMPT", "0")
    sys.exit(main())

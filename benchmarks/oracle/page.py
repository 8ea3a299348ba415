"""The oracle's section of the results page, made of the rows of single runs."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median

from msgspec import Struct
from msgspec.structs import asdict

from benchmarks.commits.commit_list import CommitList
from benchmarks.results import table

MOST_EXAMPLE = 160


class Row(Struct, frozen=True, kw_only=True):
    """What is kept of one run."""

    id: str
    setting: str
    window: int
    solved: bool
    untouched: bool
    single_step: bool
    calls: int
    prompt_tokens: int
    completion_tokens: int
    fullest: int
    over: int
    judged_tokens: int
    shared_tokens: int
    seconds: float
    own_seconds: float
    stage: str = ""
    """Where it was lost; "" where it was solved."""
    example: str = ""


def keep_row(folder: Path, row: Row) -> None:
    """The row stands in its file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{row.id}.{row.setting}.json").write_text(json.dumps(asdict(row), indent=1), encoding="utf-8")


def kept_row(folder: Path, commit: str, setting: str) -> Row | None:
    """The row that an earlier run kept."""
    path = folder / f"{commit}.{setting}.json"
    return Row(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def summary(rows: Iterable[Row]) -> str:
    """A line for each setting, in the order in which the settings come up."""
    settings: dict[str, list[Row]] = {}
    for row in rows:
        settings.setdefault(row.setting, []).append(row)
    lines = [_summary_line(name, found) for name, found in settings.items()]
    head = (
        "setting",
        "commits",
        "solved",
        "user's tree identical",
        "calls, single-step",
        "tokens",
        "s outside model and tests",
        "fullest prompt",
        "prompts over the window",
        "judgment prompts from a shared prefix",
    )
    return table(head, lines)


def _summary_line(name: str, rows: Sequence[Row]) -> tuple[str, ...]:
    solved = [row for row in rows if row.solved]
    judged = sum(row.judged_tokens for row in rows)
    return (
        name,
        str(len(rows)),
        f"{len(solved)} ({100 * len(solved) / len(rows):.1f} %)",
        str(sum(row.untouched for row in rows)),
        _middle([row for row in solved if row.single_step], lambda row: row.calls),
        _middle(solved, lambda row: row.prompt_tokens + row.completion_tokens),
        f"{median(row.own_seconds for row in solved):.1f}" if solved else "",
        f"{max(row.fullest for row in rows):,}",
        str(sum(row.over for row in rows)),
        f"{100 * sum(row.shared_tokens for row in rows) / judged:.0f} %" if judged else "",
    )


def _middle(rows: Sequence[Row], value: Callable[[Row], int]) -> str:
    return f"{median(map(value, rows)):,.0f}" if rows else ""


def losses(rows: Iterable[Row]) -> str:
    """How many were lost at which stage, for each setting, with every commit's example."""
    lost = [row for row in rows if not row.solved]
    if not lost:
        return "Nothing was lost."
    counts = Counter((row.setting, row.stage) for row in lost)
    lines = ["Lost, by stage:", ""]
    for (setting, stage), count in counts.items():
        lines.append(f"- {setting}: {count} x {stage}")
        lines += [
            f"  - {row.id}: {_short(row.example)}"
            for row in lost
            if (row.setting, row.stage) == (setting, stage)
        ]
    return "\n".join(lines)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_EXAMPLE else line[: MOST_EXAMPLE - 1] + "…"


def commits_table(rows: Sequence[Row], listed: CommitList) -> str:
    """A line a commit: its size, and whether it was solved under each setting."""
    settings = tuple(dict.fromkeys(row.setting for row in rows))
    solved = {(row.id, row.setting): row.solved for row in rows}
    words = {True: "yes", False: "**no**", None: ""}
    lines = [
        (
            entry.id,
            len(entry.sources),
            entry.changed_lines,
            *(words[solved.get((entry.id, name))] for name in settings),
        )
        for entry in listed.commits
    ]
    return table(("commit", "source files", "lines", *settings), lines)


def searches_table(listed: CommitList) -> str:
    """How the list came about: commits looked at in each repository, and why the others were left out."""
    reasons = Counter[str]()
    for search in listed.searches.values():
        reasons.update(search.left_out)
    names = [name for name, _ in reasons.most_common()]
    lines = [
        (name, search.looked_at, search.taken, *(search.left_out.get(reason, 0) for reason in names))
        for name, search in listed.searches.items()
    ]
    return table(("repository", "looked at", "taken", *names), lines)

"""The tables of what stood in prompts: figures in columns, so that several measurements stand side by side."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from benchmarks.context.figures import PromptFigures
from benchmarks.context.measured import Measured
from benchmarks.oracle.page import Row
from benchmarks.results import table

Runs = Sequence[Measured]


def medians(columns: Mapping[str, Runs], rows: Mapping[str, Mapping[str, Sequence[Row]]]) -> str:
    """A line a figure, a column a measurement; then a line for each setting of `rows` (setting -> column -> rows)."""
    lines = [(name, *(figure(runs) for runs in columns.values())) for name, figure in FIGURES]
    lines += [
        (f"solved, {setting}", *(_solved(found.get(name, ())) for name in columns))
        for setting, found in rows.items()
    ]
    return table(("first implement prompt and run; medians where nothing else is said", *columns), lines)


def _solved(rows: Sequence[Row]) -> str:
    won = sum(row.solved for row in rows)
    return f"{won} of {len(rows)} ({100 * won / len(rows):.0f} %)" if rows else ""


def lost(rows: Mapping[str, Mapping[str, Sequence[Row]]]) -> str:
    """How many were lost where, for each setting and column."""
    lines = []
    for setting, found in rows.items():
        for name, own in found.items():
            counts = Counter(row.stage for row in own if not row.solved)
            said = ", ".join(f"{count} x {stage}" for stage, count in counts.most_common())
            lines.append(f"- {setting}, {name}: {said or 'nothing'}")
    return "\n".join(("Lost, by stage:", "", *lines))


def kinds(columns: Mapping[str, Runs]) -> str:
    """Calls and prompt tokens by prompt, as means, so that they add up."""
    names = sorted({name for runs in columns.values() for run in runs for name in run.run.calls})
    lines = [(name, *(_of_kind(runs, name) for runs in columns.values())) for name in names]
    return table(("prompt: calls, prompt tokens of a run; means", *columns), lines)


def commits(runs: Runs) -> str:
    """A line a commit."""
    head = (
        "commit", "code tokens", "needed", "changed whole", "tests' source", "failing line", "words", "unexplained",
        "calls", "repeated", "prompt tokens", "steps",
    )  # fmt: skip
    return table(head, [_commit(run) for run in runs])


def _commit(run: Measured) -> tuple[object, ...]:
    own = (run.calls, run.run.repeated, f"{run.tokens:,}", run.run.steps)
    if run.prompt is None:
        return (run.id, *[""] * 7, *own)
    shown = run.prompt
    pairs = (shown.changed, shown.sources, shown.failing_lines, shown.words)
    return (
        run.id,
        f"{shown.code_tokens:,}",
        f"{100 * needed(shown):.0f} %",
        *(f"{some}/{every}" for some, every in pairs),
        len(shown.unexplained),
        *own,
    )


def needed(prompt: PromptFigures) -> float:
    """Share of the code's tokens."""
    return prompt.needed_tokens / prompt.code_tokens if prompt.code_tokens else 0.0


def _middle(value: Callable[[PromptFigures], float], form: str = "{:,.0f}") -> Callable[[Runs], str]:
    def figure(runs: Runs) -> str:
        found = [value(run.prompt) for run in runs if run.prompt is not None]
        return form.format(median(found)) if found else ""

    return figure


def _full(pair: Callable[[PromptFigures], tuple[int, int]]) -> Callable[[Runs], str]:
    """Prompts that show all of something, of those that have it to show."""

    def figure(runs: Runs) -> str:
        found = [pair(run.prompt) for run in runs if run.prompt is not None]
        due = [(some, every) for some, every in found if every]
        whole = sum(some == every for some, every in due)
        return f"{whole} of {len(due)} ({100 * whole / len(due):.0f} %)" if due else ""

    return figure


def _run(value: Callable[[Measured], float], *, single: bool = False) -> Callable[[Runs], str]:
    def figure(runs: Runs) -> str:
        found = [value(run) for run in runs if run.single_step or not single]
        return f"{median(found):,.0f}" if found else ""

    return figure


def _of_kind(runs: Runs, name: str) -> str:
    if not runs:
        return ""
    calls = sum(run.run.calls.get(name, 0) for run in runs) / len(runs)
    tokens = sum(run.run.tokens.get(name, 0) for run in runs) / len(runs)
    return f"{calls:.1f}, {tokens:,.0f}"


def _explained(prompt: PromptFigures) -> tuple[int, int]:
    return int(not prompt.unexplained), 1


FIGURES: tuple[tuple[str, Callable[[Runs], str]], ...] = (
    ("runs", lambda runs: str(len(runs))),
    ("of one step", lambda runs: str(sum(run.single_step for run in runs))),
    ("code tokens", _middle(lambda prompt: prompt.code_tokens)),
    ("code tokens, the most", lambda runs: f"{max((run.prompt.code_tokens for run in runs if run.prompt), default=0):,}"),
    ("share of them needed", _middle(lambda prompt: 100 * needed(prompt), "{:.0f} %")),
    ("every changed function whole", _full(lambda prompt: prompt.changed)),
    ("every goal test's source", _full(lambda prompt: prompt.sources)),
    ("every goal test's failing line", _full(lambda prompt: prompt.failing_lines)),
    ("every goal test's expected and got, or error", _full(lambda prompt: prompt.words)),
    ("every used name explained", _full(_explained)),
    ("used names not explained", _middle(lambda prompt: len(prompt.unexplained))),
    ("calls, one step", _run(lambda run: run.calls, single=True)),
    ("calls, all", _run(lambda run: run.calls)),
    ("questions repeated", _run(lambda run: run.run.repeated)),
    ("prompt tokens of a run", _run(lambda run: run.tokens)),
)  # fmt: skip

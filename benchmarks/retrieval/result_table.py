"""The tables of the retrieval benchmark."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from benchmarks.results import table
from benchmarks.retrieval.metrics import ALL_WITHIN, DEPTHS, HIT_WITHIN, Score, mean_of, percentile

RANKINGS = ("cra", "cra, side files too", "BM25", "aider's map")
HEAD = (
    "tasks",
    "n",
    "ranking",
    *(f"R@{depth}" for depth in DEPTHS),
    "MRR",
    f"all@{ALL_WITHIN}",
    f"hit@{HIT_WITHIN}",
    "CPU ms",
    "p95",
)
EXPLAINED = """\
A task is the message of a real commit; asked is the snapshot before it, with the history that leads to it and nothing
later. Ranked are all source files (Python, JavaScript, TypeScript), tests among them, of which the task's are those
that the commit changed. R@k: the share of a task's files among the first k, mean over tasks. MRR: one divided by the
place of the first of them, mean. all@10: tasks with all files among the first 10; hit@5: with one among the first 5;
all in %. CPU ms: processor time a task, median and 95th percentile. Within it the first task on a snapshot opens our
index, and loads aider's graph library; reading files for BM25 and for aider's tags is not counted.

- **cra**: the candidates of `cra retrieve --no-model`, at most 100 of all text files, from which other files are struck
  out for this table; in "side files too" documentation and data keep their places.
- **BM25**: Okapi, k1 1.2, b 0.75, over the path and the text of each file as one field, with the product's own words
  and stems, from memory.
- **aider's map**: the order of aider's repository map with nothing in the chat, for what aider finds mentioned in the
  task; its tags in memory.
"""


class Result(Struct, frozen=True, kw_only=True):
    """How one ranking did on one task."""

    task_id: str
    group: str
    repository: str
    ranking: str
    ranked: tuple[str, ...]
    score: Score
    cpu_ms: float


def render_results(results: Sequence[Result], groups: Sequence[str]) -> str:
    """A table by group of tasks, and one by repository, in which the groups keep their order."""
    by_group = [
        row
        for group in groups
        for row in _rows(group, [result for result in results if result.group == group], RANKINGS)
    ]
    repositories = dict.fromkeys(
        (result.group, result.repository)
        for result in sorted(results, key=lambda result: (groups.index(result.group), result.repository))
    )
    by_repository = [
        row
        for group, repository in repositories
        for row in _rows(
            repository,
            [result for result in results if (result.group, result.repository) == (group, repository)],
            [ranking for ranking in RANKINGS if ranking != RANKINGS[1]],
        )
    ]
    return f"{table(HEAD, by_group)}\n\nBy repository:\n\n{table(HEAD, by_repository)}"


def _rows(name: str, results: Sequence[Result], rankings: Iterable[str]) -> Iterable[Sequence[object]]:
    for ranking in rankings:
        own = [result for result in results if result.ranking == ranking]
        if own:
            yield (name, len(own), ranking, *_figures(own))


def _figures(results: Sequence[Result]) -> Sequence[str]:
    mean = mean_of([result.score for result in results])
    spent = [result.cpu_ms for result in results]
    return (
        *(f"{100 * share:.1f}" for share in (*mean.recall, mean.first, mean.all_found, mean.hit)),
        f"{percentile(spent, 0.5):.1f}",
        f"{percentile(spent, 0.95):.1f}",
    )

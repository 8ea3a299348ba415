from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks.commits.checkouts import BenchmarkError
from benchmarks.loop.data import TEST, TRAIN
from benchmarks.real import exercises, fixes, seeded
from benchmarks.real.planted import repositories
from benchmarks.real.tasks import EXCLUDED, Bench, Report, Task

from clean_room_agent.training.commit_sources import read_exclusions


def test_what_is_measured_on_is_on_the_list_that_training_leaves_out() -> None:
    excluded = read_exclusions(EXCLUDED)
    measured = [one.name for one in repositories()] + [one.name for one in seeded.REPOSITORIES]
    measured += [exercises.REPOSITORY, fixes.OCTOPACK, fixes.QUIXBUGS]
    assert excluded.repositories == {name.lower() for name in measured}
    assert not any(excluded.has(name) for name in (*TRAIN, *TEST))


class ReadingBench(Bench, frozen=True):
    """Its tests pass where `a.txt` says so, and do not start where it is empty."""

    def run_suite(
        self,
        tree: Path,
        command: Sequence[str],
        environment: str = "",
        *,
        timeout: float = 1.0,
        lines: bool = False,
    ) -> Report:
        text = (tree / "a.txt").read_text(encoding="utf-8")
        return Report(outcomes={"t": text}) if text else Report(output="no python here")


def judging(tmp_path: Path, start: str, result: str) -> bool:
    bench = ReadingBench(work=tmp_path, mirrors="")
    for folder, text in (("tasks/t1/start", start), ("run/tree", result)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.txt").write_text(text, encoding="utf-8")
    (tmp_path / "tasks/t1/judge").mkdir()
    task = Task(
        id="t1", set="s", split="dev", words="", command=(), judge_command=(), must_pass=("t",), changed=()
    )
    return bench.solved(task, tmp_path / "run" / "tree")


@pytest.mark.parametrize(
    ("start", "result", "solved"), [("failed", "passed", True), ("passed", "failed", False)]
)
def test_the_tests_that_judge_decide(tmp_path: Path, start: str, result: str, *, solved: bool) -> None:
    assert judging(tmp_path, start, result) == solved
    assert not (tmp_path / "run" / "judged").exists()


def test_a_result_with_which_no_test_starts_is_not_solved(tmp_path: Path) -> None:
    assert not judging(tmp_path, "failed", "")


def test_where_the_tests_start_for_nobody_nothing_is_concluded(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="no python here"):
        judging(tmp_path, "", "")

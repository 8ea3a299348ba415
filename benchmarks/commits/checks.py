"""What running a commit's tests before and after its change shows."""

from pathlib import Path

from msgspec import Struct

from benchmarks.commits.checkouts import (
    TEST_TIMEOUT_S,
    TestRun,
    bring,
    clone,
    put_base,
    run_tests,
    where_imported,
)
from benchmarks.commits.commit_list import CommitEntry, CommitList

RUNNER_BROKE = "::pytest::internal"  # what pytest's report names where a test brought pytest itself down
SLOWEST_RUN_S = 60.0  # of processor time
ENDLESS = f"a run does not end in {TEST_TIMEOUT_S:.0f} s"


class Measured(Struct, frozen=True, kw_only=True):
    """One run at the parent, two with the commit's tests added, two more with its source change.

    `turned` are the tests that passed in neither of the first two runs and in both of the last.
    `fault` says in a few words why the commit is not fit for the benchmark, "" if it is.
    """

    turned: tuple[str, ...]
    seconds: float
    tests: int
    fault: str
    output: str = ""


def measure(work: Path, mirror: str, listed: CommitList, entry: CommitEntry) -> Measured:
    """The commit has been tried in a clean checkout, without network."""
    tree = clone(work, mirror, entry.repository)
    put_base(tree, entry.model_copy(update={"test_files": ()}))
    parent = run_tests(work, tree, listed, entry)
    if parent.seconds > TEST_TIMEOUT_S:
        return Measured(
            turned=(), seconds=parent.seconds, tests=0, fault=ENDLESS, output=parent.output[-3000:]
        )
    put_base(tree, entry)
    before = _twice(work, tree, listed, entry)
    if before[0].seconds > TEST_TIMEOUT_S:
        seconds, output = before[0].seconds, before[0].output[-3000:]
        return Measured(turned=(), seconds=seconds, tests=0, fault=ENDLESS, output=output)
    imported = where_imported(work, tree, listed, entry)
    put_base(tree, entry)
    bring(tree, entry.commit, entry.sources)
    after = _twice(work, tree, listed, entry)
    turned = (after[0].passed() & after[1].passed()) - before[0].passed() - before[1].passed()
    fault = _fault(before, after, turned)
    # Tests that cannot even be imported before the change are a fair task, a broken environment is none.
    if not before[0].passed() and not parent.passed():
        fault = "nothing passes at the parent"
    if imported and not Path(imported).resolve().is_relative_to(tree.resolve()):
        fault = f"imports {imported}"
    return Measured(
        turned=tuple(sorted(turned)),
        seconds=max(run.seconds for run in (*before, *after)),
        tests=len(after[0].outcomes),
        fault=fault,
        output=after[0].output[-3000:] if fault else "",
    )


def _twice(work: Path, tree: Path, listed: CommitList, entry: CommitEntry) -> tuple[TestRun, TestRun]:
    # Two different seeds: a test that depends on the order of a set passes by luck, and is found out.
    first = run_tests(work, tree, listed, entry, seed=0)
    return first, first if first.seconds > TEST_TIMEOUT_S else run_tests(work, tree, listed, entry, seed=1)


def _fault(before: tuple[TestRun, TestRun], after: tuple[TestRun, TestRun], turned: frozenset[str]) -> str:
    runs = (*before, *after)
    checks = (
        (any(run.seconds > TEST_TIMEOUT_S for run in runs), ENDLESS),
        (not after[0].outcomes, "the tests do not run"),
        (any(RUNNER_BROKE in run.outcomes for run in runs), "a test brings the test runner down"),
        (any(run.returncode for run in after), "tests fail with the real change too"),
        (not turned, "no test turns green"),
        (_differ(*before) or _differ(*after), "two runs differ"),
        (
            max(run.work_seconds for run in runs) > SLOWEST_RUN_S,
            f"a run takes over {SLOWEST_RUN_S:.0f} s of processor time",
        ),
    )
    return next((fault for holds, fault in checks if holds), "")


def _differ(first: TestRun, second: TestRun) -> bool:
    return dict(first.outcomes) != dict(second.outcomes)

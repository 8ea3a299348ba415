"""Tests that come and go by themselves leave the gate; tests that the result breaks, also by their order, do not."""

from functools import partial

from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.testing.rerun import passed_again, unstable
from clean_room_agent.orchestrator.testing.results import RED, TestRun
from clean_room_agent.orchestrator.validations import note_tests


def unstable_tests(run: Run, tests: TestRun, names: tuple[str, ...], commit: str) -> tuple[str, ...]:
    """Those of `names` (newly failing in `tests`, a run of `commit`) that are unstable, sorted; the record has them.

    A test that passes without the others, and fails again when all of them run, is broken by what runs before it, and is
    not unstable. The worktree holds `commit` afterwards.
    """

    def run_at(place: str, failing: tuple[str, ...]) -> dict[str, bool]:
        run.bench.checkout(place)
        some = run.bench.run_some(tests, failing)
        if some is None:
            return {}
        passed = passed_again(some, failing)
        note_tests(run, some, "recheck", success=all(passed.values()))
        return passed

    found = unstable(names, here=partial(run_at, commit), base=partial(run_at, run.base))
    run.bench.checkout(commit)
    if found:
        again = run.bench.run_again(tests)
        run.bench.checkout(commit)
        found = tuple(name for name in found if again.whole and again.outcomes.get(name) not in {None, *RED})
        note_tests(run, again, "recheck", success=bool(found))
    if found:
        run.recorder.event(run.task_id, "unstable_tests", ", ".join(found))
    return found

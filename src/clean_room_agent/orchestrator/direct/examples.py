"""The documented examples of the places that hold at the base: a candidate that breaks one is wrong, though no test says so."""

from collections.abc import Sequence

from msgspec import Struct

from clean_room_agent.artifacts.goals import GoalTest
from clean_room_agent.execute.goals.new_tests import Looked
from clean_room_agent.orchestrator.goal_runs import GoalRuns, Home
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.stated_goals import Found, StatedGoals
from clean_room_agent.orchestrator.test_runs.results import TestRun


class HeldExamples(Struct, frozen=True, kw_only=True):
    """Examples that are run from one file of tests."""

    home: Home
    calls: tuple[Looked, ...]
    gave: tuple[str, ...]
    """What each gave at the base, which is what its documentation says."""


def held_examples(
    run: Run, base: TestRun, places: Sequence[tuple[str, str]], goals: Sequence[GoalTest]
) -> tuple[HeldExamples, ...]:
    """The examples of the definitions (path, name) that hold at the base, without those that a goal test wants changed."""
    entry = run.journal.entry(
        run.task.task_id, "held_examples", tuple[HeldExamples, ...], (run.commits.head,)
    )
    if entry.value is None:
        roots = {(path, name.partition(".")[0]) for path, name in places}
        owners = [
            one
            for one in run.context.definitions(tuple(sorted({name for _, name in roots})))
            if (one.path, one.name) in roots
        ]
        documented = [
            one
            for one in run.context.definitions(tuple(sorted({name for _, name in places})))
            if (one.path, one.name) in places
        ]
        stated = StatedGoals(run, GoalRuns(run, base), Found())
        changed = {goal.call for goal in goals}
        kept: dict[str, list[tuple[Home, Looked, str]]] = {}
        for seen in stated.looked(stated.examples(documented, owners)):
            holds = not seen.observation.problem and {"equal", "raises"} & set(*seen.observation.matches[:1])
            if holds and seen.case.claim.call not in changed:
                home = seen.case.home
                found = (home, seen.case.looked, seen.observation.described())
                kept.setdefault(home.path, []).append(found)
        entry.keep(
            tuple(
                HeldExamples(
                    home=same[0][0], calls=tuple(one[1] for one in same), gave=tuple(one[2] for one in same)
                )
                for same in kept.values()
            )
        )
    assert entry.value is not None
    return entry.value


def broken_example(run: Run, base: TestRun, held: Sequence[HeldExamples], commit: str) -> str:
    """The first of the examples that gives something else in the commit, and what; "" if all hold."""
    runs = GoalRuns(run, base)
    for same in held:
        for call, gave, seen in zip(
            same.calls, same.gave, runs.look(same.home, same.calls, at=commit), strict=True
        ):
            now = seen.problem or seen.described()
            if now != gave:
                return f"the documented example {call.call} gives {now}, not {gave} as before"
    return ""

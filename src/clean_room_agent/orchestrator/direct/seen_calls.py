"""Calls of the places that a task asks about, whose values at the base are known: what a candidate gives for them tells more
of it than the goal tests do.
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from clean_room_agent.artifacts.goals import GoalSource, GoalTest, NamedDefinition
from clean_room_agent.execute.goals.confirming import UNSTABLE, Looked
from clean_room_agent.execute.goals.neighbours import neighbours
from clean_room_agent.orchestrator.goal_runs import GoalRuns, Home
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.stated_goals import Found, Seen, StatedGoals
from clean_room_agent.orchestrator.test_runs.results import TestRun


class SeenCalls(Struct, frozen=True, kw_only=True):
    """Calls that are made from one file of tests."""

    home: Home
    calls: tuple[Looked, ...]
    gave: tuple[str, ...]
    """What each gives at the base."""


def held_examples(
    run: Run, base: TestRun, places: Sequence[tuple[str, str]], goals: Sequence[GoalTest]
) -> tuple[SeenCalls, ...]:
    """The examples of the definitions (path, name) that hold at the base, without those that a goal test wants changed."""
    entry = run.journal.entry(run.task.task_id, "held_examples", tuple[SeenCalls, ...], (run.commits.head,))
    if entry.value is not None:
        return entry.value

    def defined(subjects: Collection[tuple[str, str]]) -> list[NamedDefinition]:
        found = run.context.definitions(tuple(sorted({name for _, name in subjects})))
        return [one for one in found if (one.path, one.name) in subjects]

    owners = defined({(path, name.partition(".")[0]) for path, name in places})
    stated = StatedGoals(run, GoalRuns(run, base), Found())
    changed = {goal.call for goal in goals}
    kept: dict[str, list[Seen]] = {}
    for seen in stated.looked(stated.examples(defined(places), owners)):
        holds = not seen.observation.problem and {"equal", "raises"} & set(*seen.observation.matches[:1])
        if holds and seen.case.claim.call not in changed:
            kept.setdefault(seen.case.home.path, []).append(seen)
    return entry.keep(_by_home(kept))


def _by_home(kept: Mapping[str, Sequence[Seen]]) -> tuple[SeenCalls, ...]:
    return tuple(
        SeenCalls(
            home=same[0].case.home,
            calls=tuple(seen.case.looked for seen in same),
            gave=tuple(seen.observation.described() for seen in same),
        )
        for same in kept.values()
    )


def beside_goals(run: Run, base: TestRun, goals: Sequence[GoalTest]) -> tuple[SeenCalls, ...]:
    """Calls that differ in a literal from those that the task's words make, as far as they can be made at the base. None in
    JavaScript, where a call that does not end cannot be stopped.
    """
    stated = StatedGoals(run, GoalRuns(run, base), Found())
    calls = [call for goal in goals if goal.source is GoalSource.STATED for call in neighbours(goal.call)]
    kept: dict[str, list[Seen]] = {}
    for seen in stated.looked([case for case in stated.beside(calls) if case.home.style is None]):
        if not seen.observation.problem and not UNSTABLE.search(seen.observation.described()):
            kept.setdefault(seen.case.home.path, []).append(seen)
    return _by_home(kept)


def values_of(run: Run, base: TestRun, calls: Sequence[SeenCalls], commit: str) -> dict[str, str]:
    """What each of the calls gives in the commit, by call."""
    runs = GoalRuns(run, base)
    return {
        call.call: seen.problem or seen.described()
        for same in calls
        for call, seen in zip(same.calls, runs.look(same.home, same.calls, at=commit), strict=True)
    }


def broken_example(run: Run, base: TestRun, held: Sequence[SeenCalls], commit: str) -> GoalTest | None:
    """The first of the examples that gives something else in the commit, and what; None if all hold."""
    for same in held:
        now = values_of(run, base, (same,), commit)
        for call, gave in zip(same.calls, same.gave, strict=True):
            if now[call.call] != gave:
                return GoalTest(
                    name=call.call,
                    source=GoalSource.DOCUMENTED,
                    call=call.call,
                    wanted=gave,
                    got=now[call.call],
                )
    return None

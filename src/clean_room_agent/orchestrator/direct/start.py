"""Begins the direct route: the goal tests at the base, what they execute, and the places that are asked about."""

from collections.abc import Sequence

from clean_room_agent.artifacts.context import Subject
from clean_room_agent.artifacts.goals import Goals, GoalTest, GoalTrace, TracedFunction
from clean_room_agent.artifacts.names import counted, implement_pass
from clean_room_agent.db.raw.passes import DecisionRow
from clean_room_agent.execute.forms.place import Assignment, place_of
from clean_room_agent.execute.goal_places import observed_text, rank_places
from clean_room_agent.languages.test_names import file_part
from clean_room_agent.orchestrator.direct.examples import held_examples
from clean_room_agent.orchestrator.direct.goal_results import GoalsAtBase
from clean_room_agent.orchestrator.direct.questions import Questions, Target
from clean_room_agent.orchestrator.direct.route import PART, STEP, Direct, may_change, try_direct
from clean_room_agent.orchestrator.events import PassProgress
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.test_runs.goal_trace import trace_goals
from clean_room_agent.orchestrator.test_runs.results import TestRun

MOST_PLACES = 6
OBSERVED_CHARS = 900
"""Of what was observed, in a prompt of some 1,500 tokens."""


def go_direct(run: Run, at_base: GoalsAtBase, files: Sequence[str]) -> bool:
    """Whether the direct route did the task; `files` are those that the user allows, all if empty."""
    goals = run.progress.goals.deciding
    if not goals:
        return False
    trace = _traced(run, goals, at_base.standard)
    if trace.problem:
        run.recorder.note(f"what the goal tests execute is not known, or not whole: {trace.problem}")
    targets, functions = _targets(run, trace, goals, files)
    _record(run, trace, functions)
    if not targets:
        return False
    assignment = Assignment(
        task=run.task.words,
        goals=goals,
        observed=observed_text(functions[:3], bound=OBSERVED_CHARS),
    )
    run.recorder.observer.notice(PassProgress(doing="asking whether the model fills gaps"))
    fills = run.models.can_fill(pass_id=_pass_id(run))

    def text(commit: str, path: str) -> str:
        return run.commits.tree(commit).texts((path,))[0].get(path, "")

    questions = Questions(run.models, targets, assignment, at_base.ran, text, fills=fills)
    places = [(target.place.path, target.place.name) for target in targets]
    direct = Direct(
        held=held_examples(run, at_base.standard, places, goals),
        goals=Goals(tests=goals, commit=run.progress.goals.commit),
        base=at_base.standard,
        places=tuple(target.place.name for target in targets),
        limit=run.limits.solve.direct_tokens,
    )
    return try_direct(run, direct, questions.rounds)


def _pass_id(run: Run) -> str:
    return implement_pass(run.task.task_id, PART, STEP)


def _traced(run: Run, goals: Sequence[GoalTest], like: TestRun) -> GoalTrace:
    entry = run.journal.entry(run.task.task_id, "goal_trace", GoalTrace, (run.commits.head,))
    if entry.value is None:
        names = [goal.name for goal in goals if not goal.command]
        paths = {goal.path or file_part(goal.name) for goal in goals}
        passing = sorted(name for name in like.green() if file_part(name) in paths)
        run.recorder.observer.notice(PassProgress(doing="running the goal tests to see what they execute"))
        run.tests.checkout(run.commits.head)
        entry.keep(trace_goals(run.tests, names or goals[0].command, passing if names else (), like))
    assert entry.value is not None
    return entry.value


def _targets(
    run: Run, trace: GoalTrace, goals: Sequence[GoalTest], files: Sequence[str]
) -> tuple[list[Target], list[TracedFunction]]:
    """The likeliest places, with their files' texts; and their functions."""
    words = " ".join((run.task.words, *(goal.call for goal in goals)))
    tree = run.commits.tree()
    targets: list[Target] = []
    functions: list[TracedFunction] = []
    for one in rank_places(trace, words):
        if len(targets) == MOST_PLACES:
            break
        if not one.name or not may_change(run, tree, one.path, files):
            continue
        text = tree.texts((one.path,))[0][one.path]
        place = place_of(one, text)
        if place is not None and place not in [target.place for target in targets]:
            targets.append(Target(place=place, text=text))
            functions.append(one)
    return targets, functions


def _record(run: Run, trace: GoalTrace, chosen: Sequence[TracedFunction]) -> None:
    """The places that are asked about, and those that are not, as decisions of the pass."""
    pass_id = _pass_id(run)
    rows = [
        DecisionRow(
            task_id=pass_id,
            stage="trace",
            subject=Subject(path=one.path, symbol=one.name, tier=0, score=round(one.suspicion, 3)),
            included=one in chosen,
            detail="primary" if one in chosen else "",
            reason=f"ran {counted(one.calls, 'time')} under the goal tests",
            timestamp="",
        )
        for one in (*chosen, *(other for other in trace.functions if other not in chosen))
    ]
    run.recorder.decisions(pass_id, rows)

"""The same task on the same repository gives the same log and the same diff, wherever it stands and however many ask."""

from pathlib import Path

import pytest
from hypothesis import settings
from tests.architecture.eventful_run import Eventful, eventful_run

from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.artifacts.names import relative_pass, short_id
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.raw.passes import list_decisions
from clean_room_agent.orchestrator.test_runs.output import normalise
from clean_room_agent.workspace import Workspace

Identity = tuple[str, str, str, int]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Eventful, Eventful]:
    """Two runs of one task: in folders of different names, one question at a time and four at a time."""
    folders = (tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("another-and-longer"))
    first, second = (
        eventful_run(folder, models={"parallel": parallel}, judgments={"route": "each"})
        for folder, parallel in zip(folders, (1, 4), strict=True)
    )
    assert (first.told.code, second.told.code) == (0, 0), first.told.err + second.told.err
    return first, second


def identity(row: ModelCall) -> Identity:
    return relative_pass(row.site.pass_id), row.site.call_type, row.site.item, row.site.attempt


def calls_of(run: Eventful) -> dict[Identity, tuple[object, ...]]:
    """What each call asked and was answered."""
    recorded = run.told.recorded
    return {
        identity(row): (
            row.request.prompt_hash,
            row.answer.response,
            row.model,
            row.ending.finish,
            recorded.reading_of(row),
        )
        for row in recorded.calls
    }


def decisions_of(run: Eventful) -> list[tuple[object, ...]]:
    """What was let in and kept out, in order, each with the identity of the call that judged it."""
    recorded = run.told.recorded
    by_id = {row.id: identity(row) for row in recorded.calls}
    assert recorded.run is not None
    conn = connect_file("raw", Workspace(repo=run.project.top).raw, read_only=True)
    rows = list_decisions(conn, recorded.run.task_id)
    conn.close()
    return [
        (
            relative_pass(row.task_id),
            row.stage,
            row.subject.path,
            row.subject.symbol,
            row.subject.tier,
            row.subject.score,
            row.included,
            row.detail,
            row.reason,
            by_id.get(row.judgment.call_id or 0),
        )
        for row in rows
    ]


def roots(run: Eventful) -> tuple[Path, ...]:
    """The folders whose names test output may hold."""
    worktrees = Workspace(repo=run.project.top).worktrees(run.project.home / "cache" / "cra")
    assert run.told.recorded.run is not None
    return worktrees / short_id(run.told.recorded.run.task_id), run.project.top


def test_the_runs_make_the_same_calls(runs: tuple[Eventful, Eventful]) -> None:
    first, second = map(calls_of, runs)
    assert len(first) == len(runs[0].told.recorded.calls), "an identity names one call"
    assert sorted(first) == sorted(second)
    assert [name for name in sorted(first) if first[name] != second[name]] == []
    assert any(item for _, prompt, item, _ in first if prompt == "scope_judgment")


def test_the_runs_make_the_same_decisions(runs: tuple[Eventful, Eventful]) -> None:
    first, second = map(decisions_of, runs)
    assert first == second
    assert len(first) > 10


def test_the_runs_make_the_same_attempts_with_the_same_verdicts(runs: tuple[Eventful, Eventful]) -> None:
    first, second = (
        [
            (row.attempt, row.outcome, row.diff, bool(row.commit_hash), row.edit_report, row.error)
            for row in run.told.recorded.attempts
        ]
        for run in runs
    )
    assert first == second
    assert len(first) == 2
    kinds = [
        [
            (
                row.kind,
                row.success,
                row.failing_tests,
                row.newly_failing,
                normalise(row.test_output, roots(run)),
            )
            for row in run.told.recorded.validations
        ]
        for run in runs
    ]
    assert kinds[0] == kinds[1]


def test_the_runs_note_the_same_and_decide_the_same_after_a_failure(runs: tuple[Eventful, Eventful]) -> None:
    first, second = (
        (
            [(relative_pass(row.task_id), row.kind, row.detail) for row in run.told.recorded.events],
            [(row.state, row.rule, row.action) for row in run.told.recorded.recoveries],
            [(row.request, row.added) for row in run.told.recorded.refinements],
        )
        for run in runs
    )
    assert first == second
    assert first[1]


def test_the_runs_end_in_the_same_bytes(runs: tuple[Eventful, Eventful]) -> None:
    files = [run.project.branch_file("till/money.py") for run in runs]
    assert files[0] == files[1]
    diffs = [[row.final_diff for row in run.told.recorded.passes] for run in runs]
    assert diffs[0] == diffs[1]
    assert any(diffs[0])


def test_nothing_that_a_model_reads_names_a_place_or_a_task(runs: tuple[Eventful, Eventful]) -> None:
    for run in runs:
        recorded = run.told.recorded
        assert recorded.run is not None
        private = (str(run.project.top), str(run.project.home), recorded.run.task_id, str(Path.home()))
        shown = [row for row in recorded.calls if any(word in row.request.prompt for word in private)]
        assert [identity(row) for row in shown] == []


def test_property_tests_try_the_same_examples_in_each_run() -> None:
    assert settings.get_profile("values").derandomize

"""`cra show` over the record of one real solve, and over rows that no real run would leave."""

import contextlib
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from testing.repositories import fingerprint, git, make_repository
from testing.runs.decision_rows import decision_row
from tests.db.raw.samples import NOW, SAMPLES, TASK, call, task_run
from tests.report.scripted_solve import LINE

from clean_room_agent.cli.main import run as cra
from clean_room_agent.cli.show import is_patch
from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.raw.calls import append_call
from clean_room_agent.db.raw.passes import TaskRunOutcome, append_decisions, append_task_run, finish_task_run
from clean_room_agent.db.raw.record import Record
from clean_room_agent.report.calls import AttemptDiff

Show = Callable[..., str]


@pytest.fixture(scope="module")
def solved(sample: tuple[Path, str]) -> tuple[Path, str]:
    return sample


@pytest.fixture
def show(solved: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> Show:
    top, task = solved

    def shown(place: str = "", *flags: str, code: int = 0) -> str:
        capsys.readouterr()
        assert cra(("show", f"{task}{place}", "--repo", str(top), *flags)) == code
        told = capsys.readouterr()
        return told.err if code else told.out

    return shown


@pytest.fixture
def refused(show: Show) -> Show:
    return partial(show, code=2)


def test_a_run_is_shown_with_its_passes_in_order(
    show: Show, solved: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(solved[0])
    out = show()
    places = [
        "meta_plan",
        "part_plan:split",
        "split/s1/1",
        "split/s1/2",
        "adjust:split:after_s1",
        "split/s2/1",
        "adjust:split:after_s2",
    ]
    assert [line.split()[1] for line in out.splitlines() if line.startswith(("✓", "✗"))] == places
    assert "Splitting a bill loses cents" in out
    assert "6 passed, 2 failed -> 8 passed, 0 failed" in out
    assert f"cra/{solved[1]} at " in out
    assert "complete: shown by tests.test_split.SplitTest." in out
    long = ("  10.00 split three ways", "  goal ")
    told = [line for line in out.splitlines()[1:] if not line.startswith(long)]
    assert [line for line in told if len(line) > 90] == []


def test_its_next_commands_name_a_repository_that_is_elsewhere(
    show: Show, solved: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("", "/split/s1", "/split/s1/1"):
        told = [line for line in show(place).splitlines() if "cra show" in line]
        assert all(f"--repo {solved[0]}" in line for line in told), (place, told)
        assert told, place
    monkeypatch.chdir(solved[0])
    assert "--repo" not in show()


def test_every_pass_can_be_shown_by_the_name_that_the_run_gives_it(show: Show) -> None:
    whole = json.loads(show("", "--json"))["run"]
    for line in whole["passes"]:
        (view,) = json.loads(show(f"/{line['place']}", "--json"))["passes"]
        assert view["line"]["pass_id"] == line["pass_id"]
        relative = line["pass_id"].partition(":")[2]
        (view,) = json.loads(show(f"/{relative}", "--json"))["passes"]
        assert view["line"]["pass_id"] == line["pass_id"]


def test_probes_of_the_window_are_no_part_of_what_a_run_cost(show: Show) -> None:
    whole = json.loads(show("", "--json"))["run"]
    assert whole["tokens"] == sum(line["tokens"] for line in whole["passes"])
    assert all(line["fullest"][0] <= line["fullest"][1] for line in whole["passes"])
    assert "window_probe" not in show("", "--budget")
    assert "refused, as it must be" in show("/meta_plan")


def test_a_failed_attempt_tells_why_and_what_was_done_about_it(show: Show) -> None:
    out = show("/split/s1")
    assert "insufficient context: newly failing: tests.test_split" in out
    assert "then refine: insufficient_context with evidence" in out
    assert "refined: tests/test_split.py" in out
    assert "attempt 2: applied and passed" in out


def test_a_call_is_shown_by_its_id(show: Show) -> None:
    line = json.loads(show("/split/s1/2", "--budget", "--json"))["budget"][-1]
    out = show(f"/call:{line['call_id']}")
    assert "## Attempt 1 failed" in out
    assert LINE in out
    assert out == show(f"/call/{line['call_id']}")


def test_the_diff_of_a_run_is_gits_and_that_of_a_step_has_every_attempt(
    show: Show, solved: tuple[Path, str]
) -> None:
    top, task = solved
    assert show("", "--diff").rstrip("\n") == git(top, "diff", "--full-index", "main", f"cra/{task}")
    step = show("/split/s1", "--diff")
    assert "split/s1/1: insufficient context, undone" in step
    assert "number <= rest" in step
    assert "split/s1/2: applied and passed" in step


def test_tests_are_shown_run_after_run(show: Show) -> None:
    out = show("", "--tests")
    heads = [line for line in out.splitlines() if line.startswith(("✓", "·"))]
    assert [" ".join(head.split()[1:3]) for head in heads] == [
        "baseline 6",
        "attempt split/s1/1",
        "attempt split/s1/2",
        "attempt split/s2/1",
        "final 8",
    ]
    assert "test_even_amounts_are_split_evenly  newly failing" in out
    assert "Ran 8 tests" not in out
    assert "Ran 8 tests" in show("/split/s2", "--tests", "--full")


def test_the_budget_compares_each_calls_tokens_with_its_window(show: Show) -> None:
    lines = json.loads(show("", "--budget", "--json"))["budget"]
    assert [line["call_type"] for line in lines].count("implement") == 3
    assert all(line["window"] == 16384 and 0 < line["actual"] <= line["window"] for line in lines)
    assert all(0 < line["reserved"] < line["window"] for line in lines)
    assert "% of the estimates" in show("", "--budget")


def test_a_line_that_a_prompt_does_not_have_is_an_error(refused: Show) -> None:
    assert "no line 99999" in refused("", "--why", "call:2:99999")
    assert "tally/money.py has 30 lines in the result, and no line 9999" in refused(
        "", "--why", "tally/money.py:9999"
    )
    assert "made no call '424242'" in refused("", "--why", "call:424242")


def test_decisions_name_their_stage_tier_score_judge_and_reason(show: Show) -> None:
    out = show("/meta_plan", "--decisions")
    assert re.search(r"out scope +tally/statement.py  tier 2, score \d\.\d\d, judged by call \d+", out)
    assert "judged not needed: near the task: statement" in out
    assert re.search(
        r"in  precision +tally/money.py :: \S+ +tier 1, score \d\.\d\d, primary\n +in without asking: ", out
    )


def test_why_tells_who_wrote_a_line_of_the_result(show: Show, solved: tuple[Path, str]) -> None:
    top, task = solved
    result = git(top, "show", f"cra/{task}:tally/money.py").split("\n")
    number = result.index(LINE) + 1
    found = json.loads(show("", "--why", f"tally/money.py:{number}", "--json"))["why"]["written"]
    assert (found["text"], found["place"], found["edit"]) == (LINE, "split/s1/2", 1)
    assert found["tests"] == "its tests: 7 passed, 1 failed"
    assert [entry["place"] for entry in found["context"]] == ["split/s1/1", "split/s1/2"]
    out = show("", "--why", f"{top}/tally/money.py:{number}")
    assert f"written by split/s1/2, call {found['call_id']}, edit 1" in out
    prompt = show(f"/call:{found['call_id']}", "--prompt")
    assert "===== file: tally/money.py (lines 1-" in prompt


def test_why_lists_decisions_judges_contexts_and_changes_of_a_file(show: Show) -> None:
    out = show("", "--why", "./tally/money.py")
    assert re.search(r"in  scope +tally/money.py +tier 1, score \d\.\d\d\n +in without asking: ", out)
    assert re.search(r"call \d+ +split/s1/2 implement: file, lines 1-29", out)
    assert "commit -" not in out
    assert "only named in calls" in out
    assert "split/s1/1: insufficient context" in out
    assert "split/s1/2: applied and passed" in out


def test_why_tells_of_a_file_that_stayed_out(show: Show) -> None:
    out = show("", "--why", "tally/statement.py")
    assert "judged not needed" in out
    assert out.rstrip().endswith("no attempt")


def test_an_unknown_path_is_answered_with_the_nearest(refused: Show) -> None:
    assert "near it: tally/money.py" in refused("", "--why", "money.py")


@pytest.mark.parametrize("place", ["/nope", "/split/s9", "/split/s1/1/1", "/call:99999", "/call:"])
def test_an_unknown_place_is_answered_with_what_there_is(refused: Show, place: str) -> None:
    said = refused(place)
    assert "split/s1/2" in said or "--budget" in said


def test_looking_changes_nothing(show: Show, solved: tuple[Path, str]) -> None:
    before = fingerprint(solved[0], ignore=())
    show()
    show("", "--why", "tally/money.py", "--decisions", "--prompt", "--response", "--tests", "--budget")
    after = fingerprint(solved[0], ignore=())
    # A reader of a WAL database may make and remove SQLite's own side files, which moves the folder's time as well.
    journal = ("tree:.clean_room", ".clean_room/raw.sqlite-wal", ".clean_room/raw.sqlite-shm")
    assert {name: mark for name, mark in after.items() if not name.endswith(journal)} == {
        name: mark for name, mark in before.items() if not name.endswith(journal)
    }


def test_without_a_record_the_next_command_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top = make_repository(tmp_path / "project", {"a.py": "x = 1\n"})
    assert cra(("show", "1234", "--repo", str(top))) == 2
    assert "cra solve" in capsys.readouterr().err
    assert not (top / ".clean_room").exists()


def test_a_run_is_shown_while_it_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    top = make_repository(tmp_path / "project", {"a.py": "x = 1\n"})
    with Record.open(top, clock=lambda: NOW) as record:
        for table, row in SAMPLES:
            record.write(table.insert, row)
        assert cra(("show", TASK[:8], "--repo", str(top))) == 0
        assert "in progress, or interrupted" in capsys.readouterr().out
        record.write(append_call, call(prompt="# Implement\nlater\n"))
        assert cra(("show", f"{TASK[:8]}/part/step/1", "--prompt", "--repo", str(top))) == 0
        assert "later" in capsys.readouterr().out


def test_a_pass_that_stands_alone_is_shown_as_what_left_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top = make_repository(tmp_path / "project", {"a.py": "x = 1\n"})
    with contextlib.closing(get_connection("raw", repo_path=top)) as conn:
        row = append_task_run(conn, task_run(TASK))
        decided = decision_row(
            task_id=TASK,
            stage="scope",
            file_id=None,
            tier=2,
            included=True,
            reason="imported by b.py",
            timestamp=NOW,
            path="a.py",
        )
        append_decisions(conn, (decided,))
        outcome = TaskRunOutcome(success=True, total_tokens=0, total_latency_ms=0, completed_at=NOW)
        finish_task_run(conn, row, outcome)
    assert cra(("show", TASK[:8], "--repo", str(top))) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{TASK[:8]}  retrieve  complete\n")
    assert "--budget" not in out
    assert cra(("show", TASK[:8], "--why", "a.py", "--repo", str(top))) == 0
    assert "imported by b.py" in capsys.readouterr().out


def test_escapes_of_a_model_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    top = make_repository(tmp_path / "project", {"a.py": "x = 1\n"})
    with contextlib.closing(get_connection("raw", repo_path=top)) as conn:
        for table, row in SAMPLES:
            table.insert(conn, row)
        append_call(conn, call(prompt="\x1b]0;owned\x07", response="\x1b[2J[red]not markup[/red]\u202e"))
    assert cra(("show", TASK, "--prompt", "--response", "--repo", str(top))) == 0
    out = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\u202e"} & set(out)
    assert "\\x1b]0;owned\\x07" in out
    assert "[red]not markup[/red]" in out


def diff(place: str) -> AttemptDiff:
    return AttemptDiff(place=place, attempt=1, outcome="accepted", stands=True, diff="--- a\n")


@pytest.mark.parametrize(
    ("places", "patch"), [(("",), True), (("part/step/1",), False), (("", ""), False), ((), False)]
)
def test_only_one_diff_of_a_whole_run_can_be_applied(places: tuple[str, ...], patch: bool) -> None:
    assert is_patch(tuple(diff(place) for place in places)) is patch

"""`cra plan`, and `cra solve` along a plan that a person has reviewed."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from testing import repositories
from testing.runs.solving import MENDED_MONEY, Project, Script, edit, make_project, serving
from testing.servers.ollama_server import OllamaServer

from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import ADJUSTMENT, META_PLAN, PART_PLAN


@pytest.fixture
def till(indexed: Project) -> Project:
    return indexed


@pytest.fixture(scope="module")
def planned_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A repository with a run that planned, and the plan."""
    till = make_project(tmp_path_factory.mktemp("planned"))
    path = till.home / "plan.json"
    with serving(till) as server:
        till.configure(server.base_url)
        told = till.cra("plan", till.task, "-o", str(path))
    assert told.code == 0, told.err
    assert told.out == ""
    assert f"cra solve --plan {path}" in told.err
    assert told.traces == {}
    assert repositories.git(till.top, "for-each-ref", "refs/cra/") == ""
    return till.top, path


@pytest.fixture
def plan(till: Project, tmp_path: Path, planned_once: tuple[Path, Path]) -> Path:
    """The plan for `till`, which is a copy of where it was made."""
    top, path = planned_once
    shutil.rmtree(till.top)
    repositories.copy_repository(top, till.top)
    return Path(shutil.copy(path, tmp_path))


def titles(server: OllamaServer) -> set[str]:
    return {call.title for call in server.calls}


def test_a_plan_names_the_task_and_the_files_and_steps(plan: Path, till: Project) -> None:
    written = json.loads(plan.read_text())
    assert written["task"] == till.task
    assert [entry["path"] for entry in written["affected_files"]] == ["till/money.py"]


def test_solve_follows_the_plan_and_plans_nothing(plan: Path, till: Project) -> None:
    with serving(till) as server:
        till.configure(server.base_url)
        told = till.cra("solve", "--plan", str(plan), "--json")
    assert told.code == 0, told.err
    answer = json.loads(told.out)
    assert (answer["status"], answer["steps"]) == ("complete", {"done": 1, "total": 1})
    assert till.branch_file("till/money.py").decode() == MENDED_MONEY
    assert titles(server).isdisjoint({META_PLAN.title, PART_PLAN.title, ADJUSTMENT.title})


def test_solve_starts_at_the_parts_of_the_plan(plan: Path, till: Project) -> None:
    with serving(till) as server:
        till.configure(server.base_url)
        told = till.cra("solve", "--meta-plan", str(plan))
    assert told.code == 0, told.err
    assert META_PLAN.title not in titles(server)
    assert PART_PLAN.title in titles(server)


def test_an_edited_plan_that_lost_a_field_is_refused_by_its_name(plan: Path, till: Project) -> None:
    broken = json.loads(plan.read_text())
    del broken["affected_files"]
    plan.write_text(json.dumps(broken))
    told = till.cra("solve", "--plan", str(plan))
    assert told.code == 2
    assert "affected_files" in told.err
    assert str(plan) in told.err


def test_where_no_plan_comes_of_it_the_code_is_1(till: Project, tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    bad = ["no plan, sorry"] * 9
    with OllamaServer(Script(till.oracle, {META_PLAN.title: bad})) as server:
        till.configure(server.base_url, orchestrator={"plan_fallback": False})
        told = till.cra("plan", till.task, "-o", str(target))
    assert (told.code, told.out) == (1, "")
    assert "no plan" in told.err
    assert not target.exists()


HAND = """\
task = "Splitting a bill loses cents"

# a note of mine
[[steps]]
description = "Give the cents that are left over to the first people."
files = ["till/money.py"]

[[steps]]
description = "Say in the receipts what a share is."
files = ["till/receipt.py"]
"""


class Editor:
    """A program that changes the file that it is given, once, as told."""

    def __init__(self, script: Path) -> None:
        self.script = script

    def replace(self, before: str, after: str) -> None:
        """Each `before` in the file becomes `after`."""
        self._write(
            f"path.write_text(path.read_text().replace({before!r}, {after!r}) if {before!r} else path.read_text())"
        )

    def clear(self) -> None:
        """The file is empty."""
        self._write("path.write_text('')")

    def _write(self, line: str) -> None:
        self.script.write_text(f"import pathlib, sys\npath = pathlib.Path(sys.argv[1])\n{line}\n")


@pytest.fixture
def editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Editor:
    script = tmp_path / "editor.py"
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    return Editor(script)


def test_a_plan_by_hand_is_done_step_by_step_in_its_order(till: Project, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(HAND)
    receipt = edit('lines + [f"total:', 'lines + [f"sum:', path="till/receipt.py")
    with serving(till, Script(till.oracle, {IMPLEMENT.title: [None, receipt]})) as server:
        till.configure(server.base_url)
        told = till.cra("solve", "--plan", str(path), "--json")
    assert told.code == 0, told.err
    answer = json.loads(told.out)
    assert (answer["status"], answer["steps"]) == ("complete", {"done": 2, "total": 2})
    assert [entry["step_id"] for entry in answer["passes"]] == ["s1", "s2"]
    assert till.branch_file("till/money.py").decode() == MENDED_MONEY
    assert "sum:" in till.branch_file("till/receipt.py").decode()
    assert titles(server).isdisjoint({META_PLAN.title, PART_PLAN.title, ADJUSTMENT.title})


def test_a_fault_in_a_plan_by_hand_ends_before_anything_is_done(till: Project, tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(HAND.replace('"till/receipt.py"', '"receipt.py"'))
    told = till.cra("solve", "--plan", str(path))
    assert (told.code, told.traces) == (2, {})
    assert f"{path}: steps[2].files: receipt.py does not exist; write 'till/receipt.py'" in told.err


def test_a_plan_by_hand_is_checked_and_filled_in_without_a_model(till: Project, tmp_path: Path) -> None:
    path, target = tmp_path / "plan.toml", tmp_path / "full.json"
    path.write_text(HAND)
    told = till.cra("plan", "--plan", str(path), "-o", str(target))
    assert (told.code, told.out) == (0, ""), told.err
    full = json.loads(target.read_text())
    assert (full["as_steps"], full["execution_order"]) == (True, ["plan/s1", "plan/s2"])
    path.write_text("task = 3")
    refused = till.cra("plan", "--plan", str(path), "-o", str(target))
    assert refused.code == 2
    assert json.loads(target.read_text()) == full


@pytest.mark.parametrize("more", [("Another task",), ("--stages", "scope"), ("--context-window", "4096")])
def test_a_plan_that_is_there_goes_with_nothing_that_makes_one(
    till: Project, tmp_path: Path, more: tuple[str, ...]
) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(HAND)
    told = till.cra("plan", "--plan", str(path), *more)
    assert (told.code, told.out) == (2, "")
    assert "--plan" in told.err


def test_a_plan_is_edited_before_it_is_written(till: Project, tmp_path: Path, editor: Editor) -> None:
    target = tmp_path / "plan.toml"
    editor.replace('description = "', 'description = "Carefully: ')
    with serving(till) as server:
        till.configure(server.base_url)
        told = till.cra("plan", till.task, "--edit", "-o", str(target))
    assert told.code == 0, told.err
    assert 'description = "Carefully: ' in target.read_text()
    checked = till.cra("plan", "--plan", str(target))
    assert json.loads(checked.out)["task"] == till.task


def test_an_editor_closed_without_a_change_keeps_the_plan(
    plan: Path, till: Project, tmp_path: Path, editor: Editor
) -> None:
    before = plan.read_text()
    editor.replace("", "")
    told = till.cra("plan", "--plan", str(plan), "--edit")
    assert (told.code, plan.read_text()) == (0, before), told.err


def test_an_edited_plan_in_json_is_followed_as_steps_and_keeps_whose_it_was(
    plan: Path, till: Project, editor: Editor
) -> None:
    before = json.loads(plan.read_text())
    editor.replace("task_summary", "# task_summary")
    assert till.cra("plan", "--plan", str(plan), "--edit").code == 0
    after = json.loads(plan.read_text())
    assert (before["as_steps"], after["as_steps"]) == (False, True)
    assert after["task_id"] == before["task_id"]


def test_a_file_by_hand_is_edited_as_it_stands(till: Project, tmp_path: Path, editor: Editor) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(HAND.replace("[[steps]]", "[[stesp]]"))
    editor.replace("[[stesp]]", "[[steps]]")
    told = till.cra("plan", "--plan", str(path), "--edit")
    assert (told.code, path.read_text()) == (0, HAND), told.err


def test_an_edited_text_that_is_no_plan_is_kept_beside_what_was_there(
    plan: Path, till: Project, editor: Editor
) -> None:
    before = plan.read_text()
    editor.replace("files = [", "flies = [")
    told = till.cra("plan", "--plan", str(plan), "--edit")
    assert (told.code, plan.read_text()) == (2, before)
    assert "unknown key; did you mean 'files'?" in told.err
    (kept,) = re.findall(r"cra plan --plan (\S+) --edit", told.err)
    assert "flies = [" in Path(kept).read_text()
    Path(kept).unlink()


def test_a_plan_left_empty_is_given_up(plan: Path, till: Project, editor: Editor) -> None:
    before = plan.read_text()
    editor.clear()
    told = till.cra("plan", "--plan", str(plan), "--edit")
    assert (told.code, plan.read_text()) == (1, before)
    assert "left empty" in told.err


def test_an_editor_that_fails_is_named_and_the_text_kept(plan: Path, till: Project, editor: Editor) -> None:
    editor.script.write_text("raise SystemExit(3)")
    told = till.cra("plan", "--plan", str(plan), "--edit")
    assert told.code == 2
    assert "Editing failed" in told.err
    (kept,) = re.findall(r"cra plan --plan (\S+) --edit", told.err)
    Path(kept).unlink()


def test_without_a_terminal_and_an_editor_nothing_is_planned(
    till: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    told = till.cra("plan", till.task, "--edit")
    assert told.code == 2
    assert "--edit needs a terminal, or an editor in $VISUAL or $EDITOR" in told.err
    assert told.recorded.run is None

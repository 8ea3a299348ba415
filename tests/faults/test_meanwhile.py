"""What the user, git, and the tests themselves do to the repository while a run is under way."""

from pathlib import Path

from testing import repositories
from testing.repositories import git
from testing.runs.solving import MENDED_MONEY, MONEY, Project, edit
from testing.servers.ollama_script import ChatCall
from testing.states.hostile import canary, canary_program

from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import META_PLAN

SPLIT = "    share = cents // people\n    return [share] * people"
SWAP = """\
import os, subprocess
if os.path.isfile(".git"):
    os.unlink(".git")
    open({mark!r}, "w").close()
    for words in (["init"], ["config", "core.fsmonitor", {program!r}], ["config", "core.hooksPath", {folder!r}],
                  ["config", "filter.x.smudge", {program!r}], ["config", "core.worktree", "/etc"]):
        subprocess.run(["git", *words], check=True, stdout=subprocess.DEVNULL)
    open(".gitattributes", "w").write("* filter=x\\n")
"""


def test_the_user_may_commit_switch_and_edit_meanwhile(till: Project) -> None:
    before = git(till.top, "rev-parse", "HEAD")

    def work_on(_: ChatCall, right: str) -> str:
        repositories.commit(till.top, {"notes.txt": "mine\n", "till/receipt.py": "# rewritten\n"}, "Mine")
        git(till.top, "checkout", "-q", "-b", "other")
        repositories.write(till.top, {"till/money.py": MONEY + "# mine\n"})
        git(till.top, "branch", "-D", "main")
        return right

    told = till.solve_scripted({IMPLEMENT.title: [work_on]})
    assert told.code == 0, told.err
    (branch,) = told.branches
    assert git(till.top, "rev-parse", f"{branch}^") == before
    assert till.branch_file("till/money.py") == MENDED_MONEY.encode()
    assert (till.top / "till/money.py").read_text() == MONEY + "# mine\n"
    assert git(till.top, "symbolic-ref", "--short", "HEAD") == "other"
    assert told.worktrees == ()


def test_git_may_clean_up_meanwhile(till: Project) -> None:
    """What no branch holds is the snapshot of uncommitted work and each attempt."""
    repositories.write(till.top, {"notes.txt": "uncommitted\n"})

    def clean_up(_: ChatCall, right: str) -> str:
        git(till.top, "reflog", "expire", "--expire=now", "--all")
        git(till.top, "worktree", "prune", "--expire=now")
        git(till.top, "gc", "-q", "--prune=now")
        git(till.top, "prune", "--expire=now")
        return right

    wrong = edit(SPLIT, "    return []")
    told = till.solve_scripted({META_PLAN.title: [clean_up], IMPLEMENT.title: [wrong, clean_up]})
    assert told.code == 0, told.err
    assert len(told.recorded.outcomes) == 2
    assert till.branch_file("till/money.py") == MENDED_MONEY.encode()
    git(till.top, "fsck", "--full", "--strict")


def test_a_git_folder_that_a_test_puts_in_place_of_its_own_is_never_asked(
    till: Project, tmp_path: Path
) -> None:
    program = canary_program(tmp_path, tmp_path / "program")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        canary_program(tmp_path, hooks / name)
    swap = SWAP.format(program=str(program), folder=str(hooks), mark=str(tmp_path / "swapped"))
    top_line = MONEY.partition("\n")[0]
    hostile = edit(top_line, f"{top_line}\n{swap}") + edit(SPLIT, "    return []")
    told = till.solve_scripted({IMPLEMENT.title: [hostile]})
    assert (told.code, told.traces) == (0, {}), told.err
    assert len(told.recorded.outcomes) == 2
    assert (tmp_path / "swapped").exists()
    assert canary(tmp_path) == ()
    assert git(till.top, "diff", "--name-only", "HEAD", told.branches[0]) == "till/money.py"


def test_a_branch_of_the_results_name_is_not_overwritten(till: Project) -> None:
    made = []

    def take_the_name(_: ChatCall, right: str) -> str:
        (ref,) = {
            name.split("/")[2]
            for name in git(till.top, "for-each-ref", "--format=%(refname)", "refs/cra").split()
        }
        made.append(f"cra/{ref[:8]}")
        git(till.top, "branch", made[0])
        return right

    told = till.solve_scripted({IMPLEMENT.title: [take_the_name]})
    assert told.code == 2
    assert f"cannot make the branch {made[0]}" in told.err
    assert git(till.top, "rev-parse", made[0]) == git(till.top, "rev-parse", "HEAD")
    task = told.recorded.run
    assert task is not None
    kept = repositories.read_tree(till.top, f"refs/cra/{task.task_id}/head")
    assert kept["till/money.py"] == MENDED_MONEY.encode()

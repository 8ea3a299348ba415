import os
import subprocess
import sys
from pathlib import Path

import pytest
from testing.patience import PATIENCE

from clean_room_agent import proc
from clean_room_agent.languages.shell_words import shell_words
from clean_room_agent.orchestrator.run_config import FolderMode
from clean_room_agent.orchestrator.test_runs import test_commands
from clean_room_agent.orchestrator.test_runs.command_runner import run_tests
from clean_room_agent.orchestrator.test_runs.ignored_folders import prepare_links
from clean_room_agent.orchestrator.test_runs.test_commands import GUARD
from clean_room_agent.sandbox.policy import variables

REPORT = Path("/run dir/report.xml")
BARE = {"PATH": "/usr/bin:/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
ARGS = "-q -p no:cacheprovider tests"


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """(the user's tree, the worktree), equal: a package below `src` and a test that says which of them it is in."""
    tops = (tmp_path / "user" / "repo", tmp_path / "cache" / "w1")
    for top in tops:
        (top / "src" / "pack").mkdir(parents=True)
        (top / "src" / "pack" / "__init__.py").write_text("")
        (top / "src" / "pack" / "core.py").write_text(f"HOME = {str(top)!r}\n")
        (top / "tests").mkdir()
        test = f"from pack import core\ndef test_home(): assert core.HOME == {str(tops[1])!r}\n"
        (top / "tests" / "test_home.py").write_text(test)
    return tops


def make_venv(home: Path, editable: Path) -> None:
    """A virtual environment that sees our pytest, with `editable` installed as `pip install -e` does."""
    proc.run((sys.executable, "-m", "venv", "--without-pip", str(home)), cwd=home.parent, timeout=PATIENCE)
    packages = next(home.glob("lib/python3*/site-packages"))
    ours = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "ours.pth").write_text(ours + "\n")
    (packages / "__editable__.pack-1.pth").write_text(f"{editable / 'src'}\n")
    (home / "bin" / "pytest").write_text(
        f"#!{home}/bin/python\nimport pytest, sys\nsys.exit(pytest.main())\n"
    )
    (home / "bin" / "pytest").chmod(0o755)


def test_an_editable_install_of_the_user_s_tree_does_not_hide_the_worktree(
    trees: tuple[Path, Path], tmp_path: Path
) -> None:
    user, worktree = trees
    make_venv(tmp_path / "venv", editable=user)
    command, report = f"{tmp_path}/venv/bin/python -m pytest {ARGS}", tmp_path / "report.xml"
    naive = {**BARE, "PYTEST_ADDOPTS": f"--junitxml={report}"}
    trapped = run_tests(command, cwd=worktree, env=naive, timeout=PATIENCE, report=report)
    assert set(trapped.report.outcomes.values()) == {"failed"}
    env = test_commands.test_environment(BARE, worktree, user, report)
    assert run_tests(command, cwd=worktree, env=env, timeout=PATIENCE, report=report).report.outcomes == {
        "tests/test_home.py::test_home": "passed"
    }


@pytest.mark.parametrize("how", ["copy", "link"])
def test_an_in_tree_virtual_environment_tests_the_worktree(
    how: FolderMode, trees: tuple[Path, Path], tmp_path: Path
) -> None:
    user, worktree = trees
    make_venv(user / ".venv", editable=user)
    before = checksum(user)
    said = prepare_links(worktree, user, (".venv", "node_modules"), how=how)
    assert len(said) == 1
    env = test_commands.test_environment(
        {**BARE, "VIRTUAL_ENV": f"{user}/.venv", "PATH": f"{user}/.venv/bin:/usr/bin:/bin"},
        worktree,
        user,
        tmp_path / "r",
    )
    assert env["VIRTUAL_ENV"] == f"{worktree}/.venv"
    got = run_tests(f"pytest {ARGS}", cwd=worktree, env=env, timeout=PATIENCE, report=tmp_path / "r")
    assert got.report.outcomes == {"tests/test_home.py::test_home": "passed"}
    if how == "copy":
        python = f"{worktree}/.venv/bin/python -c 'import pack.core; print(pack.core.HOME)'"
        without_path = proc.run(python, cwd=tmp_path, env=BARE, timeout=PATIENCE)
        assert without_path.stdout.decode().strip() == str(worktree)
    assert checksum(user) == before


def checksum(top: Path) -> str:
    listing = subprocess.run(
        f"find {top} -printf '%P %y %l %m\\n' | sort; find {top} -type f | sort | xargs sha256sum",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    return listing.stdout


def test_the_report_is_asked_for_beside_the_user_s_own_options(tmp_path: Path) -> None:
    env = test_commands.test_environment({"PYTEST_ADDOPTS": "-x"}, tmp_path, tmp_path / "user", REPORT)
    assert env["PYTEST_ADDOPTS"].startswith("-x '--junitxml=/run dir/report.xml' -o junit_family=xunit1")


def test_nothing_of_git_or_of_an_outer_pytest_leaks_in(tmp_path: Path) -> None:
    outer = {
        "GIT_DIR": "x",
        "GIT_INDEX_FILE": "y",
        "PYTEST_XDIST_WORKER": "gw0",
        "GITHUB_ACTIONS": "1",
        "HOME": "/h",
    }
    env = test_commands.test_environment(outer, tmp_path, tmp_path / "user", REPORT)
    assert {"GITHUB_ACTIONS", "HOME"} <= env.keys()
    assert not {"GIT_DIR", "GIT_INDEX_FILE", "PYTEST_XDIST_WORKER"} & env.keys()
    assert (env["PYTHONDONTWRITEBYTECODE"], env["PYTHONHASHSEED"]) == ("1", "0")


def test_the_user_s_hash_seed_stays(tmp_path: Path) -> None:
    env = test_commands.test_environment({"PYTHONHASHSEED": "7"}, tmp_path, tmp_path / "user", REPORT)
    assert env["PYTHONHASHSEED"] == "7"


def test_ci_is_set_unless_the_user_set_it(tmp_path: Path) -> None:
    def value(once: bool, inherited: dict[str, str]) -> str | None:
        env = test_commands.test_environment(inherited, tmp_path, tmp_path / "user", REPORT, once=once)
        return env.get("CI")

    assert (value(True, {}), value(True, {"CI": ""}), value(True, {"CI": "false"})) == ("1", "", "false")
    assert value(False, {}) is None


@pytest.mark.parametrize(
    ("command", "package", "expected"),
    [
        ("npm test", None, True),
        ("cd web && pnpm run test:unit", None, True),
        ("node_modules/.bin/vitest", None, True),
        ("make test", "package.json", True),
        ("make test", "web/package.json", True),
        ("make test", None, False),
        ("python3 -m pytest -q", "package.json", False),
        ("python3 -m unittest -v", "package.json", False),
        ("python3 -m pytest -q && npm test", None, True),
    ],
)
def test_runners_of_javascript_may_wait_for_changes(
    command: str, package: str | None, expected: bool, tmp_path: Path
) -> None:
    if package:
        (tmp_path / package).parent.mkdir(exist_ok=True)
        (tmp_path / package).write_text("{}")
    assert test_commands.may_wait(command, tmp_path) is expected


def test_import_roots_are_the_worktree_s_and_come_first(trees: tuple[Path, Path]) -> None:
    user, worktree = trees
    (worktree / "lib").mkdir()
    (worktree / "lib" / "index.js").write_text("")
    (worktree / "extra").mkdir()
    inherited = {"PYTHONPATH": f"{user}/extra:/opt/site", "PATH": f"{user}/bin:/usr/bin"}
    env = test_commands.test_environment(inherited, worktree, user, REPORT)
    roots = [f"{worktree}/src", str(worktree), f"{worktree}/extra"]
    assert env["PYTHONPATH"].split(":") == [str(GUARD), *roots, f"{user}/extra", "/opt/site"]
    assert env["PATH"] == f"{user}/bin:/usr/bin", "what the worktree lacks stays"


@pytest.mark.parametrize("goal", ["/dev/zero", "fifo", "link"])
def test_only_regular_path_files_are_read(goal: str, tmp_path: Path) -> None:
    packages = tmp_path / ".venv/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    (tmp_path / "lib").mkdir()
    (tmp_path / "other.pth").write_text(f"{tmp_path / 'lib'}\n")
    if goal == "fifo":
        os.mkfifo(packages / "x.pth")
    else:
        (packages / "x.pth").symlink_to(goal if goal.startswith("/") else tmp_path / "other.pth")
    (packages / "y.pth").write_text(f"{tmp_path / 'own'}\n")
    worktree = tmp_path / "worktree"
    (worktree / "own").mkdir(parents=True)
    (worktree / "lib").mkdir()
    assert test_commands.import_roots({}, worktree, tmp_path) == (worktree, worktree / "own")


def test_a_number_sign_within_a_word_is_no_comment() -> None:
    assert [word.text for word in shell_words("c#/pytest -k 'a # b' # c")] == [
        "c#/pytest",
        "-k",
        "a # b",
    ]


def test_all_that_the_guard_is_told_reaches_the_sandbox(tmp_path: Path) -> None:
    env = test_commands.test_environment(
        {}, tmp_path, tmp_path / "user", REPORT, command="node --test", traced=True, observed="{}"
    )
    inside = variables(env, (), Path("/home/user"))
    assert {name: inside.get(name) for name in env} == env

"""Where commands run: which mode gives what, and what only works with the worktree at the repository's place."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from testing.patience import PATIENCE
from testing.repositories import Files, git, make_repository
from testing.runs.solving import make_project
from testing.sandboxes import installed, on_disk
from tests.orchestrator.test_runs.test_goal_trace import DEEP, Silence, named, run_of, said

from clean_room_agent.errors import ConfigError
from clean_room_agent.git.repository import open_repository
from clean_room_agent.git.worktree import Worktree, add_worktree, bare_configuration, included_files
from clean_room_agent.orchestrator.run_config import SandboxConfig, SandboxMode, TestingConfig, WorktreeConfig
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner, TestWorktree
from clean_room_agent.orchestrator.test_runs.goal_trace import trace_goals
from clean_room_agent.orchestrator.test_runs.ignored_folders import copy_included
from clean_room_agent.orchestrator.test_runs.worktrees import (
    NO_SANDBOX,
    RunnerSetup,
    SandboxSetup,
    set_up_sandbox,
)
from clean_room_agent.sandbox.bubblewrap import Bubblewrap, Obstacle, Sandbox

__all__ = ["on_disk"]  # in the place of `tmp_path`

MISSING = Obstacle(reason="bubblewrap is not installed", remedy="install it")
ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
BEFORE, AFTER = "answer = 'of the user'\n", "answer = 'of the worktree'\n"


def make_tree(tmp_path: Path, files: Files) -> Worktree:
    """A worktree of a repository in a home."""
    repo = open_repository(make_repository(tmp_path / "home/project", files))
    return add_worktree(repo, repo.head, tmp_path / "cache/tree", "task")


def setup_for(
    tree: Worktree,
    mode: SandboxMode,
    find: Callable[[], Bubblewrap | Obstacle] = lambda: MISSING,
    *,
    command: str = "true",
    worktree: WorktreeConfig | None = None,
    machine: Obstacle | None = None,
) -> SandboxSetup:
    setup = RunnerSetup(
        repo=tree.repo,
        place=tree.path,
        environment=ENV,
        sandbox=SandboxConfig(mode=mode),
        testing=TestingConfig(test_command=command),
        worktree=worktree or WorktreeConfig(),
        home=tree.repo.top.parent,
        find=find,
        try_machine=lambda _: machine,
    )
    return set_up_sandbox(setup, tree, tree.path.parent / "reports/results.xml")


def sandboxed(tree: Worktree, command: str, worktree: WorktreeConfig | None = None) -> Sandbox:
    sandbox_setup = setup_for(tree, "bwrap", installed, command=command, worktree=worktree)
    assert sandbox_setup.sandbox is not None
    return sandbox_setup.sandbox


def without_the_mount(sandbox: Sandbox) -> Sandbox:
    """The same, but the worktree stands at its own place, and the user's folders where they are."""
    policy = sandbox.policy
    moved = replace(policy, at=policy.tree, git=None, mounts=(), read=(*policy.read, policy.at))
    return replace(sandbox, policy=moved)


def runs(sandbox: Sandbox, command: str) -> bool:
    done = sandbox.run(command, env=ENV, timeout=PATIENCE)
    return done.returncode == 0


def make_environment(folder: Path, *, paths: str = "") -> None:
    """A virtual environment as `python -m venv` makes it, with a `.pth` file that names `paths`."""
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    packages = folder / f"lib/python3.{sys.version_info.minor}/site-packages"
    packages.mkdir(parents=True)
    (packages / "editable.pth").write_text(f"{paths}\n")
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to(base)
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")


def test_none_is_said_and_runs_as_the_user(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"a.py": BEFORE})
    assert setup_for(tree, "none").notes == (NO_SANDBOX,)


def test_auto_without_bubblewrap_is_said_with_the_reason_and_the_remedy(tmp_path: Path) -> None:
    sandbox_setup = setup_for(make_tree(tmp_path, {"a.py": BEFORE}), "auto")
    assert sandbox_setup.sandbox is None
    assert sandbox_setup.notes == (f"{NO_SANDBOX} (bubblewrap is not installed; install it)",)


def test_a_configured_sandbox_that_cannot_be_had_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not installed") as caught:
        setup_for(make_tree(tmp_path, {"a.py": BEFORE}), "bwrap")
    assert caught.value.hint == "install it"


def broken_bubblewrap(folder: Path) -> Bubblewrap:
    program = folder / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: Can'\"'\"'t mount on /x' >&2; exit 1\n")
    program.chmod(0o755)
    return Bubblewrap(program=str(program), version="0.8.0")


@pytest.mark.parametrize("mode", ["auto", "bwrap"])
def test_a_sandbox_that_fails_for_this_repository_alone_is_an_error(
    mode: SandboxMode, tmp_path: Path
) -> None:
    tree = make_tree(tmp_path, {"a.py": BEFORE})
    with pytest.raises(ConfigError, match="works on this machine, but not for this repository"):
        setup_for(tree, mode, lambda: broken_bubblewrap(tmp_path))


def test_bubblewrap_that_fails_on_this_machine_is_as_if_it_were_not_installed(tmp_path: Path) -> None:
    tree, machine = (
        make_tree(tmp_path, {"a.py": BEFORE}),
        Obstacle(reason="no namespaces", remedy="allow them"),
    )
    auto = setup_for(tree, "auto", lambda: broken_bubblewrap(tmp_path), machine=machine)
    assert (auto.sandbox, auto.notes) == (None, (f"{NO_SANDBOX} (no namespaces; allow them)",))
    with pytest.raises(ConfigError, match="no namespaces") as caught:
        setup_for(tree, "bwrap", lambda: broken_bubblewrap(tmp_path), machine=machine)
    assert caught.value.hint == "allow them"


def linked_hooks(top: Path) -> None:
    (top.parent / "hooks").mkdir()
    (top.parent / "hooks/pre-commit").write_text("exit 1\n")
    shutil.rmtree(top / ".git/hooks")
    (top / ".git/hooks").symlink_to(top.parent / "hooks")


def linked_modules(top: Path) -> None:
    (top.parent / "modules").mkdir()
    (top / ".git/modules").symlink_to(top.parent / "modules")


def modules(top: Path) -> None:
    (top / ".git/modules/m").mkdir(parents=True)


def hooks_file(top: Path) -> None:
    shutil.rmtree(top / ".git/hooks")
    (top / ".git/hooks").write_text("")


def linked_refs(top: Path) -> None:
    (top / ".git/refs").rename(top.parent / "refs")
    (top / ".git/refs").symlink_to(top.parent / "refs")


def config_of_worktrees(top: Path) -> None:
    (top / ".git/config.worktree").symlink_to("/nowhere")


@pytest.mark.parametrize(
    "spoil",
    [linked_hooks, linked_modules, modules, hooks_file, linked_refs, config_of_worktrees],
)
def test_git_works_in_the_sandbox_however_its_folder_is_put_together(
    spoil: Callable[[Path], None], tmp_path: Path
) -> None:
    tree = make_tree(tmp_path, {"a.py": BEFORE})
    git(tree.repo.top, "tag", "v1")
    spoil(tree.repo.top)
    sandbox = sandboxed(tree, "true")
    assert runs(sandbox, "git describe --tags && git status --porcelain && git log -1 main")


def test_of_git_s_folder_nothing_is_shown_but_what_its_history_needs(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"a.py": BEFORE})
    folder = tree.repo.common_dir
    for name in ("credentials", "config.more", "FETCH_HEAD", "worktrees/o/config.worktree", "lfs/x"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("secret")
    git(tree.repo.top, "stash", "list")
    done = sandboxed(tree, "true").run("cd /run/cra-git && find . -type f", env=ENV, timeout=PATIENCE)
    shown = {name for name in done.stdout.decode().split() if not name.startswith("./objects/")}
    notes = f"./worktrees/{tree.git_dir.name}"
    own = {f"{notes}/{name}" for name in ("HEAD", "index", "commondir", "gitdir")}
    assert shown == {"./config", "./packed-refs", *own}


def test_objects_elsewhere_are_not_shown(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", {"a.py": BEFORE})
    git(tmp_path, "clone", "-q", "--shared", str(source), "till")
    repo = open_repository(tmp_path / "till")
    sandbox = sandboxed(add_worktree(repo, repo.head, tmp_path / "cache/tree", "task"), "true")
    done = sandbox.run(f"cat a.py; git log; ls {source}", env=ENV, timeout=PATIENCE)
    assert done.stdout.decode() == BEFORE
    shutil.move(repo.common_dir / "objects", tmp_path / "photos")
    (repo.common_dir / "objects").symlink_to(tmp_path / "photos")
    assert runs(sandboxed(add_worktree(repo, repo.head, tmp_path / "cache/2", "task2"), "true"), "cat a.py")


def test_a_command_that_the_sandbox_does_not_show_is_told_with_the_remedy(tmp_path: Path) -> None:
    installed()
    hidden = tmp_path / "tool.sh"
    hidden.write_text("exit 0")
    told = make_project(tmp_path, test_command=f"bash {hidden}").solve_scripted(sandbox={"mode": "bwrap"})
    assert told.code == 2
    assert "[sandbox] read" in told.err


@pytest.mark.parametrize("mode", ["auto", "bwrap"])
def test_where_bubblewrap_works_both_take_it(mode: SandboxMode, tmp_path: Path) -> None:
    sandbox_setup = setup_for(make_tree(tmp_path, {"a.py": BEFORE}), mode, installed)
    assert sandbox_setup.sandbox is not None
    assert sandbox_setup.notes[0].startswith("sandbox: bubblewrap")


def test_an_editable_install_finds_the_worktree_s_files(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"src/till.py": BEFORE, ".gitignore": ".venv\n"})
    (tree.path / "src/till.py").write_text(AFTER)
    make_environment(tree.repo.top / ".venv", paths=f"{tree.repo.top}/src")
    command = ".venv/bin/python -I -c \"import till; assert till.answer == 'of the worktree', till.answer\""
    sandbox = sandboxed(tree, command)
    assert runs(sandbox, command)
    assert not runs(without_the_mount(sandbox), command.replace(".venv", f"{tree.repo.top}/.venv"))


def test_an_in_tree_environment_s_scripts_start(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"a.py": AFTER, ".gitignore": ".venv\n"})
    venv = tree.repo.top / ".venv"
    make_environment(venv, paths=str(tree.repo.top))
    script = venv / "bin/check"
    script.write_text(f"#!{venv}/bin/python\nimport a, sys\nsys.exit(a.answer != 'of the fix')\n")
    script.chmod(0o755)
    (tree.path / "a.py").write_text("answer = 'of the fix'\n")
    sandbox = sandboxed(tree, ".venv/bin/check")
    assert runs(sandbox, ".venv/bin/check")
    assert not runs(without_the_mount(sandbox), f"{venv}/bin/check")
    assert not runs(sandbox, "touch .venv/written")
    assert not (venv / "written").exists()


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_node_modules_are_found_and_their_links_lead_into_the_worktree(tmp_path: Path) -> None:
    files = {"t.js": "process.exit(require('own') === 'fixed' ? 0 : 1)\n", ".gitignore": "node_modules\n"}
    tree = make_tree(tmp_path, {**files, "packages/own/index.js": "module.exports = 'broken'\n"})
    modules = tree.repo.top / "node_modules"
    modules.mkdir()
    (modules / "own").symlink_to("../packages/own")
    (tree.path / "packages/own/index.js").write_text("module.exports = 'fixed'\n")
    sandbox = sandboxed(tree, "node t.js")
    assert runs(sandbox, "node t.js")
    assert not runs(without_the_mount(sandbox), "node t.js")


def test_an_environment_that_is_a_link_is_followed(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"a.py": AFTER, ".gitignore": ".venv\n"})
    make_environment(tmp_path / "home/.virtualenvs/project")
    (tree.repo.top / ".venv").symlink_to(tmp_path / "home/.virtualenvs/project")
    command = ".venv/bin/python -c 'import a'"
    assert runs(sandboxed(tree, command), command)


@pytest.mark.parametrize("goal", [".ssh", "project/.clean_room", "project/.git", "photos"])
def test_a_linked_folder_that_is_no_environment_is_left_out_and_said(goal: str, tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"a.py": AFTER, ".gitignore": "venv\n.clean_room\n"})
    folder = tmp_path / "home" / goal
    folder.mkdir(exist_ok=True)
    (folder / "private").write_text("secret")
    (tree.repo.top / "venv").symlink_to(folder)
    sandbox_setup = setup_for(tree, "bwrap", installed)
    assert any(text.startswith("venv: left out (a link to ") for text in sandbox_setup.notes)
    assert sandbox_setup.sandbox is not None
    done = sandbox_setup.sandbox.run("grep -rs secret ~ . venv", env=ENV, timeout=PATIENCE)
    assert done.stdout == b""


def test_a_link_in_an_environment_opens_no_folder_of_the_home(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"a.py": AFTER, ".gitignore": ".venv\n"})
    make_environment(tree.repo.top / ".venv")
    (tmp_path / "home/.ssh").mkdir()
    (tmp_path / "home/.ssh/id_rsa").write_text("secret")
    (tree.repo.top / ".venv/bin/python3").symlink_to(tmp_path / "home/.ssh/id_rsa")
    sandbox = sandboxed(tree, ".venv/bin/python -c 'import a'")
    assert runs(sandbox, ".venv/bin/python -c 'import a' && test ! -e ~/.ssh")


def test_folders_can_be_copied_for_tools_that_write_there(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"a.py": AFTER, ".gitignore": "node_modules\n"})
    (tree.repo.top / "node_modules").mkdir()
    sandbox = sandboxed(tree, "true", WorktreeConfig(in_sandbox="copy"))
    assert runs(sandbox, "touch node_modules/.cache")
    assert not (tree.repo.top / "node_modules/.cache").exists()


def test_a_repository_among_the_system_s_folders_is_covered_by_the_worktree(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"a.py": AFTER})
    sandbox = sandboxed(tree, "true")
    covered = replace(sandbox, policy=replace(sandbox.policy, at=Path("/usr/share"), git=None))
    assert runs(covered, "test -f /usr/share/a.py && test ! -e /usr/share/doc")


def test_git_works_inside_and_shows_no_password(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"a.py": AFTER})
    git(tree.repo.top, "config", "remote.origin.url", "https://me:token@example.com/x")
    sandbox = sandboxed(tree, "true")
    assert runs(sandbox, "git describe --always && git status --porcelain && git log -1")
    done = sandbox.run("git config --list", env=ENV, timeout=PATIENCE)
    assert b"token" not in done.stdout
    assert b"core.repositoryformatversion=0" in done.stdout
    assert not runs(sandbox, "git update-ref refs/heads/made HEAD")


def test_a_configuration_is_reduced_to_what_reading_needs(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "r", {"a": ""})
    for key, value in {
        "core.fsmonitor": "evil",
        "core.autocrlf": "input",
        "http.extraheader": "secret",
    }.items():
        git(top, "config", key, value)
    written = bare_configuration(open_repository(top)).decode()
    assert "autocrlf = input" in written
    assert "evil" not in written
    assert "secret" not in written


def test_worktreeinclude_names_ignored_files_by_patterns(tmp_path: Path) -> None:
    files = {
        ".gitignore": "*.env\nbuild/\n",
        ".worktreeinclude": "*.env\n!b.env\nbuild/x*\nplain\n",
        "a.py": "",
    }
    top = make_repository(tmp_path / "r", files)
    for name in ("local.env", "sub/deep.env", "b.env", "build/x1", "build/y", "plain"):
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text(name)
    found = included_files(open_repository(top))
    assert found == ("build/x1", "local.env", "sub/deep.env"), "plain is not ignored: the snapshot has it"
    (top / "sub/deep.env").unlink()
    (top / "sub/deep.env").symlink_to("/etc/passwd")
    target = tmp_path / "tree"
    target.mkdir()
    copy_included(target, top, found)
    copied = {str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir()}
    assert copied == {"build/x1", "local.env"}


def test_worktreeinclude_brings_in_nothing_of_git_s_or_of_our_own(tmp_path: Path) -> None:
    patterns = "*\n.clean_room/**\n!nothing\n.Clean_Room/*\nsub/.clean_room/raw.sqlite\n"
    top = make_repository(
        tmp_path / "r", {".worktreeinclude": patterns, ".gitignore": "*.env\n.?lean_?oom\n"}
    )
    for name in (
        ".clean_room/raw.sqlite",
        ".Clean_Room/redaction.key",
        "sub/.clean_room/raw.sqlite",
        "a.env",
    ):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("private")
    (top / ".clean_room/.gitignore").write_text("*\n")
    assert included_files(open_repository(top)) == ("a.env",)


def test_without_a_worktreeinclude_nothing_is_included(tmp_path: Path) -> None:
    assert included_files(open_repository(make_repository(tmp_path / "r", {"a": ""}))) == ()


def test_a_trace_is_made_in_the_sandbox_too(tmp_path: Path) -> None:
    tests = (
        "import unittest\nfrom shop import Shop\nclass A(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(Shop(2).count('abc'), 1)\n"
    )
    command = "python3 -m unittest test_shop"
    tree = make_tree(tmp_path, {"shop.py": DEEP, "test_shop.py": tests})
    runner = CommandRunner(
        config=TestingConfig(test_command=command, timeout=PATIENCE),
        tree=TestWorktree(worktree=tree),
        inherited=ENV,
        report=tree.path.parent / "reports/results.xml",
        observer=Silence(),
        sandbox=sandboxed(tree, command),
    )
    goal = "test_shop.A.test_total"
    trace = trace_goals(runner, [goal], [], run_of(command, [goal], [], "unittest"))
    assert (trace.problem, sorted(named(trace))) == ("", ["Shop.__init__", "Shop.count"])
    assert said(named(trace)["Shop.count"]) == ("name='abc'", "0", "")

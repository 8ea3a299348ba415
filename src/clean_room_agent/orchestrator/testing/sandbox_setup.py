"""Where the repository's commands run: in a sandbox that shows the worktree at the repository's own place, or not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from clean_room_agent import proc
from clean_room_agent.errors import ConfigError
from clean_room_agent.git.visible_metadata import alternate_folders, shown_folders, written_files
from clean_room_agent.git.worktree import Worktree
from clean_room_agent.orchestrator.testing.config import TestingConfig, WorktreeConfig
from clean_room_agent.orchestrator.testing.environment import test_environment
from clean_room_agent.orchestrator.testing.guard_watch import GUARD
from clean_room_agent.orchestrator.testing.ignored_folders import Copies, links_to_mount, strange_links
from clean_room_agent.sandbox.bubblewrap import MIB, OTHER_REMEDY, Bubblewrap, Obstacle, Sandbox
from clean_room_agent.sandbox.config import SandboxConfig
from clean_room_agent.sandbox.policy import GitFolder, Policy
from clean_room_agent.sandbox.tool_mounts import interpreter_places, tool_places

NO_SANDBOX = "no sandbox: the tests run model-written code with your rights"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxInputs:
    """What is configured and what is there, for the place in which commands run."""

    config: SandboxConfig
    testing: TestingConfig
    worktree: WorktreeConfig
    home: Path
    """The user's."""
    find: Callable[[], Bubblewrap | Obstacle]
    """Looks whether bubblewrap works on this machine, whatever the repository; not called where none is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSetup:
    """Where commands run, and what a person is to know of it."""

    sandbox: Sandbox | None
    notes: tuple[str, ...]
    copies: Copies | None = None
    """The linked folders that were brought into the worktree; None where they are mounted."""


def set_up_sandbox(
    sandbox_inputs: SandboxInputs, worktree: Worktree, environment: Mapping[str, str], report: Path
) -> SandboxSetup:
    """The place for the commands of a run in `worktree`; what they need beside its files was brought there.

    Where bubblewrap works on this machine, a sandbox that cannot be had for this repository is an error: what the
    repository holds never decides that there is none.

    Raises:
        ConfigError: a sandbox is configured, or works on this machine, and cannot be had here.
        RepositoryError: `[worktree] link` leads out of the repository.
        CommandError: the copy of a linked folder failed, or whether bubblewrap works could not be found out.
    """
    top, links = worktree.repo.top, sandbox_inputs.worktree.link
    found: Bubblewrap | Obstacle = Obstacle(reason="", remedy="")
    if sandbox_inputs.config.mode != "none":
        found = sandbox_inputs.find()
    if isinstance(found, Bubblewrap):
        sandbox = _tried(found, sandbox_inputs, worktree, environment, report)
        names = ", ".join(str(place.relative_to(top)) for _, place in sandbox.policy.mounts)
        shown = f"; {names} read-only" if names else ""
        text = f"sandbox: bubblewrap {found.version}, no network, your home hidden{shown}"
        copied: tuple[str, ...] = ()
        copies = None
        if sandbox_inputs.worktree.in_sandbox == "copy":
            copies = Copies(worktree=worktree.path, repo_top=top, names=links, how="copy", turn=False)
            copied = copies.bring()
        left_out = (f"{name}: left out ({why})" for name, why in strange_links(top, links))
        return SandboxSetup(sandbox=sandbox, notes=(text, *left_out, *copied), copies=copies)
    if sandbox_inputs.config.mode == "bwrap":
        raise ConfigError(
            f'[sandbox] mode = "bwrap", and there can be no sandbox: {found.reason}', hint=found.remedy
        )
    because = f" ({found.reason}; {found.remedy})" if found.reason else ""
    copies = Copies(
        worktree=worktree.path,
        repo_top=top,
        names=links,
        how=sandbox_inputs.worktree.without_sandbox,
        turn=True,
    )
    done = copies.bring()
    return SandboxSetup(sandbox=None, notes=(NO_SANDBOX + because, *done), copies=copies)


def _tried(
    bubblewrap: Bubblewrap,
    sandbox_inputs: SandboxInputs,
    worktree: Worktree,
    environment: Mapping[str, str],
    report: Path,
) -> Sandbox:
    if worktree.repo.top == Path("/"):
        raise ConfigError("there can be no sandbox: the repository is the root folder", hint=OTHER_REMEDY)
    sandbox = _sandbox(bubblewrap, sandbox_inputs, worktree, environment, report)
    report.parent.mkdir(parents=True, exist_ok=True)
    obstacle = sandbox.try_out(environment)
    if obstacle is not None:
        raise ConfigError(
            f"bubblewrap works on this machine, but not for this repository: {obstacle.reason}",
            hint=obstacle.remedy,
        )
    return sandbox


def _sandbox(
    bubblewrap: Bubblewrap,
    sandbox_inputs: SandboxInputs,
    worktree: Worktree,
    environment: Mapping[str, str],
    report: Path,
) -> Sandbox:
    config, testing, top = sandbox_inputs.config, sandbox_inputs.testing, worktree.repo.top
    mount = sandbox_inputs.worktree.in_sandbox == "mount"
    links = links_to_mount(worktree.path, top, sandbox_inputs.worktree.link)
    commands = (
        testing.test_command,
        testing.step_test_command,
        testing.lint_command,
        testing.type_check_command,
    )
    inside = test_environment(environment, top, top, report)
    read = [
        GUARD,
        *(sandbox_inputs.home / path.removeprefix("~/") for path in config.read),
        *tool_places(inside, [command for command in commands if command], top),
    ]
    for name, source in links:
        read += [source, *interpreter_places(top / name), *interpreter_places(source)]
    policy = Policy(
        tree=worktree.path,
        at=top,
        home=sandbox_inputs.home,
        reports=report.parent,
        mounts=tuple((source, top / name) for name, source in links) if mount else (),
        read=tuple(read),
        git=GitFolder(
            written=written_files(worktree.repo),
            folders=shown_folders(worktree.repo),
            worktree=worktree.git_dir,
            alternates=alternate_folders(worktree.repo),
        ),
        scratch_bytes=config.scratch_mb * MIB,
    )
    limits = proc.Limits(
        memory=config.memory_mb * MIB, processes=config.processes, file_size=config.file_mb * MIB
    )
    return Sandbox(bubblewrap=bubblewrap, policy=policy, environment=config.environment, limits=limits)

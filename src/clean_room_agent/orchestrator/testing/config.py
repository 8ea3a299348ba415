"""The slices of `config.toml` that say how tests are run and where."""

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from clean_room_agent.config import ConfigSlice

Accept = Literal["all-pass", "no-new-failures", "untested"]
How = Literal["copy", "link"]
HowInside = Literal["mount", "copy"]


class TestingConfig(ConfigSlice):
    """[testing]: the repository's own commands, run in the worktree by the shell."""

    __test__: ClassVar[bool] = False  # its name must not make pytest collect it

    test_command: str = Field(
        min_length=1, description="runs all tests; judges the state at the start and the result"
    )
    step_test_command: str | None = Field(
        default=None, min_length=1, description="a quicker command that judges each attempt at a step"
    )
    lint_command: str | None = Field(default=None, min_length=1, description="for information only")
    type_check_command: str | None = Field(default=None, min_length=1, description="for information only")
    timeout: float = Field(
        default=120.0, gt=0, description="seconds for each of these commands; after that it is killed"
    )
    parallel: int = Field(
        default=1,
        ge=1,
        le=16,
        description="candidates of an attempt (see [solve] samples) that are drawn and tested at a time, each in a worktree of "
        "its own; at most as many as this machine has cores",
    )
    output_bound: int = Field(
        default=1_000_000,
        ge=2_000,
        description="bytes kept of each of a command's two streams; of longer ones, the beginning and the end",
    )
    accept: Accept = Field(
        default="all-pass",
        description='when a result is complete: "all-pass", "no-new-failures" where the tests were red before, or "untested" '
        "where there are none",
    )


class WorktreeConfig(ConfigSlice):
    """[worktree]: where a task's own copy of the tree stands, and what tests need in it beside the files."""

    root: Path | None = Field(
        default=None,
        description="folder for worktrees, outside the repository; by default in the user's cache",
    )
    link: tuple[str, ...] = Field(
        default=(".venv", "venv", "node_modules"),
        description="ignored folders that tests need, brought into the worktree",
    )
    in_sandbox: HowInside = Field(
        default="mount",
        description='"mount" those folders read-only, or "copy" them for tools that write there',
    )
    without_sandbox: How = Field(
        default="copy",
        description='"copy" those folders, or "link" to yours, which tests could then change',
    )

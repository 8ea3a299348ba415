"""The metric for edits in `cra adapters evaluate`, with the clones whose tests can be run."""

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clean_room_agent.app import wiring
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.artifacts.ids import new_task_id, short_id
from clean_room_agent.artifacts.outcomes import PassType
from clean_room_agent.git.repository import open_repository
from clean_room_agent.workspace import private_folder

if TYPE_CHECKING:
    from clean_room_agent.llm.prompt import Prompt
    from clean_room_agent.training.edit_steps import Clone
    from clean_room_agent.training.metrics import Metric


def edit_metrics(
    stack: contextlib.ExitStack, prompts: Sequence["Prompt[Any, Any]"], clones: Iterable[Path]
) -> "dict[str, Metric]":
    """By prompt, the metric that knows these clones; none where no prompt asks for edits. Work trees go with `stack`."""
    if PassType.IMPLEMENT.value not in {prompt.name for prompt in prompts}:
        return {}
    from clean_room_agent.training.edit_steps import EditSteps

    return {PassType.IMPLEMENT.value: EditSteps([_clone(stack, path) for path in clones])}


def _clone(stack: contextlib.ExitStack, path: Path) -> "Clone":
    """The clone at the path, with its tests where its configuration names them.

    Raises:
        RepositoryError: there is no repository.
        UsageError: its configuration is not the user's own, or wrong.
        ConfigError: it wants a sandbox that there cannot be.
    """
    from clean_room_agent.app.run_wiring import sandbox_inputs_of
    from clean_room_agent.training.clone_tests import opened_tests
    from clean_room_agent.training.edit_steps import Clone

    repo = open_repository(path)
    workspace = wiring.workspace_of(repo.top)
    settings = load_settings(workspace.config, Overrides()) if workspace.config.exists() else None
    if settings is None or "test_command" not in settings.data.get("testing", {}):
        return Clone(repo=repo, why_untested=f"{workspace.config} names no test_command")
    task_id = new_task_id()
    place = private_folder(wiring.worktrees_folder(workspace, settings)) / short_id(task_id)
    run = stack.enter_context(
        opened_tests(repo, sandbox_inputs_of(settings), place, task_id, dict(os.environ))
    )
    return Clone(repo=repo, run_tests=run)

"""Opens a plan in the user's editor."""

import os
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

import click

from clean_room_agent.artifacts.plans import PlanArtifact
from clean_room_agent.errors import ArtifactError, CraError, UsageError
from clean_room_agent.execute.plan_file import is_toml, load_artifact
from clean_room_agent.file_contents import read_given

EDITORS = ("VISUAL", "EDITOR")


def require_editor() -> None:
    """Check that an editor can be opened.

    Raises:
        UsageError: there is no terminal, and no editor is configured that might work without one.
    """
    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    if not terminal and not any(os.environ.get(name) for name in EDITORS):
        raise UsageError(
            "--edit needs a terminal, or an editor in $VISUAL or $EDITOR",
            hint="leave --edit out and edit the file that -o writes",
        )


def plan_in(path: Path, paths: Collection[str], *, edit: bool) -> tuple[PlanArtifact | None, str]:
    """The plan in a file, and the file's text if it is in TOML; of a text that will be edited, and need not be a plan yet,
    only that. `paths` are those in the tree.
    """
    text = read_given(path)
    by_hand = is_toml(text, str(path))
    plan = None if edit and by_hand else load_artifact(text, str(path), paths)
    return plan, text if by_hand else ""


def edit_plan(
    text: str, paths: Collection[str], written_from: PlanArtifact | None
) -> tuple[str, PlanArtifact]:
    """The text as the user's editor left it, and the plan in it; `paths` are those in the tree.

    A text that was `written_from` a plan and left as it was is that plan; an edited one has its task id, model and
    time. A text that is not accepted stays in a file that the error names.

    Raises:
        CraError: the text was left empty.
        ArtifactError: it is not a plan.
        UsageError: the editor failed.
    """
    handle, name = tempfile.mkstemp(prefix="cra-plan-", suffix=".toml")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    place = Path(name)
    kept = f"cra plan --plan {place} --edit -o FILE"
    try:
        click.edit(filename=name)
        edited = place.read_text(encoding="utf-8-sig")
    except click.ClickException as exc:
        hint = f"name another in $EDITOR; the plan is kept: {kept}"
        raise UsageError(exc.format_message(), hint=hint) from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"cannot read {place} after it was edited: {exc}") from exc
    if not edited.strip():
        place.unlink()
        raise CraError("the plan was left empty, so nothing was written")
    if written_from is not None and edited.rstrip() == text.rstrip():
        plan = written_from
    else:
        try:
            plan = load_artifact(edited, "the plan", paths)
        except ArtifactError as error:
            raise ArtifactError(error.message, hint=f"your text is in a file: {kept}") from error
        if written_from is not None:
            origin = {name: getattr(written_from, name) for name in ("task_id", "model", "created_at")}
            plan = plan.model_copy(update=origin)
    place.unlink()
    return edited, plan

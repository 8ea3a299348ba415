"""Opens a plan in the user's editor, repeatedly until it is valid or given up."""

import os
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

import click

from clean_room_agent.app.plan_run import PlanSource
from clean_room_agent.artifacts.plans import PlanArtifact
from clean_room_agent.cli import output
from clean_room_agent.errors import ArtifactError, CraError, UsageError
from clean_room_agent.execute.plan_short_form import read_written, written_text

EDITORS = ("VISUAL", "EDITOR")


def require_editor() -> None:
    """Check that an editor can be opened.

    Raises:
        UsageError: there is no terminal, and no editor is configured that might work without one.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()) and not any(os.environ.get(name) for name in EDITORS):
        raise UsageError(
            "--edit needs a terminal, or an editor in $VISUAL or $EDITOR",
            hint="leave --edit out and edit the file that -o writes",
        )


def final_plan(
    source: PlanSource, paths: Collection[str], *, edit: bool, as_text: bool
) -> tuple[PlanArtifact, str]:
    """The plan, edited if requested, and (`as_text`) its text in TOML; `paths` are those in the tree."""
    plan, text = source.plan, source.text
    if plan is not None and as_text:
        text = written_text(plan, paths)
    if edit or plan is None:
        text, plan = edit_plan(text, paths, written_from=plan)
    return plan, text


def edit_plan(
    text: str, paths: Collection[str], written_from: PlanArtifact | None
) -> tuple[str, PlanArtifact]:
    """The text as the user left it, and the plan in it; `paths` are those in the tree.

    A text that was `written_from` a plan and left as it was is that plan; an edited one has its task id, model and
    time. Faults are printed, and at a terminal the text can be edited again. A text that is not accepted stays in a
    file that the error names.

    Raises:
        CraError: the text was left empty.
        ArtifactError: it is not a plan, and was not edited again.
        UsageError: the editor failed.
    """
    handle, name = tempfile.mkstemp(prefix="cra-plan-", suffix=".toml")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    place = Path(name)
    while True:
        edited = _edited(place)
        if not edited.strip():
            place.unlink()
            raise CraError("the plan was left empty, so nothing was written")
        if written_from is not None and edited.rstrip() == text.rstrip():
            place.unlink()
            return text, written_from
        try:
            plan = read_written(edited, "the plan", paths)
        except ArtifactError as error:
            if not _again(error):
                hint = f"your text is in a file: cra plan --plan {place} --edit -o FILE"
                raise ArtifactError(error.message, hint=hint) from error
        else:
            place.unlink()
            return edited, plan if written_from is None else _signed(plan, written_from)


def _signed(plan: PlanArtifact, planned: PlanArtifact) -> PlanArtifact:
    kept = {"task_id": planned.task_id, "model": planned.model, "created_at": planned.created_at}
    return plan.model_copy(update=kept)


def _edited(place: Path) -> str:
    try:
        click.edit(filename=str(place))
        return place.read_text(encoding="utf-8-sig")
    except click.ClickException as exc:
        hint = f"name another in $EDITOR; the plan is kept: cra plan --plan {place} --edit -o FILE"
        raise UsageError(exc.format_message(), hint=hint) from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"cannot read {place} after it was edited: {exc}") from exc


def _again(error: ArtifactError) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    output.aside(error.message)
    return click.confirm("Edit it again?", default=True, err=True)

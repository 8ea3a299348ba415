"""How `cra curate-data` prints a dataset: its files, and what was left out."""

from clean_room_agent.app.training_parts import CuratedData
from clean_room_agent.cli import output
from clean_room_agent.report.values import plain


def show(found: CuratedData, *, as_json: bool) -> None:
    """The dataset, or why there is none, and what was left out by its reason."""
    made, target = found.curated, found.target
    if as_json:
        output.answer_json(
            {
                "dataset_id": made.dataset_id,
                "plan_id": found.plan_id,
                "folder": made.written and str(made.written.folder),
                "files": plain(made.written.files) if made.written else [],
                "left_out": made.exclusions,
            }
        )
        return
    if made.written is None:
        output.answer(f"no good example of {target} is left; nothing was written")
    else:
        output.answer(f"{made.written.folder}: dataset {made.dataset_id} for {target}")
        for file in made.written.files:
            output.answer(f"  {file.rows:>7,}  {file.path}")
    for reason, number in made.exclusions.items():
        output.answer(f"  {number:>7,}  left out: {reason}")

"""How `cra bootstrap` prints its result: the pairs and datasets, or how many units are still to do."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from clean_room_agent.artifacts.names import counted
from clean_room_agent.cli import output

if TYPE_CHECKING:
    from clean_room_agent.app.bootstrap import Bootstrapped
    from clean_room_agent.training.dataset import Written


def answer(made: "Bootstrapped", *, as_json: bool) -> None:
    """Print the commits and pairs, the datasets, and what was left out, by reason; or how many units are made."""
    mined, assembled, written, numbers = made.mined, made.assembled, made.written, made.numbers
    units = len(mined.units)
    if assembled is None:
        if as_json:
            output.answer_json({"dataset": None, "units": units, "units_left": made.left})
        else:
            output.answer(
                f"{units - made.left} of {units} units are made; the run that makes the last one writes the dataset"
            )
        return
    if as_json:
        answer = {
            "dataset": None if written is None else str(written.folder),
            "dataset_ids": dict(numbers),
            "commits_seen": mined.seen,
            "commits_used": assembled.commits,
            "pairs": len(assembled.entries),
            "files": [
                {
                    "stage": file.stage,
                    "split": file.split,
                    "rows": file.rows,
                    "path": file.path,
                    "sha256": file.sha256,
                }
                for file in (written.files if written else ())
            ],
            "left_out": dict(assembled.left_out),
            "repositories_excluded": list(made.excluded),
            "repositories_not_read": dict(mined.unread),
            "units": units,
            "units_left": 0,
        }
        output.answer_json(answer)
        return
    lines = [
        f"{counted(mined.seen, 'commit')} seen, {assembled.commits:,} used, {counted(len(assembled.entries), 'pair')}"
    ]
    lines += ["left out:", *(f"  {count:>7,}  {reason}" for reason, count in assembled.left_out.items())]
    lines += [f"  repository excluded by list: {name}" for name in made.excluded]
    lines += [f"  repository not read, or not to its end: {name}: {reason}" for name, reason in mined.unread]
    lines.append("no pair is left" if written is None else f"dataset: {written.folder}")
    lines += _rows_of(written, numbers) if written is not None else []
    lines += ["next: cra train NUMBER --base MODEL"] if numbers else []
    output.answer("\n".join(lines))


def _rows_of(written: "Written", numbers: Mapping[str, int]) -> list[str]:
    """A line for each prompt: its dataset's number, and the rows of each split."""
    from clean_room_agent.training.dataset import SPLITS

    rows = {(file.stage, file.split): file.rows for file in written.files}
    cells = {stage: "".join(f"{rows.get((stage, split), 0):>12,}" for split in SPLITS) for stage in numbers}
    head = f"{'number':>8}  {'prompt':<16}" + "".join(f"{split:>12}" for split in SPLITS)
    return [head, *(f"{number:>8}  {stage:<16}{cells[stage]}" for stage, number in numbers.items())]

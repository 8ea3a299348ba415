"""The page of `cra tonight`: what was planted, how the training went, and what the gate found."""

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from clean_room_agent.artifacts.names import counted
from clean_room_agent.db.raw.training import AdapterRow, EvaluationRow
from clean_room_agent.json_values import change_texts
from clean_room_agent.report.page.html import rendered
from clean_room_agent.report.summary import duration
from clean_room_agent.training.deployment import PRESET
from clean_room_agent.training.gate import WORDS


class NightData(Struct, frozen=True, kw_only=True):
    """The dataset that was made."""

    dataset: int
    """Its number."""
    prompt: str
    version: int
    """Of the adapter, among the prompt's."""
    planted: int
    functions: int
    rows: int
    """To train on."""
    tokens: int
    """In them, estimated."""
    test_rows: int
    left_out: Mapping[str, int]
    not_read: tuple[tuple[str, str], ...]
    """Repositories, with the reason."""


class NightPage(Struct, frozen=True, kw_only=True):
    """The page of one night."""

    tag: str
    status: str
    verdict: str
    planted: str
    """What was planted, in a line."""
    taught: str
    """What was trained on, in a line."""
    left_out: tuple[tuple[int, str], ...]
    not_read: tuple[tuple[str, str], ...]
    trained: Mapping[str, Any]
    finding: Mapping[str, Any]
    """As the record has it."""
    commands: tuple[tuple[str, str], ...]
    """(command, what it does) that come next."""


def night_page(
    data: NightData,
    adapter: AdapterRow,
    evaluation: EvaluationRow,
    safe: Callable[[str], str],
    *,
    program: str,
    there: str,
) -> NightPage:
    """The page, in which every text went through `safe`. `program`: the llama-server that has to be started with the adapter, "" for
    none; `there`: the flag that names the repository in commands.
    """
    folder = Path(adapter.adapter_path)
    trained = json.loads((folder / "cra.json").read_bytes())["result"]
    metrics = json.loads(evaluation.metrics)
    finding = metrics["finding"]
    losses = (
        ""
        if trained["last_loss"] is None
        else f", loss {trained['first_loss']:.3f} -> {trained['last_loss']:.3f}"
    )
    commands = [(f"cra adapters deploy {adapter.id}{there}", "use it for its prompt")]
    if program:
        start = f"{shlex.quote(program)} --models-preset {shlex.quote(str(folder.parent / PRESET))}"
        commands.insert(0, (start, "restart your server with it first"))
    commands.append((f"cra adapters retire {adapter.id}{there}", "what it replaced is used again"))
    if not evaluation.passed:
        commands = [("cra tonight --faults N", "more faults, more repositories or a larger base teach more")]
    page = NightPage(
        tag=adapter.model_tag,
        status=finding["status"],
        verdict=WORDS[finding["status"]],
        planted=f"{counted(data.planted, 'fault')} planted; {counted(data.functions, 'function')} used, "
        f"{counted(data.rows, 'row')} to train on, {counted(data.test_rows, 'row')} held out",
        taught=f"trained on {counted(trained['rows'], 'row')} of `{data.prompt}`, {counted(trained['tokens'], 'token')}, "
        f"{counted(trained['steps'], 'step')}, {duration(trained['seconds'])}{losses}",
        left_out=tuple(
            (count, reason) for reason, count in (*data.left_out.items(), *metrics["left_out"].items())
        ),
        not_read=data.not_read,
        trained=trained,
        finding=finding,
        commands=tuple(commands),
    )
    return change_texts(page, safe)  # type: ignore[no-any-return]


def night_html(page: NightPage) -> str:
    """The page of a night. All text is escaped here."""
    return rendered("night.html.j2", page=page)

"""`cra replay`: repeat a run with its recorded answers; the same bytes, or the first difference."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from clean_room_agent.app import wiring
from clean_room_agent.app.replaying import (
    Recording,
    Side,
    WhatIf,
    ask_other,
    read_recording,
    replay_from,
    replay_same,
)
from clean_room_agent.app.settings import Overrides, load_settings
from clean_room_agent.artifacts.names import counted, short_id
from clean_room_agent.cli import options, output
from clean_room_agent.cli.watching import watching
from clean_room_agent.errors import ReplayMismatch, UsageError
from clean_room_agent.json_values import to_shown
from clean_room_agent.orchestrator.events import Observer
from clean_room_agent.workspace import Workspace

SHOWN_CHARS = 120


def comparison_object(found: WhatIf) -> dict[str, Any]:
    """The comparison as `--json` answers it."""
    return {
        "replay_of": found.replay_of,
        "task_id": found.task_id,
        "stage": found.stage,
        "model": found.model,
        "recorded_models": found.recorded,
        "agree": sum(question.agree for question in found.compared),
        "differ": sum(not question.agree for question in found.compared),
        "then": _totals([question.then for question in found.compared]),
        "now": _totals([question.now for question in found.compared]),
        "questions": [{**to_shown(question), "agree": question.agree} for question in found.compared],
    }


def render_comparison(found: WhatIf) -> str:
    """The comparison for a person: a line per question, both answers where they differ, and sums at the end."""
    lines = [f"{found.stage}: asked again of {found.model}; recorded with {', '.join(found.recorded)}", ""]
    for question in found.compared:
        where = f"{question.pass_id or '(task)'} {question.prompt} {question.item}".rstrip()
        if question.agree:
            lines.append(f"agree   {where}: {_answer_text(question.now)}")
            continue
        lines += [
            f"DIFFER  {where}",
            f"          then {_answer_text(question.then)}",
            f"          now  {_answer_text(question.now)}",
        ]
        if question.decides:
            lines.append(f"          it decided about {', '.join(question.decides)}")
    lines += ["", f"{sum(question.agree for question in found.compared)} of {len(found.compared)} agree"]
    for name in ("then", "now"):
        sums = _totals([getattr(question, name) for question in found.compared])
        tokens = f"{sums['prompt_tokens']:,} + {sums['completion_tokens']:,} tokens"
        lines.append(f"{name}: {tokens}, {sums['latency_ms']:,} ms, {sums['unreadable']} unreadable")
    return "\n".join(lines)


def _answer_text(side: Side) -> str:
    if side.unreadable:
        return f"unreadable: {side.unreadable}"
    text = side.answer if isinstance(side.answer, str) else json.dumps(side.answer, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}… ({len(text)} characters)"


def _totals(sides: Sequence[Side]) -> dict[str, int]:
    return {
        "prompt_tokens": sum(side.prompt_tokens or 0 for side in sides),
        "completion_tokens": sum(side.completion_tokens or 0 for side in sides),
        "latency_ms": sum(side.latency_ms for side in sides),
        "unreadable": sum(bool(side.unreadable) for side in sides),
    }


HELP = """Repeat RUN with its recorded answers, without a model server. No branch is made. RUN is the newest run by default; @~1 is
the one before.

\b
cra replay RUN                        the same bytes, or the first difference
cra replay RUN --from PASS            recorded answers up to PASS, your server's from there on
cra replay RUN --stage S --model TAG  what another model answers to the questions of a stage or prompt

Exit codes: 0 the same, or done, 1 different, 2 usage, 3 model server.
"""


@click.command(help=HELP)
@options.run_argument
@click.option("--from", "from_pass", metavar="PASS", help="Ask the configured server from this pass on.")
@click.option(
    "--stage", metavar="NAME", help="Ask the recorded questions of this stage or prompt again, with --model."
)
@click.option("--model", metavar="TAG", help="The model to ask, on the configured server.")
@options.repo_option
@options.json_option
@options.exact_option
@options.verbose_option
def command(
    run: str,
    from_pass: str | None,
    stage: str | None,
    model: str | None,
    repo: Path,
    as_json: bool,
    verbose: int,
) -> int:
    """The command."""
    if (stage is None) != (model is None):
        raise UsageError("--stage and --model need each other: which questions, and which model to ask")
    if stage and from_pass:
        raise UsageError("--stage and --from exclude each other")
    workspace = wiring.workspace_of(repo)
    wiring.require_record(workspace)
    if stage is not None and model is not None:
        return _what_if(workspace, run, stage, model, as_json=as_json)
    found = read_recording(workspace, run)
    with watching(None, verbose=verbose, workspace=workspace) as observer:
        if from_pass is None:
            return _replay_exactly(workspace, found, observer, as_json=as_json)
        return _replay_from_pass(workspace, found, from_pass, observer, as_json=as_json)


def _replay_exactly(workspace: Workspace, found: Recording, observer: Observer, *, as_json: bool) -> int:
    try:
        summary, diff = replay_same(workspace, found, observer)
    except ReplayMismatch as mismatch:
        if as_json:
            difference = {
                name: getattr(mismatch, name)
                for name in ("message", "call", "part", "line", "recorded", "now")
            }
            output.answer_json({"replay_of": found.row.task_id, "same": False, "difference": difference})
        raise
    result = summary.result
    if as_json:
        output.answer_json(
            {"task_id": result.task_id, "replay_of": found.row.task_id, "same": True, "calls": summary.calls}
        )
    else:
        output.answer(
            f"the same: {counted(summary.calls, 'call')} answered from the record, {result.status.value}, "
            f"{len(diff.encode())} bytes of diff"
        )
    return 0


def _replay_from_pass(
    workspace: Workspace, found: Recording, name: str, observer: Observer, *, as_json: bool
) -> int:
    """Replay up to the pass `name`, ask the server from there on, and print the result next to the recorded one."""
    summary, before = replay_from(workspace, found, name, observer)
    result, then = summary.result, found.row.status.value
    same = result.cumulative_diff == before
    if as_json:
        output.answer_json(
            {
                "task_id": result.task_id,
                "replay_of": found.row.task_id,
                "from": name,
                "status": {"then": then, "now": result.status.value},
                "same_diff": same,
                "calls": summary.calls,
                "diff": {"then": before, "now": result.cumulative_diff},
            }
        )
        return 0
    output.answer(
        f"from {name} on with the configured models: {result.status.value} (then: {then}), "
        f"{'the same diff' if same else 'another diff'}\nlook into it: cra show {short_id(result.task_id)} --diff"
    )
    return 0


def _what_if(workspace: Workspace, run: str, stage: str, model: str, *, as_json: bool) -> int:
    settings = load_settings(workspace.config, Overrides())
    with output.ProgressBar(f"asking {model}") as bar:
        found = ask_other(workspace, settings, stage=stage, model=model, run=run, progress=bar.show)
    if as_json:
        output.answer_json(comparison_object(found))
    else:
        output.answer(render_comparison(found))
    return 0

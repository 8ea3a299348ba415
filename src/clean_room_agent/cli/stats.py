"""`cra stats`: what the calls of all runs cost, how right they were, and where tasks were lost."""

from pathlib import Path
from typing import Any

import click

from clean_room_agent.app import wiring
from clean_room_agent.cli import options, output
from clean_room_agent.cli.safe_console import paged, sanitized
from clean_room_agent.db.connection import read_record
from clean_room_agent.json_values import to_shown
from clean_room_agent.report.stats import render_stats, waterfall_object
from clean_room_agent.training.credit import waterfall_of
from clean_room_agent.training.logs import LogAnalysisAPI


@click.command()
@click.option(
    "--counterfactual",
    is_flag=True,
    help="Also show what each stage would gain if it were perfect and everything else stayed as recorded.",
)
@options.repo_option
@options.json_option
@options.exact_option
def command(counterfactual: bool, repo: Path, as_json: bool) -> int:
    """Show what calls cost and how right they were, by prompt and model, and where failed tasks were lost.

    Precision and recall compare verdicts and plans with the final change. Exit codes: 0 shown, 2 nothing has been recorded.
    """
    workspace = wiring.workspace_of(repo)
    wiring.require_record(workspace)
    with (
        read_record(workspace.repo) as conn,
        output.ProgressBar("reading runs") as bar,
    ):
        logs = LogAnalysisAPI(conn)
        prompts, waterfall = logs.prompt_stats(), waterfall_of(logs.watched_tasks(bar.show))
    if as_json:
        told: dict[str, Any] = {
            "prompts": [
                {
                    **to_shown(each.sums),
                    "precision": each.agreement and each.agreement.precision,
                    "recall": each.agreement and each.agreement.recall,
                }
                for each in prompts
            ],
            "waterfall": waterfall_object(waterfall),
        }
        if counterfactual:
            told["headroom"] = to_shown(waterfall.headroom)
        output.answer_json(told)
    else:
        shown = render_stats(sanitized(prompts), waterfall, counterfactual=counterfactual)
        with paged() as console:
            console.print(shown, highlight=False, soft_wrap=False)
    return 0

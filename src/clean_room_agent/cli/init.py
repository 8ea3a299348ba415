"""`cra init`: find the model server and the tests, and write a commented configuration with what the repository needs."""

import sys
from pathlib import Path
from typing import get_args

import click

from clean_room_agent.app import discovery, wiring
from clean_room_agent.app.config_file import render_whole_config
from clean_room_agent.app.new_config import gather, given_values, offer_ignored, trust_workspace, write_config
from clean_room_agent.app.settings import read_user_config, user_config_file
from clean_room_agent.cli import options, output
from clean_room_agent.cli.views.init import TerminalAnswers, try_tests
from clean_room_agent.errors import UsageError
from clean_room_agent.git.repository import find_top
from clean_room_agent.llm.config import Provider
from clean_room_agent.orchestrator.config import SandboxMode
from clean_room_agent.workspace import Workspace


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[REPO]")
@options.repo_option
@click.option(
    "--base-url",
    help="The model server, such as 127.0.0.1:8080; by default what OLLAMA_HOST names, then the usual ports of this "
    "machine.",
)
@click.option(
    "--provider",
    type=click.Choice(discovery.PROVIDERS),
    help="The server's API; openai: vLLM, llama-server, LM Studio. Detected by default.",
)
@click.option("--api-key-env", help="The environment variable that holds the server's API key.")
@click.option("--coding", help="The model that writes edits.")
@click.option("--reasoning", help="The model that plans and judges.")
@click.option("--test-command", help="The command that runs the repository's tests.")
@click.option("--context-window", type=options.number(1), help="Tokens of the models' window.")
@click.option(
    "--reserved-tokens",
    type=options.number(0),
    help="Tokens of it that are reserved for task, instructions and answer.",
)
@click.option(
    "--sandbox",
    type=click.Choice(get_args(SandboxMode)),
    help="How tests are isolated; bwrap by default, if bubblewrap works.",
)
@click.option("-y", "--yes", is_flag=True, help="Accept what was detected.")
@click.option("--force", is_flag=True, help="Replace an existing configuration.")
@click.option(
    "--trust",
    is_flag=True,
    help="Trust the existing .clean_room folder, whoever made it: you have read its config.toml.",
)
@click.option(
    "--print", "print_only", is_flag=True, help="Print a configuration with every key; write nothing."
)
def command(
    path: Path | None,
    repo: Path,
    base_url: str | None,
    provider: Provider | None,
    api_key_env: str | None,
    coding: str | None,
    reasoning: str | None,
    test_command: str | None,
    context_window: int | None,
    reserved_tokens: int | None,
    sandbox: SandboxMode | None,
    yes: bool,
    force: bool,
    trust: bool,
    print_only: bool,
) -> int:
    """Write .clean_room/config.toml for REPO (the current folder by default)."""
    if print_only:
        output.answer(render_whole_config())
        return 0
    if trust:
        return _trust(Workspace(repo=find_top((path or repo).absolute())))
    workspace = output.opened(wiring.workspace_of(path or repo))
    if workspace.config.exists() and not force:
        raise UsageError(f"{workspace.config} already exists", hint="edit it, or replace it with --force")
    below = read_user_config()
    given = given_values(
        below,
        base_url=base_url,
        provider=provider,
        api_key_env=api_key_env,
        coding=coding,
        reasoning=reasoning,
        test_command=test_command,
        context_window=context_window,
        reserved_tokens=reserved_tokens,
        sandbox=sandbox,
    )
    answers = TerminalAnswers(accept=yes, ask=not yes and sys.stdin.isatty())
    values = gather(workspace, given, answers)
    write_config(workspace, values, below)
    output.answer(f"wrote {workspace.config}")
    if below:
        output.answer(
            f"values from {user_config_file()} are not in it, or as comments, since they apply anyway"
        )
    offer_ignored(workspace, answers)
    if answers.asks and click.confirm("run the tests once, as a run would?", default=True, err=True):
        try_tests(workspace)
    output.answer('next: cra check, cra check --tests, then cra solve "what to change"')
    return 0


def _trust(workspace: Workspace) -> int:
    trust_workspace(workspace)
    output.answer(f"{workspace.folder} is trusted from now on, with its present contents")
    return 0

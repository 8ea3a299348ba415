"""`cra init`: find the model server and the tests, and write a complete, commented configuration."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import click

from clean_room_agent.cli import discovery, options, output, wiring
from clean_room_agent.cli.config_file import render_config
from clean_room_agent.cli.settings import Overrides, load_settings, read_user_config, user_config_file
from clean_room_agent.errors import ConfigError, GitError, ModelError, UsageError
from clean_room_agent.git.repository import find_top
from clean_room_agent.llm.config import CLOUD, Provider, is_cloud_tag
from clean_room_agent.sandbox.bubblewrap import Bubblewrap, working_bubblewrap
from clean_room_agent.sandbox.config import Mode
from clean_room_agent.trust import trust as trust_folder
from clean_room_agent.whole_file import write_whole
from clean_room_agent.workspace import Workspace

RESERVE = 4
"""A quarter of the window is kept for task, framing and answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What flags say; None where they say nothing."""

    server: discovery.Wanted
    coding: str | None
    reasoning: str | None
    test_command: str | None
    context_window: int | None
    reserved_tokens: int | None
    sandbox: Mode | None


class _Answers:
    """Values from flags, from what was found, or from the person at the terminal; never invented."""

    def __init__(self, *, accept: bool, ask: bool) -> None:
        self._accept = accept
        self._ask = ask
        self.missing: list[str] = []
        self.found_more = False
        """Whether something that is missing was found, and only lacks consent."""

    def settle(self, flag: str, what: str, given: Any, found: Any, choices: Sequence[str] = ()) -> Any:
        """The value; of numbered `choices`, the person may give the number."""
        if given is not None:
            return given
        if self._ask and choices:
            return self._chosen(what, found, choices)
        if self._ask:
            return click.prompt(what, default=found, type=type(found) if found is not None else str, err=True)
        if self._accept and found is not None:
            output.aside(f"{what}: {found}")
            return found
        self.found_more = self.found_more or found is not None
        self.missing.append(f"{flag} ({what}" + (f"; found: {found})" if found is not None else ")"))
        return None

    def _chosen(self, what: str, found: str | None, choices: Sequence[str]) -> str:
        said = str(click.prompt(f"{what} (name or number)", default=found, err=True)).strip()
        if said.isdecimal() and 1 <= int(said) <= len(choices):
            return choices[int(said) - 1]
        if said not in choices and f"{said}:latest" not in choices:
            output.aside(f"the server does not list {said}; `cra check` says whether it has it")
        return said

    @property
    def asks(self) -> bool:
        """Whether a person sits at the terminal."""
        return self._ask

    def agrees(self, what: str) -> bool:
        """Whether the person says so, now or by --yes."""
        return self._accept or (self._ask and click.confirm(what, err=True))


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[REPO]")
@options.repo_option
@click.option(
    "--base-url",
    help="The model server, like 127.0.0.1:8080; where nothing is said, what OLLAMA_HOST names, then the usual "
    "addresses of this machine.",
)
@click.option(
    "--provider",
    type=click.Choice(discovery.PROVIDERS),
    help="What it speaks; openai: vLLM, llama-server, LM Studio. Found out where nothing is said.",
)
@click.option("--api-key-env", help="The environment variable that holds the server's key.")
@click.option("--coding", help="The model that writes edits.")
@click.option("--reasoning", help="The model that plans and judges.")
@click.option("--test-command", help="What runs the repository's tests.")
@click.option("--context-window", type=click.IntRange(min=1), help="Tokens of the models' window.")
@click.option(
    "--reserved-tokens", type=click.IntRange(min=0), help="Tokens of it kept for task, framing and answer."
)
@click.option(
    "--sandbox",
    type=click.Choice(get_args(Mode)),
    help="How far the tests are held back; bwrap where bubblewrap works, unless said otherwise.",
)
@click.option("-y", "--yes", is_flag=True, help="Accept what was found.")
@click.option("--force", is_flag=True, help="Replace a configuration that is there already.")
@click.option(
    "--trust",
    is_flag=True,
    help="Use the .clean_room folder that is there, whoever made it: you have read its config.toml.",
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
    sandbox: Mode | None,
    yes: bool,
    force: bool,
    trust: bool,
    print_only: bool,
) -> int:
    """Write .clean_room/config.toml for REPO (here by default)."""
    if print_only:
        output.answer(render_config({}))
        return 0
    if trust:
        return _trust(Workspace(repo=find_top((path or repo).absolute())))
    workspace = wiring.workspace_of(path or repo)
    if workspace.config.exists() and not force:
        raise UsageError(f"{workspace.config} is there already", hint="edit it, or replace it with --force")
    below = read_user_config()
    models, budget = below.get("models", {}), below.get("budget", {})
    base_url = base_url or models.get("base_url")
    given = Given(
        server=discovery.Wanted(
            base_url=discovery.with_scheme(base_url) if base_url else None,
            provider=provider or models.get("provider"),
            api_key_env=api_key_env or models.get("api_key_env"),
            ollama_host=os.environ.get("OLLAMA_HOST", ""),
        ),
        coding=coding or models.get("coding"),
        reasoning=reasoning or models.get("reasoning"),
        test_command=test_command or below.get("testing", {}).get("test_command"),
        context_window=context_window or budget.get("context_window"),
        reserved_tokens=budget.get("reserved_tokens") if reserved_tokens is None else reserved_tokens,
        sandbox=sandbox or below.get("sandbox", {}).get("mode"),
    )
    answers = _Answers(accept=yes, ask=not yes and sys.stdin.isatty())
    values = gather(workspace, given, answers)
    write_config(workspace, values, below)
    output.answer(f"wrote {workspace.config}")
    if below:
        output.answer(f"what {user_config_file()} gives stands there as a comment: it goes on to give it")
    if answers.asks and click.confirm("run the tests once, as a run would?", default=True, err=True):
        _try_tests(workspace)
    output.answer('next: cra check, cra check --tests, then cra solve "what is to be changed"')
    return 0


def _try_tests(workspace: Workspace) -> None:
    """What the tests say before any change, and how long they take. A failure is said, and the configuration stays."""
    from clean_room_agent.cli.suite_check import check_tests

    try:
        for found in check_tests(workspace, load_settings(workspace.config, Overrides())):
            output.aside(f"{'ok  ' if found.ok else 'FAIL'} {found.name}: {found.text}")
            if not found.ok and found.remedy:
                output.aside(f"       -> {found.remedy}")
    except (ConfigError, GitError) as error:
        output.aside(f"FAIL tests: {error.message}" + (f"\n       -> {error.hint}" if error.hint else ""))


def _trust(workspace: Workspace) -> int:
    if not workspace.folder.exists():
        raise UsageError(f"there is no {workspace.folder}", hint="`cra init` makes it")
    trust_folder(workspace.folder)
    workspace.create()
    output.answer(f"{workspace.folder} is used from now on, as it stands here")
    return 0


def gather(workspace: Workspace, given: Given, answers: _Answers) -> dict[str, dict[str, Any]]:
    """Every required value by table.

    Raises:
        UsageError: something was neither given nor found; the message names all of it with its flags.
    """
    server: discovery.FoundServer | None = None
    try:
        server = discovery.find_server(given.server)
    except ModelError as error:
        output.aside(error.message)
    else:
        _tell_server(server, numbered=answers.asks)
    listed = [model.tag for model in server.models] if server else []
    suggested = discovery.suggest_models(server.models) if server else None
    coding = answers.settle(
        "--coding", "coding model", given.coding, suggested[0] if suggested else None, listed
    )
    reasoning = answers.settle(
        "--reasoning", "reasoning model", given.reasoning, suggested[1] if suggested else None, listed
    )
    tags = tuple(tag for tag in (coding, reasoning) if tag)
    for tag in (coding, reasoning):
        _refuse_forwarded(tag or "", server)
    found_window = discovery.find_window(server, tags) if server and tags else None
    window = answers.settle("--context-window", "window in tokens", given.context_window, found_window)
    reserved = given.reserved_tokens if given.reserved_tokens is not None else (window or 0) // RESERVE
    tests = answers.settle(
        "--test-command", "test command", given.test_command, discovery.find_test_command(workspace.repo)
    )
    if answers.missing:
        remedy = "give" if server else "start the model server, or name it with --base-url, or give"
        accept = ", or accept what was found with --yes" if answers.found_more else ""
        raise UsageError(
            "not given: " + ", ".join(answers.missing), hint=f"{remedy} these values as flags{accept}"
        )
    return {
        "models": {
            **(server.models_table if server else _unseen(given.server)),
            "coding": coding,
            "reasoning": reasoning,
        },
        "budget": {"context_window": window, "reserved_tokens": reserved},
        "solve": {"max_attempts": 3, "max_refinement_loops": 2},
        "testing": {"test_command": tests},
        "sandbox": {"mode": _sandbox(given.sandbox, answers)},
    }


def _tell_server(server: discovery.FoundServer, *, numbered: bool) -> None:
    """Where it is and what it has: in a line, or as a list to choose from."""
    where = f"model server {server.base_url}, {server.version}"
    if not numbered or not server.models:
        output.aside(f"{where}; models: {', '.join(model.tag for model in server.models) or 'none'}")
        return
    output.aside(f"{where}; its models:")
    width = max(len(model.tag) for model in server.models)
    for number, model in enumerate(server.models, start=1):
        size = f"{model.size_bytes / 1e9:.1f} GB" if model.size_bytes else ""
        away = f"sent on to {model.forwards_to}" if model.forwards_to else ""
        output.aside(f"{number:>3}  {model.tag:<{width}}  {size or away}".rstrip())


def _refuse_forwarded(tag: str, server: discovery.FoundServer | None) -> None:
    """Nothing, for a model that the server runs itself, as far as it tells."""
    listed = {model.tag: model.forwards_to for model in server.models} if server else {}
    host = listed.get(tag) or listed.get(f"{tag}:latest") or (CLOUD if is_cloud_tag(tag) else "")
    if host:
        raise UsageError(
            f"{tag}: prompts for this model are sent on to {host}, and prompts hold your code",
            hint="name a model that runs on this machine; for this one, write the configuration by hand "
            "(`cra init --print` shows it), with allow_remote = true in [models]",
        )


def _sandbox(given: Mode | None, answers: _Answers) -> Mode:
    """What is given; else bubblewrap where it works; else "none" if that is agreed to; else what decides at each run."""
    if given is not None:
        return given
    found = working_bubblewrap()
    if isinstance(found, Bubblewrap):
        output.aside(f"sandbox: bubblewrap {found.version}")
        return "bwrap"
    output.aside(f"no sandbox for the tests: {found.reason}; {found.remedy}")
    return "none" if answers.agrees("run them with your rights, with a warning each time") else "auto"


def _unseen(wanted: discovery.Wanted) -> dict[str, Any]:
    """What `[models]` says of a server that did not answer."""
    provider = wanted.provider or "ollama"
    usual = next(url for known, url in discovery.USUAL_PLACES if known == provider)
    table = {"provider": provider, "base_url": wanted.base_url or usual}
    return table | ({"api_key_env": wanted.api_key_env} if wanted.api_key_env else {})


def write_config(
    workspace: Workspace,
    values: dict[str, dict[str, Any]],
    below: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> None:
    """The configuration stands in its file, whole, or not at all; values that the one `below` gives as comments."""
    workspace.create()
    write_whole(workspace.config, render_config(values, below), private=True)

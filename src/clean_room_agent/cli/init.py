"""`cra init`: find the model server and the tests, and write a commented configuration with what the repository needs."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import click
from msgspec import Struct

from clean_room_agent import safe_open
from clean_room_agent.app import discovery, wiring
from clean_room_agent.app.config_values import render_config, write_config
from clean_room_agent.app.discovery import find_test_commands
from clean_room_agent.app.self_check import check_tests, sandbox_line
from clean_room_agent.app.settings import Overrides, load_settings, read_user_config, user_config_file
from clean_room_agent.cli import options, output
from clean_room_agent.errors import ConfigError, GitError, ModelError, ServerUnreachable, UsageError
from clean_room_agent.file_contents import atomic_write
from clean_room_agent.git.repository import find_top, list_files
from clean_room_agent.git.worktree import INCLUDE_FILE
from clean_room_agent.llm.model_config import CLOUD, is_cloud_tag
from clean_room_agent.orchestrator.run_config import SandboxMode
from clean_room_agent.orchestrator.test_runs.missing_modules import ignored_imports, include_remedy
from clean_room_agent.workspace import Workspace, trust

NO_TESTS = """\
no tests were found here, and without any nothing shows that a task is done; --test-command may name
- the tests, if they have unusual names
- any command that fails where something is wrong: a build, a type checker, a script
- python3 -m pytest -q, once there is a first test in tests/test_first.py; until then, with accept = "untested" in [testing]"""
GET_MODEL = {
    "ollama": "`ollama pull qwen2.5-coder:7b`, for example, and again `cra init`",
    "openai": "start the server with a model, and again `cra init`",
}
PATTERN_SIGNS = re.compile(r"[\\*?\[\]]| \Z")
"""What has a meaning in a pattern of .gitignore."""
RESERVE = 4
"""A quarter of the window is kept for task, framing and answer."""


class Given(Struct, frozen=True, kw_only=True):
    """Values from flags; None for a flag that was not given."""

    server: discovery.WantedServer
    coding: str | None
    reasoning: str | None
    test_command: str | None
    context_window: int | None
    reserved_tokens: int | None
    sandbox: SandboxMode | None


class Answers:
    """Values from flags, from discovery, or from the person at the terminal; never invented."""

    def __init__(self, *, accept: bool, ask: bool) -> None:
        self._accept = accept
        self.asks = ask
        self.missing: list[str] = []
        self.found_more = False
        """Whether something that is missing was found, and only lacks consent."""

    def settle(self, flag: str, what: str, given: Any, found: Any, choices: Sequence[str] = ()) -> Any:
        """The value to use; of numbered `choices`, the person may give the number."""
        if given is not None:
            return given
        if self.asks and choices:
            return self._prompt_for_choice(what, found, choices)
        if self.asks:
            return click.prompt(what, default=found, type=type(found) if found is not None else str, err=True)
        if self._accept and found is not None:
            output.aside(f"{what}: {found}")
            return found
        self.found_more = self.found_more or found is not None
        self.missing.append(f"{flag} ({what}" + (f"; found: {found})" if found is not None else ")"))
        return None

    def _prompt_for_choice(self, what: str, found: str | None, choices: Sequence[str]) -> str:
        said = str(click.prompt(f"{what} (name or number)", default=found, err=True)).strip()
        if said.isdecimal() and 1 <= int(said) <= len(choices):
            return choices[int(said) - 1]
        if said not in choices and f"{said}:latest" not in choices:
            output.aside(f"the server does not list {said}; `cra check` says whether it has it")
        return said

    def agrees(self, what: str) -> bool:
        """Whether the user consents, now or by --yes."""
        return self._accept or (self.asks and click.confirm(what, err=True))


def given_values(below: Mapping[str, Mapping[str, Any]], flags: Mapping[str, Any]) -> Given:
    """The values of flags (None for those that were not given), which override those of the user's own configuration, `below`."""
    models, budget = below.get("models", {}), below.get("budget", {})
    base_url = flags["base_url"] or models.get("base_url")
    return Given(
        server=discovery.WantedServer(
            base_url=discovery.with_scheme(base_url) if base_url else None,
            provider=flags["provider"] or models.get("provider"),
            api_key_env=flags["api_key_env"] or models.get("api_key_env"),
            ollama_host=os.environ.get("OLLAMA_HOST", ""),
        ),
        coding=flags["coding"] or models.get("coding"),
        reasoning=flags["reasoning"] or models.get("reasoning"),
        test_command=flags["test_command"] or below.get("testing", {}).get("test_command"),
        context_window=flags["context_window"] or budget.get("context_window"),
        reserved_tokens=budget.get("reserved_tokens")
        if flags["reserved_tokens"] is None
        else flags["reserved_tokens"],
        sandbox=flags["sandbox"] or below.get("sandbox", {}).get("mode"),
    )


def gather(workspace: Workspace, given: Given, answers: Answers) -> dict[str, dict[str, Any]]:
    """Every required value by table.

    Raises:
        UsageError: something was neither given nor discovered; the message names all of it with its flags.
        ModelNotFound: the server lacks a model that was given.
    """
    server: discovery.FoundServer | None = None
    try:
        server = discovery.find_server(given.server)
    except ModelError as error:
        output.aside(error.message)
        if isinstance(error, ServerUnreachable) and not (given.coding and given.reasoning):
            output.aside(discovery.WHICH_MODEL)
    else:
        _tell_server(server, answers)
    listed = [model.tag for model in server.models] if server else []
    if server and not listed and not (given.coding and given.reasoning):
        output.aside(discovery.WHICH_MODEL)
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
        if server and tag and tag in {given.coding, given.reasoning}:
            discovery.require_model(server, tag)
    found_window = discovery.find_window(server, tags) if server and tags else None
    window = answers.settle("--context-window", "window in tokens", given.context_window, found_window)
    reserved = given.reserved_tokens if given.reserved_tokens is not None else (window or 0) // RESERVE
    found_tests = _find_tests(workspace.repo) if given.test_command is None else None
    tests = answers.settle("--test-command", "test command", given.test_command, found_tests)
    if answers.missing:
        remedy = "give" if server else "start the model server, or name it with --base-url, or give"
        if server and not listed and coding is None:
            remedy = f"{GET_MODEL[server.models_table['provider']]}; or give"
        accept = ", or accept what was found with --yes" if answers.found_more else ""
        raise UsageError(
            "not given: " + ", ".join(answers.missing), hint=f"{remedy} these values as flags{accept}"
        )
    return {
        "models": {
            **(server.models_table if server else _unreached_server_table(given.server)),
            **(discovery.find_slots(server, coding) if server and coding else {}),
            "coding": coding,
            "reasoning": reasoning,
        },
        "budget": {"context_window": window, "reserved_tokens": reserved},
        "solve": {"max_attempts": 3, "max_refinement_loops": 2},
        "testing": {"test_command": tests},
        "sandbox": {"mode": _sandbox_mode(given.sandbox, answers)},
    }


def _find_tests(repo: Path) -> str | None:
    """The command that the repository's files show; what else they show, or that they show none, is printed."""
    found = find_test_commands(repo, list_files(repo))
    if not found:
        output.aside(NO_TESTS)
        return None
    first, *others = found
    if others:
        more = ", ".join(others)
        output.aside(f"also found: {more} (--test-command takes another, or several joined by &&)")
    return first


def _tell_server(server: discovery.FoundServer, answers: Answers) -> None:
    """Print the server's address and its models: on one line, or as a list to choose from."""
    where = f"model server {server.base_url}, {server.version}"
    if not answers.asks or not server.models:
        output.aside(f"{where}; models: {', '.join(model.tag for model in server.models) or 'none'}")
        return
    output.aside(f"{where}; its models:")
    width = max(len(model.tag) for model in server.models)
    for number, model in enumerate(server.models, start=1):
        size = f"{model.size_bytes / 1e9:.1f} GB" if model.size_bytes else ""
        away = f"forwarded to {model.forwards_to}" if model.forwards_to else ""
        output.aside(f"{number:>3}  {model.tag:<{width}}  {size or away}".rstrip())


def _refuse_forwarded(tag: str, server: discovery.FoundServer | None) -> None:
    """Check that the server runs the model itself, as far as it says."""
    listed = {model.tag: model.forwards_to for model in server.models} if server else {}
    host = listed.get(tag) or listed.get(f"{tag}:latest") or (CLOUD if is_cloud_tag(tag) else "")
    if host:
        raise UsageError(
            f"{tag}: prompts for this model are forwarded to {host}, and prompts hold your code",
            hint="choose a model that runs on this machine; for this one, write the configuration by hand "
            "(`cra init --print` shows it), with allow_remote = true in [models]",
        )


def _sandbox_mode(given: SandboxMode | None, answers: Answers) -> SandboxMode:
    """The given mode; else "bwrap" if it works; else "none" if the user agrees; else "auto", which decides at each run."""
    if given is not None:
        return given
    found = sandbox_line("bwrap")
    if found.ok:
        output.aside(f"sandbox: {found.text}")
        return "bwrap"
    output.aside(f"no sandbox for the tests: {found.text}; {found.remedy}")
    return "none" if answers.agrees("run them with your privileges, with a warning each time") else "auto"


def _unreached_server_table(wanted: discovery.WantedServer) -> dict[str, Any]:
    """The `[models]` table for a server that did not answer."""
    provider = wanted.provider or "ollama"
    usual = next(url for known, url in discovery.USUAL_PLACES if known == provider)
    table = {"provider": provider, "base_url": wanted.base_url or usual}
    return table | ({"api_key_env": wanted.api_key_env} if wanted.api_key_env else {})


def offer_ignored(workspace: Workspace, answers: Answers) -> None:
    """Name the ignored files that code imports, which tests lack; a person may have `.worktreeinclude` name them."""
    needed = ignored_imports(workspace.repo)
    if not needed:
        return
    file = workspace.repo / INCLUDE_FILE
    named = f"name {', '.join(needed)} in {INCLUDE_FILE}: git ignores them, code here imports them, and tests would lack them"
    if not answers.asks or file.is_symlink() or not answers.agrees(named):
        output.aside(include_remedy(needed))
        return
    old = safe_open.read_bytes(workspace.repo, INCLUDE_FILE) if file.exists() else b""
    lines = "".join("/" + PATTERN_SIGNS.sub(r"\\\g<0>", path) + "\n" for path in needed)
    begin = old if not old or old.endswith(b"\n") else old + b"\n"
    atomic_write(file, begin + os.fsencode(lines))
    output.aside(f"{file}: {len(needed)} added")


def try_tests(workspace: Workspace) -> None:
    """Run the tests once and print their results and times. A failure is reported; the configuration stays."""
    try:
        for found in check_tests(workspace, load_settings(workspace.config, Overrides())):
            output.aside(f"{'ok  ' if found.ok else 'FAIL'} {found.name}: {found.text}")
            if not found.ok and found.remedy:
                output.aside(f"       -> {found.remedy}")
    except (ConfigError, GitError) as error:
        output.aside(f"FAIL tests: {error.message}" + (f"\n       -> {error.hint}" if error.hint else ""))


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
    path: Path | None, repo: Path, yes: bool, force: bool, trust: bool, print_only: bool, **flags: Any
) -> int:
    """Write .clean_room/config.toml for REPO (the current folder by default)."""
    if print_only:
        output.answer(render_config(None))
        return 0
    if trust:
        return _trust_folder(Workspace(repo=find_top((path or repo).absolute())))
    workspace = wiring.workspace_of(path or repo)
    if workspace.config.exists() and not force:
        raise UsageError(f"{workspace.config} already exists", hint="edit it, or replace it with --force")
    below = read_user_config()
    given = given_values(below, flags)
    answers = Answers(accept=yes, ask=not yes and sys.stdin.isatty())
    values = gather(workspace, given, answers)
    write_config(workspace, values, below)
    output.answer(f"wrote {workspace.config}")
    if below:
        output.answer(
            f"values from {user_config_file()} are not in it, or as comments, since they apply anyway"
        )
    offer_ignored(workspace, answers)
    tries = answers.asks and click.confirm("run the tests once, as a run would?", default=True, err=True)
    if tries:
        try_tests(workspace)
    steps = "cra check" if tries else "cra check, cra check --tests"
    output.answer(f'next: {steps}, then cra solve "what to change"')
    output.answer("cra models fit measures in some minutes what this model can be asked for")
    return 0


def _trust_folder(workspace: Workspace) -> int:
    """Trust the existing `.clean_room` folder, whoever made it."""
    if not workspace.folder.exists():
        raise UsageError(f"there is no {workspace.folder}", hint="`cra init` creates it")
    trust(workspace.folder)
    workspace.create()
    output.answer(f"{workspace.folder} is trusted from now on, with its present contents")
    return 0

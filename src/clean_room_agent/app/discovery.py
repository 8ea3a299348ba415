"""Discovers what there is, for `cra init`: the model server with what it offers, and the commands that run the tests."""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from clean_room_agent.app.model_server import open_server
from clean_room_agent.errors import ConfigError, ModelError, ModelNotFound, ServerBusy
from clean_room_agent.languages.ecmascript.package_json import SCRIPT_TEST, command_of, mentions_in_tests
from clean_room_agent.languages.jsonc import as_object
from clean_room_agent.languages.repository_files import RepositoryFiles
from clean_room_agent.languages.test_runners import TEST_RUNNERS
from clean_room_agent.llm.model_config import ModelsConfig, Provider
from clean_room_agent.llm.transport import ModelServer, ServedModel

RECIPES = ("test", "tests", "check", "unit", "unittest", "test-unit", "unit-test", "test_unit", "test:unit")
"""Targets and recipes, the likeliest first."""
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES = ("justfile", "Justfile", ".justfile")
TASKFILES = tuple(
    f"{name}askfile{dist}.{end}" for dist in ("", ".dist") for name in "Tt" for end in ("yml", "yaml")
)
TASK_TABLES = (
    ("pixi.toml", ("tasks",), "pixi run"),
    ("pyproject.toml", ("tool", "pixi", "tasks"), "pixi run"),
    ("pyproject.toml", ("tool", "pdm", "scripts"), "pdm run"),
    ("pyproject.toml", ("tool", "rye", "scripts"), "rye run"),
    ("pyproject.toml", ("tool", "poe", "tasks"), "poe"),
    ("pyproject.toml", ("tool", "taskipy", "tasks"), "task"),
    ("Pipfile", ("scripts",), "pipenv run"),
    ("mise.toml", ("tasks",), "mise run"),
    (".mise.toml", ("tasks",), "mise run"),
)
"""Tables of tasks, and what runs one."""
COMMANDS = {
    "Cargo.toml": "cargo test",
    "gradlew": "./gradlew test",
    "build.gradle": "gradle test",
    "build.gradle.kts": "gradle test",
    "pom.xml": "mvn -q test",
    "mix.exs": "mix test",
    "Package.swift": "swift test",
    "build.sbt": "sbt test",
    "build.zig": "zig build test",
    "stack.yaml": "stack test",
    "pubspec.yaml": "dart test",
    "project.clj": "lein test",
    "nx.json": "npx nx run-many -t test",
    "phpunit.xml": "vendor/bin/phpunit",
    "phpunit.xml.dist": "vendor/bin/phpunit",
    ".rspec": "bundle exec rspec",
    "run_tests.sh": "sh run_tests.sh",
    "runtests.sh": "sh runtests.sh",
    "test.sh": "sh test.sh",
    "scripts/test.sh": "sh scripts/test.sh",
    "script/test": "script/test",
}
"""By a file that a repository has for its tests, or of its language's one tool, the likeliest first."""
TASK = re.compile(r"^(?: {2}| {4}|\t)['\"]?([\w:-]+?)['\"]?:(?=\s|$)", re.MULTILINE)
INVOKED = re.compile(r"^@(?:invoke\.)?task\b.*\n(?:@.*\n)*def (\w+)\(", re.MULTILINE)
NOX_SESSION = re.compile(r"^def (tests?|unit_tests?|unit|pytest)\(", re.MULTILINE)


def find_test_commands(top: Path, paths: Sequence[str]) -> tuple[str, ...]:
    """The commands that run the tests of the repository at `top`, whose files are `paths` (relative): for each of the tools that
    it uses, the most direct first. Empty if the files don't show any.
    """
    files = RepositoryFiles(top, paths)
    finders = (*(runner.detect for runner in TEST_RUNNERS), *TOOLS)
    return tuple(dict.fromkeys(filter(None, (find(files) for find in finders))))


def _ava_command(files: RepositoryFiles) -> str:
    return command_of(files, "ava", "ava")


def _bun_command(files: RepositoryFiles) -> str:
    is_used = "bunfig.toml" in files.paths and any(map(SCRIPT_TEST.search, files.paths))
    return "bun test" if is_used or mentions_in_tests(files, "bun:test") else ""


def _deno_command(files: RepositoryFiles) -> str:
    name = files.first(("deno.json", "deno.jsonc"))
    if "test" in as_object(files.package(name).get("tasks")):
        return "deno task test"
    is_used = name and any(map(SCRIPT_TEST.search, files.paths))
    return "deno test" if is_used or mentions_in_tests(files, "Deno.test") else ""


def _makefile_command(files: RepositoryFiles) -> str:
    heads = _rule_heads(files.text(files.first(MAKEFILES)))
    target = _likeliest_recipe(word for head in heads if "=" not in head for word in head.split())
    return f"make {target}" if target else ""


def _justfile_command(files: RepositoryFiles) -> str:
    heads = _rule_heads(files.text(files.first(JUSTFILES)))
    recipe = _likeliest_recipe(word.removeprefix("@") for head in heads for word in head.split()[:1])
    return f"just {recipe}" if recipe else ""


def _rule_heads(text: str) -> Iterator[str]:
    """What stands before the colon of each rule of a Makefile or justfile."""
    for line in text.splitlines():
        head, colon, rest = line.partition(":")
        if colon and not rest.startswith("=") and not line.startswith((" ", "\t", "#")):
            yield head


def _taskfile_command(files: RepositoryFiles) -> str:
    name = _likeliest_recipe(TASK.findall(files.text(files.first(TASKFILES))))
    return f"task {name}" if name else ""


def _likeliest_recipe(names: Iterator[str] | list[str]) -> str:
    known = set(names)
    return next((name for name in RECIPES if name in known), "")


def _nox_command(files: RepositoryFiles) -> str:
    if "noxfile.py" not in files.paths:
        return ""
    session = NOX_SESSION.search(files.text("noxfile.py"))
    return f"nox -s {session[1]}" if session else "nox"


def _tox_command(files: RepositoryFiles) -> str:
    is_used = files.first(("tox.ini", "tox.toml")) or "tox" in files.tools
    return "tox -q" if is_used or "[tox:tox]" in files.text("setup.cfg") else ""


def _invoke_command(files: RepositoryFiles) -> str:
    text = files.text(files.first(("tasks.py", "tasks/__init__.py")))
    name = _likeliest_recipe(name.replace("_", "-") for name in INVOKED.findall(text))
    return f"invoke {name}" if name else ""


def _task_of_table(files: RepositoryFiles) -> str:
    found = ((run, _likeliest_recipe(iter(files.toml(path, *names)))) for path, names, run in TASK_TABLES)
    return next((f"{run} {name}" for run, name in found if name), "")


def _telling_file(files: RepositoryFiles) -> str:
    if name := files.first(tuple(COMMANDS)):
        return COMMANDS[name]
    of_tools = (name for name, command in COMMANDS.items() if not command.endswith(name))
    below = (path for name in of_tools for path in files.nearest(name)[:1] if path.count("/") == 1)
    folder, _, name = next(below, "").partition("/")
    return f"cd {shlex.quote(folder)} && {COMMANDS[name]}" if folder else ""


TOOLS: tuple[Callable[[RepositoryFiles], str], ...] = (
    _ava_command,
    _bun_command,
    _deno_command,
    _telling_file,
    _makefile_command,
    _justfile_command,
    _taskfile_command,
    _invoke_command,
    _task_of_table,
    _nox_command,
    _tox_command,
)
"""What looks for one kind of tool each whose results are not read; a recipe may start any of those before it."""


OLLAMA_PORT = 11434
DEFAULT_URL = f"http://127.0.0.1:{OLLAMA_PORT}"
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - compared with, not listened on
SCHEME_PORTS = {"http": 80, "https": 443}
USUAL_PLACES: tuple[tuple[Provider, str], ...] = (
    ("ollama", DEFAULT_URL),
    ("openai", "http://127.0.0.1:8080"),
    ("openai", "http://127.0.0.1:9931"),
    ("openai", "http://127.0.0.1:8000"),
    ("openai", "http://127.0.0.1:1234"),
)
"""Where Ollama, llama-server (older and newer), vLLM and LM Studio listen unless told otherwise."""
PROVIDERS: tuple[Provider, ...] = ("ollama", "openai")
NEEDED_BY: dict[str, dict[str, Any]] = {
    "llama-cpp-python": {"schema_dialect": "json_object", "streaming": False},
    "llama-server": {"grammar": True},
}
"""Settings of `[models]` that a server needs, by the name with which its self-description begins."""
WHICH_MODEL = """\
which model: the largest coder that fits into memory beside its window, such as Qwen2.5-Coder-Instruct (Q4_K_M):
- 1.5B: 2 GB with a window of 8,192 tokens; cra was measured with this one
- 3B: 3 GB, 7B: 6 GB, 14B: 13 GB, each with 16,384
the README says under "Which model" what was measured, and what others publish"""
"""What is told where no model is found; the README has the same figures."""
USUAL_WINDOW = 32_768


class WantedServer(Struct, frozen=True, kw_only=True):
    """What the user said about the server; None for what has to be discovered."""

    base_url: str | None = None
    provider: Provider | None = None
    api_key_env: str | None = None
    ollama_host: str = ""
    """The value of OLLAMA_HOST; "" if it is not set."""


class FoundServer(Struct, frozen=True, kw_only=True):
    """A model server that answered."""

    models_table: dict[str, Any]
    """The settings of `[models]` to reach it: `base_url`, `provider`, and others if needed."""
    version: str
    models: tuple[ServedModel, ...]

    @property
    def base_url(self) -> str:
        """The URL at which it answers."""
        return str(self.models_table["base_url"])

    def open(self) -> ModelServer:
        """Open a connection to it."""
        return _server_from_table(self.models_table)


def find_server(wanted: WantedServer) -> FoundServer:
    """The first model server that answers, with its models: at the given address, else at the usual ones of this machine.

    Raises:
        ServerBusy: a server is there, but has no time.
        ModelError: nothing answers, or not as a model server would; of several failures, the first.
        ConfigError: the given address is invalid or another machine's.
    """
    failed: list[ModelError] = []
    for table in _candidate_server_tables(wanted):
        try:
            server = _server_from_table(table)
            version, models = server.version(), server.list_models()
        except ModelError as error:
            failed.append(error)
        except ConfigError as error:
            if wanted.base_url:
                raise
            failed.append(ModelError(f"OLLAMA_HOST: {error.message}", hint=error.hint))
        else:
            return FoundServer(
                models_table={**table, **NEEDED_BY.get(version.partition(" ")[0], {})},
                version=version,
                models=models,
            )
    raise next((error for error in failed if isinstance(error, ServerBusy)), failed[0])


def require_model(server: FoundServer, tag: str) -> None:
    """Check that the server has the model, unless it does not say.

    Raises:
        ModelNotFound: it lacks it.
    """
    try:
        server.open().show(tag)
    except ModelNotFound:
        raise
    except ModelError:
        pass


def find_window(server: FoundServer, tags: tuple[str, ...]) -> int | None:
    """The largest usual window that suits all the models, in tokens; None if the server has its own and does not tell it."""
    transport = server.open()
    fixed = server.models_table["provider"] == "openai"
    lengths: list[int | None] = []
    for tag in tags:
        try:
            details = transport.show(tag)
        except ModelError:
            lengths.append(None)
        else:
            lengths.append(details.served if fixed else details.context_length)
    if fixed and None in lengths:
        return None
    return min([USUAL_WINDOW, *(length for length in lengths if length)])


def find_slots(server: FoundServer, tag: str) -> dict[str, int]:
    """`parallel` of `[models]`: the requests that the server answers at a time for the model. Empty if it does not say."""
    try:
        slots = server.open().slots(tag)
    except ModelError:
        return {}
    return {"parallel": slots} if slots else {}


def with_scheme(address: str) -> str:
    """The address as a URL, with http if it names no scheme."""
    return address if "://" in address else f"http://{address}"


def ollama_url(host: str) -> str:
    """The URL of the server that OLLAMA_HOST names, read as Ollama does: scheme, host and port may be missing, and a
    server that listens on all addresses is reached on this machine.
    """
    text = host.strip().strip("\"'")
    scheme, separator, rest = text.rpartition("://")
    try:
        parts = urlsplit(f"//{rest}")
        port = parts.port or (SCHEME_PORTS.get(scheme, OLLAMA_PORT) if separator else OLLAMA_PORT)
        name = parts.hostname or ANY_ADDRESS
    except ValueError:
        return with_scheme(text)
    name = {ANY_ADDRESS: "127.0.0.1", "::": "::1"}.get(name, name)
    return f"{scheme or 'http'}://{f'[{name}]' if ':' in name else name}:{port}"


def _candidate_server_tables(wanted: WantedServer) -> Iterator[dict[str, Any]]:
    extra = {"api_key_env": wanted.api_key_env} if wanted.api_key_env else {}
    given = tuple((provider, wanted.base_url) for provider in PROVIDERS if wanted.base_url)
    named: tuple[tuple[Provider, str], ...] = (
        (("ollama", ollama_url(wanted.ollama_host)),) if wanted.ollama_host.strip() else ()
    )
    for provider, url in given or dict.fromkeys((*named, *USUAL_PLACES)):
        if wanted.provider in {None, provider}:
            yield {"provider": provider, "base_url": url, **extra}


def _server_from_table(table: dict[str, Any]) -> ModelServer:
    return open_server(msgspec.convert({**table, "coding": "none", "reasoning": "none"}, ModelsConfig))


def suggest_models(models: tuple[ServedModel, ...]) -> tuple[str, str] | None:
    """(coding, reasoning) among the models that the server runs itself: for code, a coder if it has one; None without any."""
    tags = [model.tag for model in models if "embed" not in model.tag and not model.forwards_to]
    if not tags:
        return None
    coding = next((tag for tag in tags if "coder" in tag or "code" in tag), tags[0])
    reasoning = next((tag for tag in tags if tag != coding and "code" not in tag), coding)
    return coding, reasoning

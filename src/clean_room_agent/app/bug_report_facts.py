"""Facts about this machine and this repository's configuration for a bug report. Asks no server."""

import os
import platform
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from clean_room_agent import safe_open
from clean_room_agent.app import wiring
from clean_room_agent.app.config_values import ConfiguredValue, list_values
from clean_room_agent.app.self_check import as_object, local_checks
from clean_room_agent.app.settings import user_config_file
from clean_room_agent.app.tracebacks import places_in
from clean_room_agent.config import read_toml
from clean_room_agent.errors import ConfigError
from clean_room_agent.redaction import SECRET_NAME
from clean_room_agent.sandbox.bubblewrap import Obstacle, working_bubblewrap
from clean_room_agent.trust import entries_below, state_folder
from clean_room_agent.version import VERSION
from clean_room_agent.workspace import Workspace

PACKAGE = "clean-room-agent"
TOLD_VARIABLES = (
    *(
        "OLLAMA_HOST",
        "PYTEST_ADDOPTS",
        "NODE_OPTIONS",
        "PYTHONPATH",
        "VIRTUAL_ENV",
        "CI",
        "LANG",
        "LC_ALL",
        "TERM",
    ),
    *("SHELL", "PAGER", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "COLUMNS"),
)
"""The only variables whose values are included."""
HIDDEN = "[hidden: its name says that it is secret]"
NAMES_A_VARIABLE = re.compile(r"_env\Z")
OUR_LOG = re.compile(r"cra-bug-\w{1,16}\.log", re.ASCII)
OUR_NAME = re.compile(
    r"(?:(?:adapters|batch|config|cra|curated|error|gitignore|index|key|lock|log|patch|raw|redaction|report|reports|bug|backup"
    r"|session|sessions|shm|sqlite|task|toml|trust|wal|html|zip|[0-9a-f]{4,64})(?:[._-]|\Z)|\.)+"
)
"""A name of words that the program uses, and ids."""
MAX_TRACEBACKS = 3
MAX_TRACEBACK_BYTES = 200_000


def program_facts(workspace: Workspace | None) -> dict[str, Any]:
    """Versions, platform, sandbox, folders."""
    found = working_bubblewrap()
    usage = shutil.disk_usage(tempfile.gettempdir() if workspace is None else workspace.repo)
    return {
        "cra": VERSION,
        "python": sys.version,
        "executable": sys.executable,
        "environment": sys.prefix,
        "packages": _packages(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "processors": os.cpu_count(),
        "is_root": os.geteuid() == 0,
        "sandbox": found.reason if isinstance(found, Obstacle) else f"bubblewrap {found.version} works",
        "cache_folder": str(wiring.cache_folder()),
        "state_folder": str(state_folder()),
        "free_disk_bytes": usage.free,
        "variables": {name: os.environ[name] for name in TOLD_VARIABLES if name in os.environ},
        "terminal": {
            "input": sys.stdin.isatty(),
            "output": sys.stdout.isatty(),
            "errors": sys.stderr.isatty(),
        },
    }


def check_facts(repo: Path) -> list[dict[str, object]]:
    """The lines of `cra check` that ask no model server."""
    return [as_object(line) for line in local_checks(repo)]


def configuration_facts(workspace: Workspace) -> list[dict[str, Any]] | dict[str, Any]:
    """Every value with its source; if the configuration cannot be read, why, and the repository's own file. Values of
    keys with a secret's name are left out.
    """
    try:
        return [_value(each) for each in list_values(workspace)]
    except ConfigError as error:
        found: dict[str, Any] = {"error": error.message}
        with suppress(ConfigError):
            found["repository"] = without_named(
                "", to_jsonable_python(read_toml(workspace.config), fallback=str)
            )
        return found


def named_secrets(workspace: Workspace, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of the variables that the configuration names as holding a key."""
    found = []
    for path in (workspace.config, user_config_file()):
        with suppress(ConfigError):
            tables = [read_toml(path).get("models")]
            servers = tables[0].get("servers") if isinstance(tables[0], dict) else None
            tables += servers.values() if isinstance(servers, dict) else ()
            names = [table.get("api_key_env") for table in tables if isinstance(table, dict)]
            found += [environment.get(name, "") for name in names if isinstance(name, str)]
    return tuple(value for value in found if value)


def folder_facts(workspace: Workspace) -> list[dict[str, Any]]:
    """Sizes of everything in `.clean_room`; of its name, the parts that the program gave."""
    facts = []
    for entry in entries_below(workspace.folder):
        with suppress(OSError):
            if entry.is_file(follow_symlinks=False):
                name = os.path.relpath(entry.path, workspace.folder)
                shown = "/".join(part if OUR_NAME.fullmatch(part) else "(other)" for part in name.split("/"))
                facts.append({"name": shown, "bytes": entry.stat(follow_symlinks=False).st_size})
    return facts


def tracebacks(*, messages: bool) -> Iterator[tuple[str, str]]:
    """(name, text) of the newest tracebacks that `cra` stored for this user in the temporary folder; the messages of the
    errors only if so asked.
    """
    folder = Path(tempfile.gettempdir())
    found = []
    for path in folder.glob("cra-bug-*.log"):
        with suppress(OSError):
            status = path.lstat()
            ours = status.st_uid == os.geteuid() and stat.S_ISREG(status.st_mode)
            if ours and OUR_LOG.fullmatch(path.name):
                found.append((status.st_mtime, path.name))
    for _, name in sorted(found, reverse=True)[:MAX_TRACEBACKS]:
        with suppress(OSError):
            data = safe_open.read_bytes(folder, name, max_bytes=MAX_TRACEBACK_BYTES)
            text = data.decode("utf-8", "replace")
            yield name, text if messages else places_in(text)


def _value(each: ConfiguredValue) -> dict[str, Any]:
    value = without_named(each.key.rpartition(".")[2], to_jsonable_python(each.value, fallback=str))
    return {"key": each.key, "value": value, "source": each.source}


def without_named(key: str, value: Any) -> Any:
    """The value of `key` without the values of keys with secret names, at any depth."""
    if isinstance(value, dict):
        return {name: without_named(str(name), each) for name, each in value.items()}
    if isinstance(value, list):
        return [without_named(key, each) for each in value]
    secret = isinstance(value, str) and value and SECRET_NAME.search(key) and not NAMES_A_VARIABLE.search(key)
    return HIDDEN if secret else value


def _packages() -> dict[str, str]:
    """The versions of the installed packages that this one needs, or may use."""
    from importlib.metadata import PackageNotFoundError, requires, version

    found = {}
    with suppress(PackageNotFoundError):
        for line in requires(PACKAGE) or ():
            name = re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]
            with suppress(PackageNotFoundError):
                found[name] = version(name)
    return dict(sorted(found.items()))

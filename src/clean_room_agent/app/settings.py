"""The settings of a command: flags override the repository's file, which overrides the user's file."""

import json
import os
import stat
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from clean_room_agent.config import (
    UNREADABLE,
    ConfigSlice,
    SliceT,
    check_slice,
    keys_of,
    laid_over,
    load_slice,
    read_toml,
    refuse_unknown_tables,
)
from clean_room_agent.errors import ConfigError, UsageError
from clean_room_agent.folders import user_folder
from clean_room_agent.indexer.index_config import IndexConfig
from clean_room_agent.llm.model_config import BudgetConfig, ModelsConfig
from clean_room_agent.orchestrator.run_config import (
    EditConfig,
    EvidenceConfig,
    OrchestratorConfig,
    RecoveryConfig,
    SandboxConfig,
    SolveConfig,
    TestingConfig,
    WorktreeConfig,
)
from clean_room_agent.retrieval.retrieval_config import ConventionsConfig, JudgmentsConfig, StagesConfig

FLAGS = {
    ("budget", "context_window"): "--context-window",
    ("budget", "reserved_tokens"): "--reserved-tokens",
    ("solve", "max_attempts"): "--max-attempts",
    ("solve", "max_refinement_loops"): "--max-refinement-loops",
    ("solve", "samples"): "--samples",
    ("stages", "default"): "--stages",
}


TABLES: dict[str, type[ConfigSlice]] = {
    "models": ModelsConfig,
    "budget": BudgetConfig,
    "stages": StagesConfig,
    "judgments": JudgmentsConfig,
    "conventions": ConventionsConfig,
    "solve": SolveConfig,
    "testing": TestingConfig,
    "evidence": EvidenceConfig,
    "orchestrator": OrchestratorConfig,
    "recovery": RecoveryConfig,
    "edit": EditConfig,
    "worktree": WorktreeConfig,
    "sandbox": SandboxConfig,
    "index": IndexConfig,
}


class Overrides(Struct, frozen=True, kw_only=True):
    """Values from the command line that override the file; None for those not given."""

    context_window: int | None = None
    reserved_tokens: int | None = None
    budget_config: Path | None = None
    stages: str | None = None
    max_attempts: int | None = None
    max_refinement_loops: int | None = None
    samples: int | None = None


def _slice_property(name: str, kind: type[SliceT]) -> cached_property[SliceT]:
    return cached_property(lambda settings: load_slice(settings.data, name, kind, source=settings.source))


class Settings(Struct, frozen=True, kw_only=True, dict=True):
    """Every table, typed, read when a command first needs it."""

    source: str
    data: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"Settings(source={self.source!r})"  # its values may be somebody's secrets

    def require(self, *tables: str) -> None:
        """Check that each of these tables has all required values.

        Raises:
            ConfigError: a value is missing or invalid; the message names the first, and how to give it.
        """
        for table in tables:
            self._load_complete_slice(table)

    def _load_complete_slice(self, table: str) -> ConfigSlice:
        kind = TABLES[table]
        missing: dict[str, str] = {}
        for (section, key), flag in FLAGS.items():
            absent = section == table and key not in self.data.get(section, {})
            if absent and keys_of(kind)[key].required:
                missing[key] = flag
        if missing:
            keys, flags = " and ".join(missing), " and ".join(missing.values())
            raise ConfigError(
                f"{self.source}: [{table}] {keys} {'is' if len(missing) == 1 else 'are'} required, but missing",
                hint=f"give {flags}, or set {keys} under [{table}] (`cra init` writes every required value)",
            )
        return load_slice(self.data, table, kind, source=self.source)

    models = _slice_property("models", ModelsConfig)
    budget = _slice_property("budget", BudgetConfig)
    stages = _slice_property("stages", StagesConfig)
    judgments = _slice_property("judgments", JudgmentsConfig)
    conventions = _slice_property("conventions", ConventionsConfig)
    solve = _slice_property("solve", SolveConfig)
    testing = _slice_property("testing", TestingConfig)
    evidence = _slice_property("evidence", EvidenceConfig)
    orchestrator = _slice_property("orchestrator", OrchestratorConfig)
    recovery = _slice_property("recovery", RecoveryConfig)
    edit = _slice_property("edit", EditConfig)
    worktree = _slice_property("worktree", WorktreeConfig)
    sandbox = _slice_property("sandbox", SandboxConfig)
    index = _slice_property("index", IndexConfig)


def load_settings(
    path: Path, overrides: Overrides, *, optional: bool = False, user_wide: bool = True
) -> Settings:
    """The settings from the file at `path`, which override those for all repositories (`user_wide`); flags override
    both. With `optional`, a missing file is read as empty, since some commands need no more than flags.

    Raises:
        ConfigError: there is no file, or it is not TOML, or has an unknown table or key or an invalid value.
        UsageError: flags that exclude each other.
    """
    below = read_user_config() if user_wide else {}
    of_user = not path.exists() and _sets_anything(below)
    data = {} if of_user or (optional and not path.exists()) else read_toml(path)
    refuse_unknown_tables(data, TABLES, source=str(path))
    merged = laid_over(below, data)
    merged = {name: dict(table) if isinstance(table, dict) else table for name, table in merged.items()}
    _lay_over(merged, overrides)
    settings = Settings(source=str(user_config_file() if of_user else path), data=merged)
    settings.require(*(name for name in TABLES if name in data))
    return settings


def _sets_anything(table: Mapping[str, Any]) -> bool:
    return any(not isinstance(value, dict) or _sets_anything(value) for value in table.values())


def user_config_file() -> Path:
    """The configuration for all repositories of this user."""
    return user_folder("XDG_CONFIG_HOME", ".config") / "clean-room-agent" / "config.toml"


def read_user_config() -> dict[str, Any]:
    """The user-wide configuration, validated; empty if there is no such file.

    Raises:
        ConfigError: as `has_user_config`, or it has an unknown table or key or an invalid value.
    """
    path = user_config_file()
    if not has_user_config(path):
        return {}
    data = read_toml(path)
    check_tables(data, source=str(path))
    return data


def has_user_config(path: Path) -> bool:
    """Whether there is a user-wide configuration at `path`. Before it is read or written, nobody else may be able to change it:
    neither the file nor its folder, nor, if it is a link, what that leads to.

    Raises:
        ConfigError: others can write one of these, it is not a regular file, or it cannot be looked at.
    """
    target = Path(os.path.realpath(path))
    try:
        for place in dict.fromkeys((path.parent, target.parent, path)):
            if place.exists() and _others_can_write(place):
                raise ConfigError(
                    f"{place} can be written by others, who could put a server and commands into {path}",
                    hint=f"chown it to yourself, and chmod go-w {place}",
                )
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(f"{path} is not a regular file", hint="move it away")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as exc:
        raise ConfigError(f"cannot read {path}: {exc.strerror}", hint=UNREADABLE) from exc
    return True


def _others_can_write(place: Path) -> bool:
    """Whether others can write the file, or replace files in the folder, which a sticky one does not let them."""
    about = place.stat()
    return about.st_uid not in {os.geteuid(), 0} or (
        bool(about.st_mode & 0o022) and not about.st_mode & stat.S_ISVTX
    )


def check_tables(data: Mapping[str, Any], *, source: str) -> None:
    """Validate all values; required ones may be missing.

    Raises:
        ConfigError: a table has an unknown key or an invalid value; the message names the first.
    """
    refuse_unknown_tables(data, TABLES, source=source)
    for name in data:
        check_slice(data, name, TABLES[name], source=source)


def _lay_over(data: dict[str, Any], overrides: Overrides) -> None:
    window, reserved = overrides.context_window, overrides.reserved_tokens
    if overrides.budget_config is not None:
        if window is not None or reserved is not None:
            raise UsageError("--budget-config excludes --context-window and --reserved-tokens")
        given = read_toml(overrides.budget_config)
        load_slice({"budget": given}, "budget", BudgetConfig, source=str(overrides.budget_config))
        data["budget"] = given
    for table, key in FLAGS:
        value = overrides.stages if table == "stages" else getattr(overrides, key)
        if value is not None:
            section = data.setdefault(table, {})
            section[key] = value
            if table == "budget":
                # A flag speaks for every model: the per-role tables of the file give way to it.
                for role in ("coding", "reasoning", "classifier"):
                    section.pop(role, None)


def flags_text(overrides: Overrides) -> str:
    """The flags that were given, as the record keeps them; "" for none."""
    given = {key: value for key, value in structs.asdict(overrides).items() if value is not None}
    # A run may be resumed from another folder.
    return json.dumps(given, default=os.path.abspath, sort_keys=True) if given else ""

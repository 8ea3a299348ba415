"""The retrieval stages by name. To register a new one, add a line to `STAGES`."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeVar

from clean_room_agent.errors import ConfigError
from clean_room_agent.retrieval.config import JudgmentsConfig
from clean_room_agent.retrieval.precision_stage import PrecisionStage
from clean_room_agent.retrieval.scope_stage import ScopeStage
from clean_room_agent.retrieval.stage import RetrievalStage
from clean_room_agent.retrieval.stage_source import RepositorySource

ConfigT = TypeVar("ConfigT")
StageT = TypeVar("StageT")
StageFactory = Callable[[JudgmentsConfig], RetrievalStage[RepositorySource]]

STAGES: Mapping[str, StageFactory] = {
    "scope": ScopeStage,
    "precision": PrecisionStage,
}


def build_stages(
    names: Sequence[str], config: JudgmentsConfig
) -> tuple[RetrievalStage[RepositorySource], ...]:
    """Build the named retrieval stages, in the given order.

    Raises:
        ConfigError: a name is unknown or appears twice, or there is none.
    """
    return stages_named(names, STAGES, config)


def stages_named(
    names: Sequence[str], known: Mapping[str, Callable[[ConfigT], StageT]], config: ConfigT
) -> tuple[StageT, ...]:
    """Build the named stages of a registry, in the given order.

    Raises:
        ConfigError: a name is unknown or appears twice, or there is none.
    """
    if not names:
        raise ConfigError("no stage is named", hint=f"stages: {', '.join(known)}")
    for place, name in enumerate(names):
        if name not in known:
            near = get_close_matches(name, known, n=1)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            raise ConfigError(f"unknown stage {name!r}{meant}", hint=f"stages: {', '.join(known)}")
        if name in names[:place]:
            raise ConfigError(f"stage {name!r} is named twice")
    return tuple(known[name](config) for name in names)

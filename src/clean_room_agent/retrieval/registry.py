"""The retrieval stages by name. A new stage is one line here."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches

from clean_room_agent.errors import ConfigError
from clean_room_agent.retrieval.config import JudgmentsConfig
from clean_room_agent.retrieval.source import RepositorySource
from clean_room_agent.retrieval.stage import RetrievalStage
from clean_room_agent.retrieval.stages.precision import PrecisionStage
from clean_room_agent.retrieval.stages.scope import ScopeStage

StageFactory = Callable[[JudgmentsConfig], RetrievalStage[RepositorySource]]

STAGES: Mapping[str, StageFactory] = {
    "scope": ScopeStage,
    "precision": PrecisionStage,
}


def build_stages(
    names: Sequence[str], config: JudgmentsConfig
) -> tuple[RetrievalStage[RepositorySource], ...]:
    """The named stages, in the caller's order.

    Raises:
        ConfigError: a name is unknown, stands twice, or there is none.
    """
    if not names:
        raise ConfigError("no retrieval stage is named", hint=f"stages: {', '.join(STAGES)}")
    for place, name in enumerate(names):
        if name not in STAGES:
            near = get_close_matches(name, STAGES, n=1)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            raise ConfigError(f"unknown retrieval stage {name!r}{meant}", hint=f"stages: {', '.join(STAGES)}")
        if name in names[:place]:
            raise ConfigError(f"retrieval stage {name!r} is named twice")
    return tuple(STAGES[name](config) for name in names)

"""The `[stages]` and `[judgments]` slices of `config.toml`, and what a retriever is told."""

from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from clean_room_agent.config import ConfigSlice


class StagesConfig(ConfigSlice):
    """Which retrieval stages run, in which order."""

    default: str = Field(default="scope,precision", description="retrieval stages in order, by comma")

    def names(self) -> tuple[str, ...]:
        """The stages' names, blanks around them removed."""
        return split_stages(self.default)


class JudgmentsConfig(ConfigSlice):
    """How candidates are judged."""

    route: Literal["each", "batch"] = Field(
        default="batch", description="each: one yes-or-no question a candidate; batch: one question for many"
    )
    top_k: int = Field(default=20, ge=1, description="files judged, best first")
    max_symbols: int = Field(default=60, ge=1, description="symbols judged, best first")
    batch_size: int = Field(default=30, ge=1, description="candidates in one batch question at most")
    threshold: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="confidence that a yes needs; without a model, score that counts as a yes",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalConfig:
    """What a retriever is told; `use_model` is false for `--no-model`."""

    stages: tuple[str, ...]
    judgments: JudgmentsConfig = field(default_factory=JudgmentsConfig)
    use_model: bool = True


def split_stages(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list."""
    return tuple(name.strip() for name in text.split(",") if name.strip())

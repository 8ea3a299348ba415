"""The tables `[stages]`, `[judgments]` and `[conventions]` of `config.toml`, and a retriever's configuration."""

from collections.abc import Sequence
from typing import Literal, Self

from msgspec import Struct, field
from pydantic import Field

from clean_room_agent.config import ConfigSlice

Route = Literal["each", "batch"]


class Bound(Struct, frozen=True, kw_only=True):
    """How many items of a ranked list are judged, and why no more."""

    count: int
    reason: str
    """Why no more are; recorded for each that is not."""


class StagesConfig(ConfigSlice):
    """Which retrieval stages run, and in which order."""

    default: str = Field(default="scope,precision", description="retrieval stages in order, by comma")

    def names(self) -> tuple[str, ...]:
        """The names of the stages, without surrounding spaces."""
        return split_stages(self.default)


class JudgmentsConfig(ConfigSlice):
    """How candidates are judged."""

    route: Route = Field(
        default="each", description="each: one yes-or-no question a candidate; batch: one question for many"
    )
    scope_route: Route | None = Field(default=None, description="for files, where it differs from route")
    precision_route: Route | None = Field(
        default=None, description="for symbols, where it differs from route"
    )
    top_k: int = Field(default=20, ge=1, description="files judged, best first")
    max_symbols: int = Field(default=20, ge=1, description="symbols judged, best first")
    batch_size: int = Field(default=30, ge=1, description="candidates in one batch question at most")
    each_files: int = Field(default=5, ge=1, description="files asked about one by one, best first")
    each_symbols: int = Field(default=5, ge=1, description="symbols asked about one by one, best first")
    each_share: float = Field(
        default=0.25,
        ge=0,
        le=1,
        description="one by one, candidates below this share of the best score are not asked about",
    )
    threshold: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="probability from which a yes counts; without a model, the score from which a file is included",
    )

    @property
    def files_in_one_question(self) -> bool:
        """Whether many files are judged in one question."""
        return (self.scope_route or self.route) == "batch"

    @property
    def symbols_in_one_question(self) -> bool:
        """Whether many symbols are judged in one question."""
        return (self.precision_route or self.route) == "batch"

    def files_to_judge(self, scores: Sequence[float]) -> Bound:
        """How many of the files, best first, are judged."""
        if self.files_in_one_question:
            return _first(len(scores), self.top_k)
        return _near(scores, self.each_files, self.each_share)

    def symbols_to_judge(self, scores: Sequence[float]) -> Bound:
        """How many of the pieces of code, best first, are judged."""
        if self.symbols_in_one_question:
            return _first(len(scores), self.max_symbols)
        return _near(scores, self.each_symbols, self.each_share)

    def sorting(self) -> Self:
        """The same with batch questions everywhere, for when scores replace the model."""
        return self.model_copy(update={"route": "batch", "scope_route": None, "precision_route": None})


class ConventionsConfig(ConfigSlice):
    """Which of the repository's instructions for agents are shown."""

    files: tuple[str, ...] = Field(
        default=("AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md", ".cursorrules"),
        description="the first of these that exists is shown to the models that plan and write code",
    )
    max_tokens: int = Field(default=400, ge=0, description="tokens of it that are shown; 0: none")


class RetrievalConfig(Struct, frozen=True, kw_only=True):
    """A retriever's configuration; `use_model` is false for `--no-model`."""

    stages: tuple[str, ...]
    judgments: JudgmentsConfig = field(default_factory=JudgmentsConfig)
    conventions: ConventionsConfig = field(default_factory=ConventionsConfig)
    use_model: bool = True


def split_stages(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _first(count: int, most: int) -> Bound:
    return Bound(count=min(count, most), reason=f"ranks below the first {most}")


def _near(scores: Sequence[float], most: int, share: float) -> Bound:
    """Up to the last of the first `most` whose score is at least this share of the best."""
    least = share * max(scores, default=0.0)
    near = [place for place, score in enumerate(scores[:most], start=1) if score >= least]
    count = near[-1] if near else 0
    if count < min(most, len(scores)):
        return Bound(count=count, reason=f"has less than {share:.0%} of the best score")
    return Bound(count=count, reason=f"ranks below the first {most}")

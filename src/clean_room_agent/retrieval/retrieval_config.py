"""The tables `[stages]`, `[judgments]` and `[conventions]` of `config.toml`, and a retriever's configuration."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from clean_room_agent.config import ConfigSlice


class StagesConfig(ConfigSlice, frozen=True, kw_only=True):
    """Which retrieval stages run, and in which order."""

    default: Annotated[str, Meta(description="retrieval stages in order, by comma")] = "scope,precision"

    def names(self) -> tuple[str, ...]:
        """The names of the stages, without surrounding spaces."""
        return tuple(name.strip() for name in self.default.split(",") if name.strip())


class JudgmentsConfig(ConfigSlice, frozen=True, kw_only=True):
    """How candidates are judged."""

    route: Annotated[
        Literal["each", "batch", "rank"],
        Meta(
            description="each: one yes-or-no question a candidate; batch: one question for many; rank: nothing is asked, the ranking decides"
        ),
    ] = "each"
    top_k: Annotated[int, Meta(ge=1, description="files judged, best first")] = 20
    max_symbols: Annotated[int, Meta(ge=1, description="symbols judged, best first")] = 20
    batch_size: Annotated[int, Meta(ge=1, description="candidates in one batch question at most")] = 30
    each_files: Annotated[int, Meta(ge=1, description="files asked about one by one, best first")] = 5
    each_symbols: Annotated[int, Meta(ge=1, description="symbols asked about one by one, best first")] = 5
    each_share: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="one by one, candidates below this share of the best score are not asked about",
        ),
    ] = 0.25
    threshold: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="probability from which a yes counts; without a model, the score from which a file is included",
        ),
    ] = 0.5

    @property
    def asks(self) -> bool:
        """Whether a model is asked at all."""
        return self.route != "rank"

    @property
    def in_one_question(self) -> bool:
        """Whether many candidates are judged in one question."""
        return self.route != "each"

    def files_to_judge(self, scores: Sequence[float]) -> tuple[int, str]:
        """How many of the files, best first, are judged; and why no more are."""
        if self.in_one_question:
            return _count_near_best(scores, self.top_k, 0.0)
        return _count_near_best(scores, self.each_files, self.each_share)

    def symbols_to_judge(self, scores: Sequence[float]) -> tuple[int, str]:
        """The same of the pieces of code."""
        if self.in_one_question:
            return _count_near_best(scores, self.max_symbols, 0.0)
        return _count_near_best(scores, self.each_symbols, self.each_share)


class ConventionsConfig(ConfigSlice, frozen=True, kw_only=True):
    """Which of the repository's instructions for agents are shown."""

    files: Annotated[
        tuple[str, ...],
        Meta(description="the first of these that exists is shown to the models that plan and write code"),
    ] = ("AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md", ".cursorrules")
    max_tokens: Annotated[int, Meta(ge=0, description="tokens of it that are shown; 0: none")] = 400


class RetrievalConfig(Struct, frozen=True, kw_only=True):
    """A retriever's configuration; `use_model` is false for `--no-model`."""

    stages: tuple[str, ...]
    judgments: JudgmentsConfig = field(default_factory=JudgmentsConfig)
    conventions: ConventionsConfig = field(default_factory=ConventionsConfig)
    use_model: bool = True


def _count_near_best(scores: Sequence[float], most: int, share: float) -> tuple[int, str]:
    """Up to the last of the first `most` whose score is at least this share of the best."""
    least = share * max(scores, default=0.0)
    near = [place for place, score in enumerate(scores[:most], start=1) if score >= least]
    count = near[-1] if near else 0
    if count < min(most, len(scores)):
        return count, f"has less than {share:.0%} of the best score"
    return count, f"ranks below the first {most}"

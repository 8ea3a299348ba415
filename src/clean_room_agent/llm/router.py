"""Chooses the model that answers a prompt, with its window and its limits."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from clean_room_agent.artifacts.context import Role
from clean_room_agent.errors import ConfigError
from clean_room_agent.llm.model_config import ROLES, BudgetConfig, ModelsConfig, RoleBudget
from clean_room_agent.llm.token_estimator import TokenEstimator

START = TokenEstimator()


class Window(Struct, frozen=True, kw_only=True):
    """A model's window and how much of it is reserved from content, in tokens."""

    context: int
    reserved: int


class ModelConfig(Struct, frozen=True, kw_only=True):
    """A model as one role uses it."""

    tag: str
    role: Role
    provider: str
    window: int
    """Tokens; one value for a tag, because another one would make the server load the model again."""
    reserved: int
    temperature: float
    max_tokens: int | None
    """Upper bound of any answer; None: the prompt's own."""
    estimator: TokenEstimator = START
    """What stands in for its tokeniser."""


class ModelRouter:
    """Chooses the model for each prompt."""

    def __init__(
        self,
        models: ModelsConfig,
        budget: BudgetConfig,
        estimators: Mapping[str, TokenEstimator] | None = None,
    ) -> None:
        """Pin each model to one window. `estimators` are those of models whose calls are known, by tag.

        Raises:
            ConfigError: one model would be used with two windows.
        """
        self._models = models
        self._budget = budget
        self._estimators = dict(estimators or {})
        self._start = TokenEstimator(factor=models.token_factor)
        self._windows: dict[str, tuple[int, str]] = {}
        for role in ROLES:
            for tag in (self._models.tag_of(role), *self.escalation(role)):
                self._pin_window(tag, role, f"role {role}")

    @property
    def models(self) -> ModelsConfig:
        """The configuration."""
        return self._models

    def resolve(self, role: Role, name: str, stage: str = "", *, tag: str = "") -> ModelConfig:
        """The model for a prompt: `tag`, else the override for its name, else for its stage, else its role's.

        Raises:
            ConfigError: the override's model is used elsewhere with another window.
        """
        overrides = self._models.overrides
        tag = (
            tag
            or overrides.get(name)
            or (overrides.get(stage) if stage else None)
            or self._models.tag_of(role)
        )
        self._pin_window(tag, role, f"prompt {name}")
        budget = self._role_budget(role)
        return ModelConfig(
            tag=tag,
            role=role,
            provider=self._models.at(tag, role).provider,
            window=budget.context_window,
            reserved=budget.reserved_tokens,
            temperature=self._models.temperature.of(role),
            max_tokens=self._models.max_tokens.of(role),
            estimator=self.estimator(tag),
        )

    def window(self, role: Role) -> Window:
        """The window of the role's model."""
        budget = self._role_budget(role)
        return Window(context=budget.context_window, reserved=budget.reserved_tokens)

    def window_of(self, tag: str) -> int | None:
        """The window of the model in tokens; None if it has no role and has answered no prompt yet."""
        return self._windows[tag][0] if tag in self._windows else None

    def estimator(self, tag: str) -> TokenEstimator:
        """The estimator of the model's tokens: by the factor that its calls needed, or the configured one."""
        return self._estimators.get(tag, self._start)

    def escalation(self, role: Role) -> tuple[str, ...]:
        """Stronger models for the role, in order."""
        return self._models.escalation.of(role)

    def tags(self) -> tuple[str, ...]:
        """Every model that the configuration names, sorted."""
        named = {self._models.tag_of(role) for role in ROLES} | set(self._models.overrides.values())
        return tuple(sorted(named.union(*(self.escalation(role) for role in ROLES))))

    def count(self, text: str, role: Role) -> int:
        """Tokens of the text for the role's model, erring on the high side."""
        return self.estimator(self._models.tag_of(role)).count(text)

    def check(self, prompts: Iterable[tuple[str, Role]], stages: Iterable[str]) -> None:
        """Check that every override names a prompt or a stage, and that no model gets two windows.

        Raises:
            ConfigError: names the override, or the model and its two windows.
        """
        known = sorted(prompts)
        names = {name for name, _ in known} | set(stages)
        for key in sorted(self._models.overrides):
            if key not in names:
                raise ConfigError(
                    f"[models.overrides] {key}: there is no prompt or stage of that name",
                    hint="known names: " + ", ".join(sorted(names)),
                )
        for name, role in known:
            self.resolve(role, name)

    def _role_budget(self, role: Role) -> RoleBudget:
        if role == "classifier" and self._budget.classifier is None and self._models.classifier is None:
            return self._budget.of("reasoning")
        return self._budget.of(role)

    def _pin_window(self, tag: str, role: Role, user: str) -> None:
        window = self._role_budget(role).context_window
        pinned, by = self._windows.setdefault(tag, (window, user))
        if pinned != window:
            raise ConfigError(
                f"model {tag} would be used with two windows: {pinned} tokens by {by}, {window} by {user}",
                hint="give both the same context_window in [budget], or name another model: "
                "each change of window makes the server load the model again",
            )

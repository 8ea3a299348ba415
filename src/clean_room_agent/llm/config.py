"""The `[models]` and `[budget]` tables of `config.toml`."""

import ipaddress
import re
from typing import Any, Generic, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from clean_room_agent.artifacts.context import Role
from clean_room_agent.config import ConfigSlice
from clean_room_agent.errors import ConfigError
from clean_room_agent.llm.token_estimator import START_FACTOR

ValueT = TypeVar("ValueT")
Provider = Literal["ollama", "openai"]
"""What a server speaks."""

OWN_FIELDS = frozenset(
    (
        "model",
        "messages",
        "stream",
        "stream_options",
        "max_tokens",
        "response_format",
        "grammar",
        "logprobs",
        "top_logprobs",
        "lora",
    )
)
"""Fields of a request that `[models.extra_body]` must leave alone."""
CLOUD = "Ollama's cloud"
"""What a forwarding server is said to send prompts to where it names no machine."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?")
_NUMERIC = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+))*\.?")


class PerRole(ConfigSlice, Generic[ValueT]):
    """One value for each role."""

    coding: ValueT
    reasoning: ValueT
    classifier: ValueT

    def of(self, role: Role) -> ValueT:
        """The role's value."""
        return {"coding": self.coding, "reasoning": self.reasoning, "classifier": self.classifier}[role]


class Temperatures(PerRole[float]):
    """`[models.temperature]`."""

    coding: float = Field(default=0.0, ge=0, le=2, description="0 takes the likeliest token each time")
    reasoning: float = Field(default=0.0, ge=0, le=2, description="0 takes the likeliest token each time")
    classifier: float = Field(default=0.0, ge=0, le=2, description="0 takes the likeliest token each time")


class AnswerLimits(PerRole[int | None]):
    """`[models.max_tokens]`."""

    coding: int | None = Field(
        default=None, gt=0, description="longest answer in tokens; default: each prompt's own"
    )
    reasoning: int | None = Field(
        default=None, gt=0, description="longest answer in tokens; default: each prompt's own"
    )
    classifier: int | None = Field(
        default=None, gt=0, description="longest answer in tokens; default: each prompt's own"
    )


class Escalation(PerRole[tuple[str, ...]]):
    """`[models.escalation]`."""

    coding: tuple[str, ...] = Field(
        default=(), description="stronger models, asked in this order about a step that the coder cannot do"
    )
    reasoning: tuple[str, ...] = Field(
        default=(), description="stronger models, in order: the first is the doctor"
    )
    classifier: tuple[str, ...] = Field(
        default=(), description="stronger models, in order; nothing in this version asks them"
    )


class Timeouts(ConfigSlice):
    """`[models.timeouts]`, in seconds."""

    connect: float = Field(default=5.0, gt=0, description="until the server accepts the connection")
    first_byte: float = Field(
        default=600.0, gt=0, description="until the answer begins: queue, loading, reading the prompt"
    )
    idle: float = Field(default=120.0, gt=0, description="between two pieces of an answer")
    total: float = Field(default=1800.0, gt=0, description="for a whole answer")


class ModelsConfig(ConfigSlice):
    """`[models]`."""

    provider: Provider = Field(
        default="ollama", description='"openai": vLLM, llama-server, LM Studio and all that speak its API'
    )
    base_url: str = Field(description="the model server; another machine needs allow_remote = true")
    coding: str = Field(min_length=1, description="writes the edits")
    reasoning: str = Field(min_length=1, description="plans and judges")
    classifier: str | None = Field(
        default=None, min_length=1, description="yes/no judgments; default: the reasoning model"
    )
    overrides: dict[str, str] = Field(
        default_factory=dict, description="another model for one prompt or stage"
    )
    escalation: Escalation = Field(default_factory=Escalation, description="stronger models, by role")
    temperature: Temperatures = Field(default_factory=Temperatures, description="by role")
    max_tokens: AnswerLimits = Field(default_factory=AnswerLimits, description="by role")
    timeouts: Timeouts = Field(default_factory=Timeouts, description="seconds")
    parallel: int = Field(
        default=2, gt=0, description="requests at a time; more than the server's slots only queue there"
    )
    retries: int = Field(
        default=3,
        ge=0,
        description="after a refused connection, a full queue or a break before the first token",
    )
    verdict_schema: bool = Field(
        default=False,
        description="true asks again for yes or no with a schema if the free answer could not be read",
    )
    repair_temperature: float = Field(
        default=0.6,
        ge=0,
        le=2,
        description="of the answer that is asked for after an unreadable one; 0 may give the same again",
    )
    repair_seed: int = Field(default=2, ge=0, description="of that answer, so that it is the same each time")
    keep_alive: str = Field(default="30m", description="how long the server keeps a model loaded")
    token_factor: float = Field(
        default=START_FACTOR,
        ge=1,
        description="tokens per counted piece of text, until enough calls of a model are known",
    )
    allow_remote: bool = Field(
        default=False, description="true lets prompts, with your code, leave this machine"
    )
    allow_truncating_server: bool = Field(
        default=False, description="true accepts a server that silently truncates long prompts"
    )
    schema_dialect: Literal["json_schema", "json_object", "structured_outputs"] = Field(
        default="json_schema",
        description="openai: how the format of answers is enforced; llama-cpp-python supports json_object, vLLM all",
    )
    grammar: bool = Field(
        default=False,
        description="openai: true constrains edits and verdicts by a grammar, which llama-server supports",
    )
    logprobs: bool = Field(
        default=True, description="openai: false for a server that refuses to give token probabilities"
    )
    streaming: bool = Field(
        default=True,
        description="openai: false for llama-cpp-python, whose streams have no counts and hide errors",
    )
    api_key_env: str | None = Field(
        default=None, description="openai: the NAME of the environment variable that holds the key"
    )
    extra_body: dict[str, Any] = Field(
        default_factory=dict, description="openai: additional fields of each request"
    )

    @field_validator("api_key_env")
    @classmethod
    def _only_a_name(cls, name: str | None) -> str | None:
        if name is not None and not _VARIABLE.fullmatch(name):
            # Not shown: it may be the key itself.
            raise ConfigError(
                "[models] api_key_env is not the name of an environment variable",
                hint='write the variable\'s name, such as "MODEL_SERVER_KEY"; the key itself stays in the environment',
            )
        return name

    @field_validator("extra_body")
    @classmethod
    def _only_more(cls, extra: dict[str, Any]) -> dict[str, Any]:
        for key in sorted(OWN_FIELDS & extra.keys()):
            raise ConfigError(
                f"[models.extra_body] {key}: cra sets this field itself",
                hint="extra_body is for what the server knows beyond the usual, such as chat_template_kwargs",
            )
        return extra

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, url: str) -> str:
        if not _is_server_address(url):
            raise ConfigError(
                f"[models] base_url: {url!r} is not the address of a server",
                hint='write it like "http://127.0.0.1:11434"',
            )
        return url.rstrip("/")

    @model_validator(mode="after")
    def _local(self) -> Self:
        for tag in () if self.allow_remote else self.tags():
            if is_cloud_tag(tag):
                raise ConfigError(
                    f"[models] {tag}: Ollama forwards prompts for this model to its cloud, and prompts hold your code",
                    hint="use a model that runs on this machine, or set allow_remote = true in [models]",
                )
        if not self.allow_remote and not is_loopback(self.base_url):
            raise ConfigError(
                f"[models] base_url: {self.base_url} is not this machine, and prompts hold your code",
                hint="use a server on 127.0.0.1, or set allow_remote = true in [models]",
            )
        return self

    def tags(self) -> tuple[str, ...]:
        """Every model that is named, without duplicates."""
        roles = (self.coding, self.reasoning, self.classifier or self.reasoning)
        stronger = (*self.escalation.coding, *self.escalation.reasoning, *self.escalation.classifier)
        return tuple(dict.fromkeys((*roles, *self.overrides.values(), *stronger)))


class RoleBudget(ConfigSlice):
    """A window, and how much of it is reserved from content."""

    context_window: int = Field(gt=0, description="tokens for the prompt and the answer")
    reserved_tokens: int = Field(
        ge=0, description="of these, kept for instructions, task, retry details and the answer"
    )

    @model_validator(mode="after")
    def _reserve_within_window(self) -> Self:
        if self.reserved_tokens >= self.context_window:
            raise ConfigError(
                f"[budget] reserved_tokens: {self.reserved_tokens} leaves nothing of context_window = {self.context_window}",
                hint="a quarter of the window is a good reserve",
            )
        return self


class BudgetConfig(RoleBudget):
    """`[budget]`, with a table of its own for a role whose model has a different window."""

    coding: RoleBudget | None = Field(default=None, description="where the coding model's window differs")
    reasoning: RoleBudget | None = Field(
        default=None, description="where the reasoning model's window differs"
    )
    classifier: RoleBudget | None = Field(default=None, description="where the classifier's window differs")

    def of(self, role: Role) -> RoleBudget:
        """The role's budget."""
        return {"coding": self.coding, "reasoning": self.reasoning, "classifier": self.classifier}[
            role
        ] or self


def is_cloud_tag(tag: str) -> bool:
    """Whether Ollama's naming says that the model runs in its cloud: `name:cloud`, `name:120b-cloud`, `name-cloud`."""
    return re.search(r"[:-]cloud(?::latest)?\Z", tag.strip().casefold()) is not None


def is_loopback(url: str) -> bool:
    """Whether the URL's host is literally this machine; no name is resolved."""
    host = host_of(url)
    return host == "localhost" or host.endswith(".localhost") or is_loopback_address(host)


def host_of(url: str) -> str:
    """The URL's host, in lower case; "" where it has none."""
    return urlsplit(url).hostname or ""


def is_loopback_address(text: str) -> bool:
    """Whether the text is a numeric loopback address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _is_server_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    plain = url.isascii() and url.isprintable() and not set(url) & set("@\\?# ")
    plain = plain and ("[" in parts.netloc) == (":" in (parts.hostname or ""))
    return plain and parts.scheme in {"http", "https"} and _is_host(parts.hostname or "") and port != 0


def _is_host(host: str) -> bool:
    """Whether it is a name, or an address in its usual form: programs disagree about other forms."""
    if ":" not in host and not _NUMERIC.fullmatch(host):
        return _NAME.fullmatch(host) is not None
    try:
        return ipaddress.ip_address(host) is not None
    except ValueError:
        return False

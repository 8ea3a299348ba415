"""The `[models]` and `[budget]` tables of `config.toml`."""

import ipaddress
import re
from typing import Annotated, Any, Generic, Literal, TypeVar
from urllib.parse import urlsplit

from msgspec import Meta, field, structs

from clean_room_agent.artifacts.context import Role
from clean_room_agent.config import ConfigSlice, NonEmpty, Positive
from clean_room_agent.errors import ConfigError
from clean_room_agent.llm.token_estimator import START_FACTOR

ValueT = TypeVar("ValueT")
Provider = Literal["ollama", "openai"]
"""What a server speaks."""

OWN_FIELDS = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "max_tokens", "response_format", "grammar"),
        *("logprobs", "top_logprobs", "lora"),
    }
)
"""Fields of a request that `[models.extra_body]` must leave alone."""
ROLES: tuple[Role, ...] = ("coding", "reasoning", "classifier")
CLOUD = "Ollama's cloud"
"""What a forwarding server is said to send prompts to where it names no machine."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?")
_NUMERIC = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+))*\.?")


class PerRole(ConfigSlice, Generic[ValueT], frozen=True, kw_only=True):
    """One value for each role."""

    coding: ValueT
    reasoning: ValueT
    classifier: ValueT

    def of(self, role: Role) -> ValueT:
        """The role's value."""
        return {"coding": self.coding, "reasoning": self.reasoning, "classifier": self.classifier}[role]


Temperature = Annotated[float, Meta(ge=0, le=2, description="0 takes the likeliest token each time")]
AnswerLimit = Annotated[
    Positive | None, Meta(description="longest answer in tokens; default: each prompt's own")
]


class Temperatures(PerRole[float], frozen=True, kw_only=True):
    """`[models.temperature]`."""

    coding: Temperature = 0.0
    reasoning: Temperature = 0.0
    classifier: Temperature = 0.0


class AnswerLimits(PerRole[int | None], frozen=True, kw_only=True):
    """`[models.max_tokens]`."""

    coding: AnswerLimit = None
    reasoning: AnswerLimit = None
    classifier: AnswerLimit = None


class Escalation(ConfigSlice, frozen=True, kw_only=True):
    """`[models.escalation]`."""

    coding: Annotated[
        tuple[str, ...],
        Meta(description="stronger models, asked in this order about a step that the coder cannot do"),
    ] = ()
    reasoning: Annotated[
        tuple[str, ...], Meta(description="stronger models, in order: the first is the doctor")
    ] = ()

    def of(self, role: Role) -> tuple[str, ...]:
        """The role's stronger models; only those that write and plan have any."""
        return self.coding if role == "coding" else self.reasoning if role == "reasoning" else ()


class Timeouts(ConfigSlice, frozen=True, kw_only=True):
    """`[models.timeouts]`, in seconds."""

    connect: Annotated[float, Meta(gt=0, description="until the server accepts the connection")] = 5.0
    first_byte: Annotated[
        float,
        Meta(
            gt=0, description="until the answer begins: queue, loading, reading the prompt; for a busy server"
        ),
    ] = 600.0
    idle: Annotated[float, Meta(gt=0, description="between two pieces of an answer")] = 120.0
    total: Annotated[float, Meta(gt=0, description="for a whole answer")] = 1800.0


SchemaDialect = Literal["json_schema", "json_object", "structured_outputs"]


class ServerConfig(ConfigSlice, frozen=True, kw_only=True):
    """The server of one role; what is not set is as in `[models]`, but for the key, which goes to no other server."""

    base_url: Annotated[str, Meta(description="the role's own model server")]
    provider: Annotated[Provider | None, Meta(description="default: as [models]")] = None
    api_key_env: Annotated[
        str | None, Meta(description="the NAME of the variable that holds its key; default: no key")
    ] = None
    schema_dialect: Annotated[SchemaDialect | None, Meta(description="default: as [models]")] = None
    grammar: Annotated[bool | None, Meta(description="default: as [models]")] = None
    logprobs: Annotated[bool | None, Meta(description="default: as [models]")] = None
    streaming: Annotated[bool | None, Meta(description="default: as [models]")] = None


class Servers(PerRole[ServerConfig | None], frozen=True, kw_only=True):
    """`[models.servers]`."""

    coding: Annotated[ServerConfig | None, Meta(description="where coding has a server of its own")] = None
    reasoning: Annotated[ServerConfig | None, Meta(description="where reasoning has a server of its own")] = (
        None
    )
    classifier: Annotated[
        ServerConfig | None, Meta(description="default: that of reasoning, unless it has a model of its own")
    ] = None


NO_SERVERS = Servers()


class ModelsConfig(ConfigSlice, frozen=True, kw_only=True):
    """`[models]`."""

    provider: Annotated[
        Provider, Meta(description='"openai": vLLM, llama-server, LM Studio and all that speak its API')
    ] = "ollama"
    base_url: Annotated[str, Meta(description="the model server; another machine needs allow_remote = true")]
    coding: Annotated[NonEmpty, Meta(description="writes the edits")]
    reasoning: Annotated[NonEmpty, Meta(description="plans and judges")]
    classifier: Annotated[
        NonEmpty | None, Meta(description="yes/no judgments; default: the reasoning model")
    ] = None
    servers: Annotated[Servers, Meta(description="by role")] = field(default_factory=Servers)
    overrides: Annotated[dict[str, str], Meta(description="another model for one prompt or stage")] = field(
        default_factory=dict
    )
    escalation: Annotated[Escalation, Meta(description="stronger models, by role")] = field(
        default_factory=Escalation
    )
    temperature: Annotated[Temperatures, Meta(description="by role")] = field(default_factory=Temperatures)
    max_tokens: Annotated[AnswerLimits, Meta(description="by role")] = field(default_factory=AnswerLimits)
    timeouts: Annotated[Timeouts, Meta(description="seconds")] = field(default_factory=Timeouts)
    parallel: Annotated[
        int, Meta(gt=0, description="requests at a time; more than the server's slots only queue there")
    ] = 2
    retries: Annotated[
        int, Meta(ge=0, description="after a refused connection or a break before the first token")
    ] = 3
    keep_alive: Annotated[str, Meta(description="how long the server keeps a model loaded")] = "30m"
    token_factor: Annotated[
        float,
        Meta(ge=1, description="tokens per counted piece of text, until enough calls of a model are known"),
    ] = START_FACTOR
    allow_remote: Annotated[
        bool, Meta(description="true lets prompts, with your code, leave this machine")
    ] = False
    allow_truncating_server: Annotated[
        bool, Meta(description="true accepts a server that silently truncates long prompts")
    ] = False
    schema_dialect: Annotated[
        SchemaDialect,
        Meta(
            description="openai: how the format of answers is enforced; llama-cpp-python supports json_object, vLLM all"
        ),
    ] = "json_schema"
    grammar: Annotated[
        bool,
        Meta(
            description="openai: true constrains edits and verdicts by a grammar, which llama-server supports"
        ),
    ] = False
    logprobs: Annotated[
        bool, Meta(description="openai: false for a server that refuses to give token probabilities")
    ] = True
    streaming: Annotated[
        bool,
        Meta(description="openai: false for llama-cpp-python, whose streams have no counts and hide errors"),
    ] = True
    api_key_env: Annotated[
        str | None, Meta(description="openai: the NAME of the environment variable that holds the key")
    ] = None
    extra_body: Annotated[dict[str, Any], Meta(description="openai: additional fields of each request")] = (
        field(default_factory=dict)
    )

    def __post_init__(self) -> None:
        if self.api_key_env is not None and not _VARIABLE.fullmatch(self.api_key_env):
            # Not shown: it may be the key itself.
            raise ConfigError(
                "[models] api_key_env is not the name of an environment variable",
                hint='write the variable\'s name, such as "MODEL_SERVER_KEY"; the key itself stays in the environment',
            )
        for key in sorted(OWN_FIELDS & self.extra_body.keys()):
            raise ConfigError(
                f"[models.extra_body] {key}: cra sets this field itself",
                hint="extra_body is for what the server knows beyond the usual, such as chat_template_kwargs",
            )
        if not _is_server_address(self.base_url):
            raise ConfigError(
                f"[models] base_url: {self.base_url!r} is not the address of a server",
                hint='write it like "http://127.0.0.1:11434"',
            )
        structs.force_setattr(self, "base_url", self.base_url.rstrip("/"))
        if not self.allow_remote:
            self._require_local()
        self._require_one_server_for_each_model()

    def _require_local(self) -> None:
        for tag in self.tags():
            if is_cloud_tag(tag):
                raise ConfigError(
                    f"[models] {tag}: Ollama forwards prompts for this model to its cloud, and prompts hold your code",
                    hint="use a model that runs on this machine, or set allow_remote = true in [models]",
                )
        if not is_loopback(self.base_url):
            raise ConfigError(
                f"[models] base_url: {self.base_url} is not this machine, and prompts hold your code",
                hint="use a server on 127.0.0.1, or set allow_remote = true in [models]",
            )

    def _require_one_server_for_each_model(self) -> None:
        at: dict[str, str] = {}
        for role in ROLES:
            try:
                url = self.for_role(role).base_url
            except ConfigError as error:
                said = error.message.replace("[models]", f"[models.servers.{role}]", 1)
                raise ConfigError(said, hint=error.hint) from error
            for tag in (self.tag_of(role), *self.escalation.of(role)):
                if at.setdefault(tag, url) != url:
                    raise ConfigError(
                        f"[models.servers] the model {tag} would be asked for at {at[tag]} and at {url}",
                        hint="give one of them another name there (llama-server: --alias, vLLM: --served-model-name)",
                    )

    def tag_of(self, role: Role) -> str:
        """The role's model."""
        return {"coding": self.coding, "classifier": self.classifier or self.reasoning}.get(
            role, self.reasoning
        )

    def server_of(self, role: Role) -> ServerConfig | None:
        """The role's own server; None where it is that of `[models]`."""
        if role == "classifier" and self.classifier is None and self.servers.classifier is None:
            role = "reasoning"
        return self.servers.of(role)

    def for_role(self, role: Role) -> "ModelsConfig":
        """The configuration with the role's server as the only one."""
        own = self.server_of(role)
        if own is None:
            return self if self.servers == NO_SERVERS else structs.replace(self, servers=NO_SERVERS)
        given = {name: value for name, value in structs.asdict(own).items() if value is not None}
        return structs.replace(self, servers=NO_SERVERS, **({"api_key_env": None} | given))

    def at(self, tag: str, role: Role) -> "ModelsConfig":
        """The configuration of the server at which a prompt of this role asks the model: of the model's own role, if any."""
        own = (one for one in ROLES if tag in {self.tag_of(one), *self.escalation.of(one)})
        return self.for_role(next(own, role))

    def each_server(self) -> "tuple[ModelsConfig, ...]":
        """The configuration for each server, in the order of the roles."""
        return tuple({self.server_of(role): self.for_role(role) for role in ROLES}.values())

    def tags(self) -> tuple[str, ...]:
        """Every model that is named, without duplicates."""
        roles = tuple(map(self.tag_of, ROLES))
        stronger = (*self.escalation.coding, *self.escalation.reasoning)
        return tuple(dict.fromkeys((*roles, *self.overrides.values(), *stronger)))


class RoleBudget(ConfigSlice, frozen=True, kw_only=True):
    """A window, and how much of it is reserved from content."""

    context_window: Annotated[int, Meta(gt=0, description="tokens for the prompt and the answer")]
    reserved_tokens: Annotated[
        int, Meta(ge=0, description="of these, kept for instructions, task, retry details and the answer")
    ]

    def __post_init__(self) -> None:
        if self.reserved_tokens >= self.context_window:
            raise ConfigError(
                f"[budget] reserved_tokens: {self.reserved_tokens} leaves nothing of context_window = {self.context_window}",
                hint="a quarter of the window is a good reserve",
            )


class BudgetConfig(RoleBudget, frozen=True, kw_only=True):
    """`[budget]`, with a table of its own for a role whose model has a different window."""

    coding: Annotated[RoleBudget | None, Meta(description="where the coding model's window differs")] = None
    reasoning: Annotated[
        RoleBudget | None, Meta(description="where the reasoning model's window differs")
    ] = None
    classifier: Annotated[RoleBudget | None, Meta(description="where the classifier's window differs")] = None

    def of(self, role: Role) -> RoleBudget:
        """The role's budget."""
        own = {"coding": self.coding, "reasoning": self.reasoning, "classifier": self.classifier}[role]
        return own or self


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

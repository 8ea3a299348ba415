"""Model clients for tests: a small configuration, a clock that stands still, waits that are noted and not waited."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field
from pydantic import BaseModel

from clean_room_agent.artifacts.model_calls import CallSink, CallWatcher, unwatched
from clean_room_agent.llm.answers import YES_OR_NO, Choice, JsonAnswer, TextAnswer
from clean_room_agent.llm.client import ModelClient, Reply
from clean_room_agent.llm.model_config import BudgetConfig, ModelsConfig
from clean_room_agent.llm.probes import BiasStore, ProofStore
from clean_room_agent.llm.prompt import Prompt
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.transport import Transport

NOW = "2026-01-02T03:04:05Z"
WINDOW = 4096


class Note(Struct, frozen=True, kw_only=True):
    """Inputs of the prompts below."""

    text: str


class Colour(BaseModel):
    """Answer of `COLOUR`."""

    name: str
    shades: tuple[int, ...] = ()


COLOUR: Prompt[Note, Colour] = Prompt(
    name="colour",
    role="reasoning",
    title="Name the colour",
    system="You answer with JSON.",
    template="{{ heading }}\n\nAnswer with one JSON object of this schema: {{ schema }}\n\nThe thing: {{ text }}",
    answer=JsonAnswer(Colour),
    max_answer_tokens=64,
    example='{"name": "red", "shades": [1, 2]}',
)
RELEVANT: Prompt[Note, Choice] = Prompt(
    name="relevant",
    role="classifier",
    title="Is it relevant?",
    system="You answer yes or no.",
    template="{{ heading }}\n\nAnswer with one word.\n\nThe thing: {{ text }}",
    answer=YES_OR_NO,
    max_answer_tokens=3,
    example="yes",
)
SHOUT: Prompt[Note, str] = Prompt(
    name="shout",
    role="coding",
    title="Write it in capitals",
    system="You write text.",
    template="{{ heading }}\n\nThe thing: {{ text }}",
    answer=TextAnswer(str.upper),
    max_answer_tokens=16,
    example="HELLO",
)


def judge_numbers(
    client: ModelClient, numbers: Sequence[int], *, pass_id: str = "t:p", stage: str = ""
) -> tuple[Reply[Choice], ...]:
    """Asks whether each number is relevant, under its own name."""
    inputs, items = [Note(text=str(number)) for number in numbers], [str(number) for number in numbers]
    return client.ask_each(RELEVANT, inputs, items=items, pass_id=pass_id, stage=stage)


class Waits(Struct):
    """The seconds that a client wanted to wait."""

    seconds: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)


def models_config(base_url: str = "http://127.0.0.1:11434", **fields: Any) -> ModelsConfig:
    """`[models]` for the stand-in server's models; no retries unless asked for."""
    given = {"base_url": base_url, "coding": "coder:3b", "reasoning": "thinker:4b", "retries": 0} | fields
    return msgspec.convert(given, ModelsConfig)


def budget_config(window: int = WINDOW) -> BudgetConfig:
    """`[budget]` with a quarter of the window in reserve."""
    return BudgetConfig(context_window=window, reserved_tokens=window // 4)


def model_client(
    transport: Transport,
    sink: CallSink,
    *,
    config: ModelsConfig | None = None,
    window: int = WINDOW,
    waits: Waits | None = None,
    proofs: ProofStore | None = None,
    biases: BiasStore | None = None,
    copiers: Callable[[str], Collection[str]] = lambda _pass_id: (),
    watch: CallWatcher = unwatched,
    now: str = NOW,
    timer: Callable[[], float] = lambda: 0.0,
) -> ModelClient:
    """A client whose clock stands still, and whose timer does by default."""
    router = ModelRouter(config or models_config(), budget_config(window))
    return ModelClient(
        router,
        transport,
        sink,
        lambda: now,
        timer=timer,
        sleep=(waits or Waits()).sleep,
        jitter=lambda: 1.0,
        proofs=proofs,
        biases=biases,
        copiers=copiers,
        watch=watch,
    )

"""Fits a prompt into its window by leaving out whole items, in a fixed order, and names each of them."""

from collections.abc import Callable, Iterator
from typing import Generic

from msgspec import Struct
from msgspec.structs import replace

from clean_room_agent.artifacts.context import ContextItem, ContextPackage, SectionTexts, section_texts
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.llm.answers import AnswerT
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.prompt import InputsT, Prompt
from clean_room_agent.unified_diff import Hunk, join_hunks, split_hunks


class Retry(Struct, frozen=True, kw_only=True):
    """An earlier attempt at the step, as the prompt shows it."""

    number: int
    edits: str
    """In the edit format; "" if there were none, or it is not the newest."""
    feedback: str


class PromptContents(Struct, frozen=True, kw_only=True):
    """What a prompt contains besides its fixed text. Everything but the primary items that were asked for may be left
    out.
    """

    items: tuple[ContextItem, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    retries: tuple[Retry, ...] = ()
    """Oldest first."""
    others: tuple[str, ...] = ()
    """Paths, best first."""
    rejected: str = ""
    """An earlier answer; only its faults have to be in the prompt."""

    @property
    def sections(self) -> SectionTexts:
        """The items as the prompt shows them."""
        return section_texts(self.items)

    @property
    def diff(self) -> str:
        """The hunks as the prompt shows them."""
        return join_hunks(self.hunks)


class Fitted(Struct, Generic[InputsT], frozen=True, kw_only=True):
    """Inputs that fit."""

    inputs: InputsT
    need: int
    """Estimated tokens of the request, without the answer."""
    window: int
    dropped: tuple[str, ...]
    """What was left out, in the order in which it was dropped."""


def all_contents(
    package: ContextPackage | None, diff: str = "", retries: tuple[Retry, ...] = (), rejected: str = ""
) -> PromptContents:
    """Everything that a prompt would contain if the window were large enough."""
    items = package.items if package is not None else ()
    return PromptContents(items=items, hunks=split_hunks(diff), retries=retries, rejected=rejected)


def planner_contents(package: ContextPackage, diff: str = "", rejected: str = "") -> PromptContents:
    """The same, with the paths of files that the context does not show: a plan may name them."""
    return replace(all_contents(package, diff, rejected=rejected), others=package.others)


def fit(
    models: ModelClient,
    prompt: Prompt[InputsT, AnswerT],
    build: Callable[[PromptContents], InputsT],
    wanted: PromptContents,
    *,
    answer_tokens: int,
) -> Fitted[InputsT]:
    """The inputs with as much of `wanted` as fits together with an answer of `answer_tokens`.

    Paths of files that are not shown go first, the last first; then the oldest retries, an earlier answer that was
    refused, the first hunks of the diff, the items that are not primary, the last shown first, and the newest retry. Each
    is left out whole.

    Raises:
        WindowExceeded: the fixed text and the primary items alone do not fit; the message names them.
    """
    window = models.window(prompt).context
    dropped: list[str] = []
    kept, losses = wanted, _in_order_of_loss(wanted)
    while True:
        inputs = build(kept)
        need = models.measure(prompt, inputs)
        excess = need + answer_tokens - window
        if excess <= 0:
            return Fitted(inputs=inputs, need=need, window=window, dropped=tuple(dropped))
        freed = 0  # counted low: headings go with what stands below them
        for without, name, text in losses:
            kept = without
            freed += max(models.count(text, prompt.role), 1)
            dropped.append(name)
            if freed >= excess:
                break
        if not freed:
            raise _window_exceeded_error(prompt.name, kept, need=need, answer=answer_tokens, window=window)


def _in_order_of_loss(kept: PromptContents) -> Iterator[tuple[PromptContents, str, str]]:
    """The contents after each thing that may be left out, in order; with the name and the text of what was left out."""
    while kept.others:
        path = kept.others[-1]
        kept = replace(kept, others=kept.others[:-1])
        yield kept, f"path {path}", path
    while len(kept.retries) > 1:
        first, *later = kept.retries
        kept = replace(kept, retries=tuple(later))
        yield kept, f"attempt {first.number}", first.edits + first.feedback
    if kept.rejected:
        answer = kept.rejected
        kept = replace(kept, rejected="")
        yield kept, "the refused answer", answer
    while kept.hunks:
        hunk = kept.hunks[0]
        kept = replace(kept, hunks=kept.hunks[1:])
        yield kept, f"hunk {hunk.name}", hunk.body
    for item in reversed([item for item in kept.items if item.detail != "primary"]):
        kept = replace(kept, items=tuple(other for other in kept.items if other is not item))
        yield kept, f"{item.detail} {_item_name(item)}", item.text
    for newest in kept.retries:
        kept = replace(kept, retries=())
        yield kept, f"attempt {newest.number}", newest.edits + newest.feedback


def _window_exceeded_error(
    prompt: str, kept: PromptContents, *, need: int, answer: int, window: int
) -> WindowExceeded:
    primary = ", ".join(f"{_item_name(item)} ({item.tokens} tokens)" for item in kept.items) or "nothing"
    return WindowExceeded(
        f"prompt {prompt} needs about {need} tokens and {answer} for its answer, and the window has {window}; "
        f"what may not be left out: {primary}",
        hint="raise context_window in [budget] if the model allows it, or name a smaller piece of code in the task",
    )


def _item_name(item: ContextItem) -> str:
    return item.path if item.symbol is None else f"{item.path}::{item.symbol}"

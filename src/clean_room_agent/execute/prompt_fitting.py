"""Fits a prompt into its window by leaving out whole items, in a fixed order, and names each of them."""

from collections.abc import Callable
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
    kept = wanted
    while True:
        inputs = build(kept)
        need = models.measure(prompt, inputs)
        if need + answer_tokens <= window:
            return Fitted(inputs=inputs, need=need, window=window, dropped=tuple(dropped))
        freed = 0
        while freed < need + answer_tokens - window:
            without = _without_next(kept)
            if without is None:
                break  # what was freed is counted low: headings go with what stands below them
            kept, name, text = without
            freed += max(models.count(text, prompt.role), 1)
            dropped.append(name)
        if not freed:
            raise _exceeded(prompt.name, kept, need=need, answer=answer_tokens, window=window)


def _without_next(kept: PromptContents) -> tuple[PromptContents, str, str] | None:
    """The contents without what has to be dropped next, its name and its text; None if only asked-for primary items are
    left.
    """
    if kept.others:
        path = kept.others[-1]
        return replace(kept, others=kept.others[:-1]), f"path {path}", path
    if earlier := _without_earlier(kept):
        return earlier
    places = [index for index, item in enumerate(kept.items) if item.detail != "primary"]
    if places:
        return _without_item(kept, places[-1])
    return _without_oldest(kept) if kept.retries else None


def _without_earlier(kept: PromptContents) -> tuple[PromptContents, str, str] | None:
    """The same for what the run has done so far."""
    if len(kept.retries) > 1:
        return _without_oldest(kept)
    if kept.rejected:
        return replace(kept, rejected=""), "the refused answer", kept.rejected
    if kept.hunks:
        hunk = kept.hunks[0]
        return replace(kept, hunks=kept.hunks[1:]), f"hunk {hunk.name}", hunk.body
    return None


def _without_oldest(kept: PromptContents) -> tuple[PromptContents, str, str]:
    first, *later = kept.retries
    return replace(kept, retries=tuple(later)), f"attempt {first.number}", first.edits + first.feedback


def _without_item(kept: PromptContents, place: int) -> tuple[PromptContents, str, str]:
    item = kept.items[place]
    items = (*kept.items[:place], *kept.items[place + 1 :])
    return replace(kept, items=items), f"{item.detail} {_name(item)}", item.text


def _exceeded(prompt: str, kept: PromptContents, *, need: int, answer: int, window: int) -> WindowExceeded:
    primary = ", ".join(f"{_name(item)} ({item.tokens} tokens)" for item in kept.items) or "nothing"
    return WindowExceeded(
        f"prompt {prompt} needs about {need} tokens and {answer} for its answer, and the window has {window}; "
        f"what may not be left out: {primary}",
        hint="raise context_window in [budget] if the model allows it, or name a smaller piece of code in the task",
    )


def _name(item: ContextItem) -> str:
    return item.path if item.symbol is None else f"{item.path}::{item.symbol}"

"""The adapters that llama-server has loaded: which of them a model's name means, and what a request must say about them.

It loads them when it starts (`--lora FILE`) and numbers them. A request gives the scale of each; if it names none, all
that are loaded apply at full scale, even after `--lora-init-without-apply`. So each request to such a server names all
of them, even for the base. Example, with adapters 0 and 1 loaded: the base is asked with 0 and 1 at scale 0, adapter 1
with 0 at scale 0 and 1 at scale 1.

The server caches earlier prompts in slots, and may reuse that cache for another adapter although it was computed with
the first (llama.cpp#26207). So a request after one with another adapter must not use the cache; and if several requests
run concurrently, which may share a slot in any order, none may once an adapter is in use.
"""

import threading
from collections.abc import Callable
from pathlib import PurePath
from typing import Annotated, Any

from msgspec import Meta, Struct

from clean_room_agent.errors import ModelNotFound

MARK = "+"


class LoadedAdapter(Struct, frozen=True, kw_only=True):
    """One adapter, as llama-server lists it."""

    id: Annotated[int, Meta(ge=0, lt=2**31)]
    path: str

    @property
    def name(self) -> str:
        """The name by which a tag refers to it."""
        return PurePath(self.path).stem


AdapterList = tuple[LoadedAdapter, ...]
"""What `/lora-adapters` answers."""


class _TagMeaning(Struct, frozen=True, kw_only=True):
    """What a tag means on a server that loaded adapters for its model."""

    model: str
    scales: tuple[tuple[int, float], ...]
    """The scale of each loaded adapter, by its number."""


class LoraTags:
    """What requests must say about adapters. Thread-safe."""

    def __init__(self, ask: Callable[[str], tuple[str, AdapterList] | None], *, parallel: bool) -> None:
        """`ask` returns a tag's model, as the server lists it, and its adapters, or None for a server that loads none;
        it raises if that cannot be found out now. `parallel`: whether requests overlap.
        """
        self._ask = ask
        self._parallel = parallel
        self._lock = threading.Lock()
        self._known: dict[str, _TagMeaning | None] = {}
        self._last = ""
        """The tag of the last request."""
        self._used = False
        """Whether any request named an adapter."""

    def model(self, tag: str) -> str:
        """The model that the tag's adapter is for, as the server lists it; the tag itself if it names no adapter.

        Raises:
            ModelError: the server does not have the adapter, or cannot be asked.
        """
        found = self._lookup(tag)
        return tag if found is None else found.model

    def fields(self, tag: str) -> dict[str, Any]:
        """The fields of a request.

        Raises:
            ModelError: the server does not have the adapter, or cannot be asked.
        """
        found = self._lookup(tag)
        with self._lock:
            self._used = self._used or (found is not None and any(scale for _, scale in found.scales))
            switched = self._last not in {"", tag}
            self._last = tag
            anew = self._used and (switched or self._parallel)
        scales = () if found is None else found.scales
        named = {"lora": [{"id": number, "scale": scale} for number, scale in scales]} if scales else {}
        return named | ({"cache_prompt": False} if anew else {})

    def _lookup(self, tag: str) -> _TagMeaning | None:
        """What the tag means; None if the server loaded no adapters, since other servers' models may have the marker in
        their names.
        """
        if tag not in self._known:
            self._known[tag] = self._find(tag)
        return self._known[tag]

    def _find(self, tag: str) -> _TagMeaning | None:
        answer = self._ask(tag)
        if answer is None:
            return None
        model, loaded = answer
        numbers = {each.name: each.id for each in loaded}
        name = tag.partition(MARK)[2]
        if name and name not in numbers:
            there = f"it has {', '.join(sorted(numbers))}" if numbers else "it has none"
            raise ModelNotFound(
                f"llama-server has not loaded the adapter {name} for {tag.partition(MARK)[0]}: {there}",
                hint="restart it with the preset that `cra adapters evaluate` or `deploy` wrote",
            )
        chosen = numbers.get(name)
        scales = tuple((number, float(number == chosen)) for number in sorted(numbers.values()))
        return _TagMeaning(model=model, scales=scales)

"""Adapters of llama-server: a tag `BASE+ADAPTER` means its model BASE with the adapter that was loaded from ADAPTER.gguf.

llama-server loads adapters when it starts (`--lora FILE`, not applied: `--lora-init-without-apply`), numbers them, and
applies those whose number a request names. It keeps what it has read of earlier prompts in slots, and can take that up
again under another adapter, though it was computed under the first (llama.cpp#26207). So a request after one with another
adapter is read anew; and where several requests are under way at a time, which may share a slot in any order, all are.
"""

import threading
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from pydantic import BaseModel, RootModel

from clean_room_agent.errors import ModelError, ModelNotFound, ServerUnreachable

MARK = "+"


class LoadedAdapter(BaseModel):
    """One adapter, as llama-server lists it."""

    id: int
    path: str

    @property
    def name(self) -> str:
        """By which a tag means it."""
        return PurePath(self.path).stem


class AdapterList(RootModel[list[LoadedAdapter]]):
    """What `/lora-adapters` answers."""


class LoraTags:
    """What requests must say for tags that name an adapter. Usable by several threads."""

    def __init__(self, ask: Callable[[str], tuple[str, AdapterList]], *, parallel: bool) -> None:
        """`ask` tells a tag's model, as the server lists it, and its adapters; `parallel`: whether requests overlap."""
        self._ask = ask
        self._parallel = parallel
        self._lock = threading.Lock()
        self._known: dict[str, tuple[str, int] | None] = {}
        self._last = ""
        """The tag of the last request."""
        self._used = False
        """Whether any request named an adapter."""

    def model(self, tag: str) -> str:
        """The model that the tag's adapter is for, as the server lists it; the tag itself where it names none.

        Raises:
            ModelError: the server does not have the adapter, or cannot be asked.
        """
        found = self._lookup(tag)
        return tag if found is None else found[0]

    def fields(self, tag: str) -> dict[str, Any]:
        """The fields of a request.

        Raises:
            ModelError: the server does not have the adapter, or cannot be asked.
        """
        found = self._lookup(tag)
        with self._lock:
            self._used = self._used or found is not None
            switched = self._last not in {"", tag}
            self._last = tag
            if not self._used:
                return {}
            chosen = [] if found is None else [{"id": found[1], "scale": 1.0}]
            anew = {"cache_prompt": False} if switched or self._parallel else {}
        return {"lora": chosen, **anew}

    def _lookup(self, tag: str) -> tuple[str, int] | None:
        """Model and adapter's number; None where the tag names none: another server's models may have the mark in their names."""
        if MARK not in tag:
            return None
        if tag not in self._known:
            self._known[tag] = self._find(tag)
        return self._known[tag]

    def _find(self, tag: str) -> tuple[str, int] | None:
        name = tag.partition(MARK)[2]
        try:
            model, loaded = self._ask(tag)
        except ServerUnreachable:
            raise
        except ModelError:
            return None  # no llama-server
        numbers = {each.name: each.id for each in loaded.root}
        if name not in numbers:
            there = f"it has {', '.join(sorted(numbers))}" if numbers else "it has none"
            raise ModelNotFound(
                f"llama-server has not loaded the adapter {name} for {tag.partition(MARK)[0]}: {there}",
                hint="restart it with the preset that `cra adapters evaluate` or `deploy` wrote",
            )
        return model, numbers[name]

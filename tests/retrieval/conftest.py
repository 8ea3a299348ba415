from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.retrieval.world import World, make_world


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """`make_world` in a folder of its own; what it opened is closed at the end."""
    opened: list[World] = []

    def make_and_keep(*args: object, **kwargs: object) -> World:
        opened.append(make_world(tmp_path, *args, **kwargs))  # type: ignore[arg-type]
        return opened[-1]

    yield make_and_keep
    for world in opened:
        world.close()

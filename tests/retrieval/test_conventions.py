"""What of AGENTS.md and its like comes into a context."""

from collections.abc import Callable

import msgspec
import pytest
from tests.retrieval.shop import IMPORTS, SHOP
from tests.retrieval.world import TASK, World, context_request

from clean_room_agent.retrieval.conventions import find_conventions, sections_of
from clean_room_agent.retrieval.retrieval_config import ConventionsConfig

Make = Callable[..., World]

GUIDE = """# About

Words about releases.

## Releases

Tag them, and tell everybody who wants to know of them.

## Code style

Names are words.

```python
# no heading
```

## Contact

Ask.
"""


def ranges(world: World, **config: object) -> list[tuple[str, int, int]]:
    found, _ = find_conventions(world.source(), msgspec.convert(config, ConventionsConfig))
    return [(one.path, one.start_line, one.end_line) for one in found]


def test_a_text_is_divided_at_its_headings_and_not_in_code() -> None:
    assert sections_of(GUIDE.split("\n")[:-1]) == (
        ("About", (1, 4)),
        ("Releases", (5, 8)),
        ("Code style", (9, 16)),
        ("Contact", (17, 19)),
    )
    assert sections_of(["words", "# One"]) == (("", (1, 1)), ("One", (2, 2)))


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (400, [("AGENTS.md", 1, 19)]),
        (16, [("AGENTS.md", 1, 4), ("AGENTS.md", 9, 16)]),
        (14, [("AGENTS.md", 9, 19)]),
        (12, [("AGENTS.md", 9, 16)]),
        (4, [("AGENTS.md", 9, 10)]),
        (1, []),
        (0, []),
    ],
)
def test_sections_about_code_come_first_and_none_is_cut_but_one_alone(
    make: Make, tokens: int, expected: list[tuple[str, int, int]]
) -> None:
    world = make({**SHOP, "AGENTS.md": GUIDE}, imports=IMPORTS)
    assert ranges(world, max_tokens=tokens) == expected


def test_a_context_holds_them_and_the_record_says_why(make: Make) -> None:
    world = make({**SHOP, "AGENTS.md": GUIDE}, imports=IMPORTS)
    package = world.retriever().retrieve(context_request(files=("shop/cart.py",))).package
    (item,) = [one for one in package.items if one.section == "conventions"]
    assert (item.path, item.text, item.detail) == ("AGENTS.md", GUIDE, "supporting")
    (row,) = [
        one
        for one in world.decisions(f"{TASK}:impl:p1:s1")
        if one.subject.path == "AGENTS.md" and one.included
    ]
    assert row.reason == "what the repository tells agents"

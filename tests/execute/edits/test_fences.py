import pytest

from clean_room_agent.execute.edits.fences import is_prose, unfence

FENCED = "```python\nx = 1\n```"


@pytest.mark.parametrize(
    ("path", "texts", "bare"),
    [
        ("a.py", (FENCED, "~~~\ny\n~~~"), ("x = 1", "y")),
        ("a.py", (FENCED, ""), ("x = 1", "")),
        ("a.py", (FENCED, "y = 2"), (FENCED, "y = 2")),
        ("a.py", ("```\nx = 1",), ("```\nx = 1",)),
        ("a.py", ("````\n```\n````",), ("```",)),
        ("README.md", (FENCED,), (FENCED,)),
        ("a.py", ("", ""), ("", "")),
    ],
)
def test_a_fence_is_taken_off_where_every_text_has_one(
    path: str, texts: tuple[str, ...], bare: tuple[str, ...]
) -> None:
    assert unfence(path, texts) == bare


def test_what_people_read_is_known_by_its_suffix() -> None:
    assert is_prose("docs/Guide.MD")
    assert not is_prose("a.py")

import pytest

from clean_room_agent.execute.edits.tags import (
    find_tags,
    holds_tags,
    holds_unpaired_tags,
    is_prose,
    partners,
    unfence,
)

EDIT = '<edit file="a.py">\n<search>\nx\n</search>\n<replacement>\ny\n</replacement>\n</edit>\n'
FENCED = "```python\nx = 1\n```"


def names(text: str, *, indented: bool = True, inline: bool = False) -> list[str]:
    return [tag.key for tag in find_tags(text, indented=indented, inline=inline)]


def test_the_tags_of_an_edit_pair_off() -> None:
    tags = find_tags(EDIT, indented=False, inline=False)
    assert [tag.key for tag in tags] == [
        "edit", "search", "/search", "replacement", "/replacement", "/edit",
    ]  # fmt: skip
    assert partners(tags) == (5, 2, None, 4, None, None)
    assert (tags[0].attribute("file"), tags[0].line, tags[5].line) == ("a.py", 1, 8)
    assert EDIT[tags[2].start : tags[2].end] == "</search>"


@pytest.mark.parametrize(
    ("line", "strict", "loose"),
    [
        ("<search>", ["search"], ["search"]),
        ("  <search>", [], ["search"]),
        ("if a <search> b", [], []),
        ("x = 1</search>", [], ["/search"]),
        ("<search>x = 1", [], ["search"]),
        ("<delete file='a'/>", ["delete/"], ["delete/"]),
        ('<edit file="a" symbol="f">', ["edit symbol"], ["edit symbol"]),
        ("<searching>", [], []),
    ],
)
def test_a_tag_counts_by_its_place_on_the_line(line: str, strict: list[str], loose: list[str]) -> None:
    assert names(line, indented=False) == strict
    assert names(line, inline=True) == loose


def test_a_text_holds_tags_where_a_line_is_one() -> None:
    assert holds_tags("a\n<search>\nb")
    assert not holds_tags("a <search> b")
    assert holds_unpaired_tags("<search>\nx")
    assert not holds_unpaired_tags("<search>\nx\n</search>")


def test_a_tag_is_tight_where_nothing_but_blanks_and_fences_stand_before_it() -> None:
    tags = find_tags("<search>\n```\n\n</search>\nx\n<replacement>", indented=False, inline=False)
    assert [tag.tight for tag in tags] == [True, True, False]


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

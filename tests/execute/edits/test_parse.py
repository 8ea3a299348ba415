import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from testing.growth import QUADRATIC, growth

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.execute.edits.parse import parse_edits, render_edit, render_edits
from clean_room_agent.llm.answers import ParseFault

SIMPLE = """<edit file="src/a.py">
<search>
x = 1
</search>
<replacement>
x = 2
</replacement>
</edit>
"""
PIECES = st.sampled_from([
    "<edit file='a.py'>", "<edit file='a.py' symbol='f'>", "</edit>", "<search>", "</search>", "<replacement>",
    "</replacement>", "<insert file='a.py' after='f'>", "<insert file='a.py'>", "</insert>", "<create file='b'>", "</create>", "<delete file='c'/>", "<create file='b'/>", "x = 1", "", "  y",
    "```", "```python", "<edit>", "  <search>", "z</replacement>",
])  # fmt: skip
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r<"), max_size=60)
PATHS = st.from_regex(r"[a-z]{1,4}(/[a-z]{1,4}){0,2}\.(py|md|js)", fullmatch=True)
NESTED = st.builds(lambda a, b: f"{a}\n{SIMPLE}{b}", TEXTS, TEXTS)
CONTENTS = st.one_of(TEXTS, NESTED)
EDITS = st.one_of(
    st.builds(PatchEdit, kind=st.just("edit"), file_path=PATHS, search=CONTENTS, replacement=CONTENTS),
    st.builds(
        PatchEdit, kind=st.just("symbol"), file_path=PATHS, symbol=st.just("A.b"), replacement=CONTENTS
    ),
    st.builds(
        PatchEdit,
        kind=st.just("insert"),
        file_path=PATHS,
        symbol=st.just("A.b"),
        place=st.sampled_from(("after", "before", "in")),
        replacement=CONTENTS,
    ),
    st.builds(PatchEdit, kind=st.just("delete"), file_path=PATHS),
    st.builds(
        PatchEdit,
        kind=st.just("create"),
        file_path=PATHS,
        replacement=CONTENTS.map(lambda text: f"a{text}\n"),
    ),
)


def edits_of(text: str) -> tuple[PatchEdit, ...]:
    read = parse_edits(text)
    assert not isinstance(read, ParseFault), read
    return read


def fault_of(text: str) -> ParseFault:
    read = parse_edits(text)
    assert isinstance(read, ParseFault), read
    return read


def test_an_edit_is_read() -> None:
    assert edits_of("Here it is:\n\n" + SIMPLE) == (
        PatchEdit(kind="edit", file_path="src/a.py", search="x = 1", replacement="x = 2"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + SIMPLE,
        SIMPLE.replace("\n", "\r\n"),
        f"Sure!\n```xml\n{SIMPLE}```\nThat is all.",
        SIMPLE.replace("x = 1\n", "```python\nx = 1\n```\n").replace("x = 2\n", "```python\nx = 2\n```\n"),
        SIMPLE.replace("<search>", "```\n<search>").replace("</edit>", "```\n</edit>"),
        "<think>\n<edit file='b.py'>\n</think>\n" + SIMPLE,
        f"Perhaps\n{SIMPLE}No.\n</think>\n{SIMPLE}",
        f"<|channel|>analysis<|message|>Perhaps\n{SIMPLE}No.<|end|><|start|>assistant<|channel|>final<|message|>{SIMPLE}",
        f"{SIMPLE.rstrip()}<|im_end|>",
        SIMPLE.replace("<search>\nx = 1\n</search>", "<search>x = 1</search>"),
        SIMPLE.replace("<search>", "  <search>").replace("</search>", "  </search>"),
        SIMPLE.replace('"src/a.py"', "'src/a.py'"),
        SIMPLE.replace('"src/a.py"', '"./src/a.py"'),
        SIMPLE.replace('"src/a.py"', "src/a.py"),
        SIMPLE.replace("file=", "path="),
        SIMPLE.replace("file=", "file_path="),
        SIMPLE.replace("file=", "FILE=").replace("<edit", "<EDIT").replace("</edit", "</EDIT"),
        SIMPLE.replace("search>", "SEARCH>").replace("replacement>", "REPLACEMENT>"),
        SIMPLE.replace("replacement>", "replace>"),
        SIMPLE.replace("file=", "file: "),
        SIMPLE.replace("file=", "name="),
        SIMPLE.replace("file=", "src="),
        SIMPLE.replace("a.py", "a.py:12"),
        SIMPLE.replace("a.py", "a.py:12-14"),
        SIMPLE.replace('"', "&quot;"),
        SIMPLE.replace(' file="src/a.py">', ">\n<file>src/a.py</file>"),
        SIMPLE.replace(' file="src/a.py">', ">\n  <path> src/a.py </path>"),
        SIMPLE.replace('"src/a.py"', '"src/a.py",'),
        SIMPLE.replace('"src/a.py"', '"`src/a.py`"'),
        SIMPLE.replace("</edit>", "</ edit >"),
        SIMPLE.replace("<", "&lt;").replace(">", "&gt;"),
        SIMPLE.replace('"src/a.py"', "\u201csrc/a.py\u201d"),
        SIMPLE.replace('"src/a.py"', "\u201esrc/a.py\u201c"),
        SIMPLE.replace('"src/a.py"', "\u2018src/a.py'"),
        SIMPLE.replace('"src/a.py"', "`src/a.py`"),
        SIMPLE.replace('file="src/a.py"', "file = src/a.py "),
        SIMPLE.replace("</replacement>\n</edit>", "</replacement></edit>"),
        f"What I change:\n\n1. {SIMPLE}",
        SIMPLE.replace("<edit", "- <edit"),
        SIMPLE + "\nI used `<search>` as told, and </edit> in a sentence.",
    ],
)
def test_what_stands_around_an_edit_is_tolerated(text: str) -> None:
    (edit,) = edits_of(text)
    assert (edit.kind, edit.file_path, edit.search, edit.replacement) == (
        "edit",
        "src/a.py",
        "x = 1",
        "x = 2",
    )


@pytest.mark.parametrize(
    "symbol",
    [
        "A.f",
        "def A.f",
        "A.f()",
        "A.f:",
        "def A.f(self, x=(1, 2)):",
        "async def A.f(self) -> int:",
        "function A.f(a, b) {",
    ],
)
def test_a_definition_may_be_named_by_its_first_line(symbol: str) -> None:
    (edit,) = edits_of(f'<edit file="a.py" symbol="{symbol}">\n<replacement>\nx\n</replacement>\n</edit>\n')
    assert edit.symbol == "A.f"


def test_a_file_may_be_named_in_a_tag_of_its_own() -> None:
    first, second = edits_of(SIMPLE.replace(' file="src/a.py">', ">\n<path>b.py</path>") + SIMPLE)
    assert (first.file_path, second.file_path) == ("b.py", "src/a.py")


def test_every_form_is_read() -> None:
    text = (
        '<create file="new.py">\na = 1\n\nb = 2\n</create>\n<delete file="old.py"/>\n<delete file="older.py"></delete>\n'
        '<edit file="src/a.py" symbol="A.f"><replacement>def f(self): ...</replacement></edit>\n'
        '<create file="empty.py"/>\n<create file="blank.py">\n</create>\n'
    )
    assert [(edit.kind, edit.file_path, edit.symbol, edit.replacement) for edit in edits_of(text)] == [
        ("create", "new.py", "", "a = 1\n\nb = 2\n"),
        ("delete", "old.py", "", ""),
        ("delete", "older.py", "", ""),
        ("symbol", "src/a.py", "A.f", "def f(self): ..."),
        ("create", "empty.py", "", ""),
        ("create", "blank.py", "", ""),
    ]


@pytest.mark.parametrize(
    ("head", "symbol", "place"),
    [
        ('file="a.py" after="A.f"', "A.f", "after"),
        ("before='f' file='./a.py'", "f", "before"),
        ("file = \"a.py\" in = 'A'", "A", "in"),
        ('file="a.py", after="def A.f()"', "A.f", "after"),
    ],
)
def test_an_insert_names_its_neighbour_in_either_order_and_quote(head: str, symbol: str, place: str) -> None:
    text = f"Here:\n<insert {head}>\n```python\ndef g():\n\n    return 1\n```\n</insert>\n"
    (edit,) = edits_of(text)
    assert edit == PatchEdit(
        kind="insert",
        file_path="a.py",
        symbol=symbol,
        place=place,  # type: ignore[arg-type]
        replacement="def g():\n\n    return 1",
    )


@pytest.mark.parametrize(
    "content",
    [
        SIMPLE,
        "<insert file='b.py' in='A'>\nx\n</insert>",
        "</insert>",
        "<insert file='b.py' in='A'>",
        "<search>",
        "x = '</insert>'",
    ],
)
def test_tags_survive_in_inserted_text(content: str) -> None:
    text = f"<insert file='a.md' after='f'>\na\n{content}\nb\n</insert>\n{SIMPLE}"
    first, second = edits_of(text)
    assert first.replacement == f"a\n{content}\nb"
    assert second.replacement == "x = 2"


def test_several_pairs_in_one_edit_are_several_edits() -> None:
    text = SIMPLE.replace("</edit>", "<search>\ny\n</search>\n<replacement>\n</replacement>\n</edit>")
    assert [(edit.search, edit.replacement) for edit in edits_of(text)] == [
        ("x = 1", "x = 2"),
        ("y", ""),
    ]


def test_content_keeps_its_blank_lines_and_indentation() -> None:
    text = '<edit file="a">\n<search>\n\n    x  \n\n</search>\n<replacement>\n\ty\n</replacement>\n</edit>'
    (edit,) = edits_of(text)
    assert (edit.search, edit.replacement) == ("\n    x  \n", "\ty")


def test_a_whole_example_of_the_format_survives_as_content() -> None:
    inner = SIMPLE.rstrip("\n")
    edit = PatchEdit(kind="edit", file_path="doc.md", search=inner, replacement=inner.replace("x", "y"))
    assert edits_of(render_edits([edit, edit]))[1].replacement == edit.replacement


@pytest.mark.parametrize(
    "half", ["</search>", "</replacement>", "<search>", "<edit file='x'>\n<search>", "</edit>"]
)
def test_half_a_tag_survives_as_content_where_it_can_be_told_apart(half: str) -> None:
    (edit,) = edits_of(SIMPLE.replace("x = 1", f"a\n{half}\nb"))
    assert edit.search == f"a\n{half}\nb"


def test_tags_inside_a_line_are_code() -> None:
    (edit,) = edits_of(SIMPLE.replace("x = 2", 'x = "</replacement>"\ny = f"{a}</search>"'))
    assert edit.replacement == 'x = "</replacement>"\ny = f"{a}</search>"'


def test_fences_of_a_prose_file_are_text() -> None:
    text = (
        SIMPLE.replace("src/a.py", "README.md")
        .replace("x = 1", "```sh\npip\n```")
        .replace("x = 2", "```\nuv\n```")
    )
    (edit,) = edits_of(text)
    assert (edit.search, edit.replacement) == ("```sh\npip\n```", "```\nuv\n```")


@pytest.mark.parametrize(
    ("text", "kind", "part"),
    [
        ("", "empty", "no <edit>"),
        ("I would change x to 2.", "empty", "no <edit>"),
        ("```python\nx = 2\n```", "empty", "no <edit>"),
        (SIMPLE.split("</edit>", maxsplit=1)[0], "truncated", "line 1: <edit> is never closed"),
        (SIMPLE.split("</replacement>", maxsplit=1)[0], "truncated", "line 5: <replacement> is never closed"),
        (SIMPLE.split("</search>", maxsplit=1)[0], "truncated", "line 2: <search> is never closed"),
        ('<edit file="a.py">', "truncated", "line 1: <edit> is never closed"),
        ('<create file="a.py">\nx\n', "truncated", "line 1: <create> is never closed"),
        ('<insert file="a.py" in="A">\nx\n', "truncated", "line 1: <insert> is never closed"),
        (
            '<insert file="a.py" in="A">\nx\n' + SIMPLE,
            "truncated",
            "line 1: <insert> is never closed",
        ),
        ("<insert in='A'>\nx\n</insert>", "format", 'line 1: <insert> needs file="..."'),
        ("<insert file='a.py'>\nx\n</insert>", "format", "line 1: <insert> needs one of after="),
        (
            "<insert file='a.py' in='A' after='B'>\nx\n</insert>",
            "format",
            "line 1: <insert> needs one of after=",
        ),
        ("<insert file='a.py' in='A'/>", "format", "found <insert>"),
        (
            SIMPLE.replace("</edit>\n", "") + "<delete file='b'/>",
            "truncated",
            "line 1: <edit> is never closed",
        ),
        (SIMPLE.replace(' file="src/a.py"', ""), "format", 'line 1: <edit> needs file="..."'),
        (
            SIMPLE.replace("<search>\nx = 1\n</search>\n", ""),
            "format",
            "line 2: expected <search>, found <replacement>",
        ),
        (
            SIMPLE.replace("</search>\n", "</search>\nbecomes\n"),
            "format",
            "line 6: text stands before <replacement>",
        ),
        (SIMPLE + "</edit>", "format", "expected <edit>, <insert>, <create> or <delete>, found </edit>"),
        (SIMPLE + "<edit file='b.py'> is next", "truncated", "line 9: <edit> is never closed"),
        (SIMPLE.replace("x = 2", "x = '\0'"), "format", "line 6 holds a character"),
        (SIMPLE.replace("x = 2", "x = '\ud800'"), "format", "line 6 holds a character"),
    ],
)
def test_a_broken_answer_says_what_is_wrong(text: str, kind: str, part: str) -> None:
    fault = fault_of(text)
    assert fault.kind == kind
    assert part in fault.fault


def test_many_tags_are_read_in_time_linear_in_their_number() -> None:
    assert growth(fault_of, '<edit file="a">\n<search>\n') < QUADRATIC
    assert fault_of('<edit file="a">\n<search>\n' * 1_000).kind == "truncated"


@given(st.one_of(st.text(), st.lists(PIECES).map("\n".join), st.lists(PIECES).map("".join)))
@example("<search></search>")
def test_reading_never_raises(text: str) -> None:
    read = parse_edits(text)
    if isinstance(read, tuple):
        assert read
    else:
        assert read.fault


@given(st.lists(EDITS, min_size=1, max_size=4))
def test_what_is_rendered_reads_back(edits: list[PatchEdit]) -> None:
    assert render_edits(edits)


@given(st.lists(EDITS, min_size=1, max_size=3))
def test_line_ends_of_the_answer_do_not_matter(edits: list[PatchEdit]) -> None:
    text = render_edits(edits)
    assert parse_edits(text.replace("\n", "\r\n")) == parse_edits(text)


def test_what_the_format_cannot_carry_is_refused() -> None:
    edit = PatchEdit(kind="create", file_path="a.py", replacement="no final newline")
    with pytest.raises(ValueError, match="cannot carry"):
        render_edits([edit])


def test_a_line_of_many_closing_tags_is_read_in_no_time() -> None:
    started = time.process_time()
    parse_edits('<edit file="a.py">\n' + "</edit>" * 20_000 + "x\n")
    assert time.process_time() - started < 2


def test_an_edit_is_written_as_a_model_would_write_it() -> None:
    edit = PatchEdit(kind="edit", file_path="a.py", search="x = 1", replacement="x = 2")
    assert render_edit(edit) == (
        '<edit file="a.py">\n<search>\nx = 1\n</search>\n<replacement>\nx = 2\n</replacement>\n</edit>\n'
    )


def test_a_name_with_a_quote_is_put_into_the_other_quotes() -> None:
    assert render_edit(PatchEdit(kind="delete", file_path='a"b.py')) == "<delete file='a\"b.py'/>\n"


def test_a_text_that_looks_fenced_comes_back_with_its_fence() -> None:
    edit = PatchEdit(kind="symbol", file_path="a.py", symbol="f", replacement="```\nx\n```")
    read = parse_edits(render_edits([edit]))
    assert isinstance(read, tuple)
    assert read[0].replacement == edit.replacement


def test_no_edits_are_an_empty_text() -> None:
    assert render_edits(()) == ""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from testing.packages import shown_file
from testing.prompt_inputs import INPUTS

from clean_room_agent.app.prompts import PROMPTS
from clean_room_agent.artifacts.context import section_texts
from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.execute.edits.format import (
    MAX_BLOCKS,
    MAX_NAMES,
    TAGS,
    Editable,
    edit_grammar,
    find_tags,
    holds_tags,
    holds_unpaired_tags,
    is_prose,
    partners,
    unfence,
)
from clean_room_agent.execute.edits.parse import parse_edits, render_edit
from clean_room_agent.execute.implement import IMPLEMENT, IMPLEMENT_EXAMPLE

EDIT = '<edit file="a.py">\n<search>\nx\n</search>\n<replacement>\ny\n</replacement>\n</edit>\n'
FENCED = "```python\nx = 1\n```"
PIECES = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[a-z][a-z0-9-]*|\{[0-9,]+\}|[()|?*+]')
LITERAL_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
LINES = st.lists(
    st.one_of(
        st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=12),
        st.sampled_from(
            ["", "<", "</", "<searched>", "    return x", "<div>", "</div>", "</editor>", "``", "a < b"]
        ),
    ),
    min_size=1,
    max_size=5,
).map("\n".join)
NAMES = st.sampled_from(["f", "A.b", "operator<", "x[0]"])


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


DOCUMENTED = '"""Read it so:\n\n```python\nx = 1\n```\n"""\nx = 1'
HEREDOC = "cat <<EOF >Readme.\n```\nx\n```\nEOF."


@pytest.mark.parametrize(
    ("path", "texts", "bare"),
    [
        ("a.py", (FENCED, "~~~\ny\n~~~"), ("x = 1", "y")),
        ("a.py", (FENCED, ""), ("x = 1", "")),
        ("a.py", (FENCED, "y = 2"), (FENCED, "y = 2")),
        ("a.py", ('```python title="a.py"\nx = 1\n```',), ("x = 1",)),
        ("a.py", ("```src/a.py:3-4\nx = 1\n```", "~~~ {.python}\ny\n~~~"), ("x = 1", "y")),
        ("a.py", ("```\nx = 1",), ("x = 1",)),
        ("a.py", ("x = 1\n```",), ("x = 1",)),
        ("a.py", ("```\nx = 1", "```\nx = 2"), ("```\nx = 1", "```\nx = 2")),
        ("a.py", ("Here is the file:\n\n```python\nx = 1\n```",), ("x = 1",)),
        ("a.yaml", ("```yaml\nx: 1\n```\n\nIt sets **x**.\n",), ("x: 1",)),
        ("a.py", ("Here it is:\n```python\nx = 1\n",), ("x = 1",)),
        ("a.py", (DOCUMENTED,), (DOCUMENTED,)),
        ("a.sh", (HEREDOC,), (HEREDOC,)),
        ("a.py", ("<![CDATA[\nx = 1\n]]>",), ("x = 1",)),
        ("a.py", ("    x = 1", "<![CDATA[    x = 2]]>"), ("    x = 1", "    x = 2")),
        ("a.py", ("<![CDATA[    x = 1]]>", "<![CDATA[\n    x = 2\n    ]]>"), ("    x = 1", "    x = 2")),
        ("a.py", ("<![CDATA[\nx = 1\n]]>", "```\nx = 2\n```"), ("x = 1", "x = 2")),
        ("a.xml", ("<![CDATA[\nx = 1\n]]>",), ("<![CDATA[\nx = 1\n]]>",)),
        ("a.py", ("````\n```\n````",), ("```",)),
        ("a.py", ("```\n```python\nx = 1\n```\n```",), ("x = 1",)),
        ("b/a.py", ("# b/a.py\n```python\nx = 1\n```",), ("x = 1",)),
        ("b/a.py", ("**a.py**\n\n```python\nx = 1\n```",), ("x = 1",)),
        ("a.js", ("Sure! Here it is:\n```js\nlet a;\n```\nHope it helps",), ("let a;",)),
        ("a.py", ("from a import b\n```\nx = 1\n```",), ("from a import b\n```\nx = 1\n```",)),
        ("a.py", ("<code>\n```\nx = 1\n```\n</code>",), ("x = 1",)),
        ("a.html", ("<pre>\nx\n</pre>",), ("<pre>\nx\n</pre>",)),
        ("a.md", ("```markdown\n# A\n\n```sh\nls\n```\n```",), ("# A\n\n```sh\nls\n```",)),
        ("README.md", (FENCED,), (FENCED,)),
        ("requirements.txt", ("```text\nidna\n```",), ("idna",)),
        ("notes.txt", ("```\na\n```\nor\n```\nb\n```",), ("```\na\n```\nor\n```\nb\n```",)),
        ("a.py", ("  ```python\n  if x:\n      y = 1\n  ```",), ("if x:\n    y = 1",)),
        ("a.py", ("<![CDATA[\n```python\nx = 1\n```\n]]>",), ("x = 1",)),
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


def as_pattern(grammar: str) -> re.Pattern[str]:
    """A grammar without recursion as a regular expression, which is what it then is."""
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines())
    done: dict[str, str] = {}

    def expand(name: str) -> str:
        if name not in done:
            done[name] = f"(?:{''.join(map(translate, PIECES.findall(rules[name])))})"
        return done[name]

    def translate(piece: str) -> str:
        if piece[0] == '"':
            text = re.sub(r"\\.", lambda found: LITERAL_ESCAPES[found[0]], piece[1:-1])
            return f"(?:{re.escape(text)})"
        return f"(?:{expand(piece)})" if piece[0].isalpha() else piece

    return re.compile(expand("root"))


def any_name(path: str) -> Editable:
    return Editable(path=path)


ANY_FILE = as_pattern(edit_grammar(()))
"""Of any file."""


def accepts(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.fullmatch(text) is not None


def test_the_examples_of_the_prompt_are_accepted() -> None:
    assert accepts(ANY_FILE, IMPLEMENT_EXAMPLE)
    pen = Editable(path="quokka_zoo/pen.py", names=("QuokkaPen.open",))
    grammar = edit_grammar((pen,), ("quokka_zoo/food.py",), ("quokka_zoo/old_food.py",))
    assert accepts(as_pattern(grammar), IMPLEMENT_EXAMPLE)


def test_other_files_than_the_steps_are_not() -> None:
    assert not accepts(
        as_pattern(edit_grammar(map(any_name, ("quokka_zoo/pen.py", 'odd"name.py')))), IMPLEMENT_EXAMPLE
    )


@pytest.mark.parametrize(
    ("edited", "created", "deleted", "accepted"),
    [
        (("a.py",), (), (), {"edit", "insert"}),
        (("a.py",), ("a.py",), (), {"edit", "insert", "create"}),
        (("a.py",), (), ("a.py",), {"edit", "insert", "delete"}),
        ((), ("a.py",), (), {"create"}),
        (("b.py",), ("b.py",), ("b.py",), set()),
        (("b.py",), ("a.py",), (), {"create"}),
    ],
)
def test_what_the_plan_does_not_say_is_not_generated(
    edited: tuple[str, ...], created: tuple[str, ...], deleted: tuple[str, ...], accepted: set[str]
) -> None:
    pattern = as_pattern(edit_grammar(map(any_name, edited), created, deleted))
    answers = {
        "edit": '<edit file="a.py" symbol="f">\n<replacement>\n</replacement>\n</edit>',
        "insert": '<insert file="a.py" after="f">\nx\n</insert>',
        "create": '<create file="a.py">\n</create>',
        "delete": '<delete file="a.py"/>',
    }
    assert {form for form, answer in answers.items() if accepts(pattern, answer)} == accepted


def test_only_definitions_that_are_known_are_named() -> None:
    files = (
        Editable(path="a.py", names=("f", "A.b")),
        Editable(path="b.md", names=()),
        Editable(path="c.py", names=("g",) * MAX_NAMES),
        Editable(path="d.py", names=tuple(f"f{number}" for number in range(MAX_NAMES + 1))),
    )
    pattern = as_pattern(edit_grammar(files))

    def named(path: str, name: str) -> set[bool]:
        rewritten = f'<edit file="{path}" symbol="{name}">\n<replacement>\n</replacement>\n</edit>'
        inserted = f'<insert file="{path}" after="{name}">\nx\n</insert>'
        return {accepts(pattern, text) for text in (rewritten, inserted)}

    assert [named("a.py", name) for name in ("f", "A.b", "A", "g")] == [{True}, {True}, {False}, {False}]
    assert named("b.md", "f") == {False}
    assert [named("c.py", name) for name in ("g", "f")] == [{True}, {False}]
    assert named("d.py", "anything") == {True}
    searched = '<edit file="b.md">\n<search>\nx\n</search>\n<replacement>\n</replacement>\n</edit>'
    assert accepts(pattern, searched)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Here is the edit:\n" + IMPLEMENT_EXAMPLE,
        IMPLEMENT_EXAMPLE + "\nThat is all.",
        '<edit file="a.py">\n<search>\nx\n</search>\n</edit>',
        '<edit file="a.py">\n<search>\n</search>\n<replacement>\nx\n</replacement>\n</edit>',
        '<insert file="a.py">\nx\n</insert>',
        '<create file="a.py">\nx',
        "\n".join(['<delete file="a.py"/>'] * (MAX_BLOCKS + 1)),
    ],
)
def test_what_is_not_asked_for_is_not_accepted(text: str) -> None:
    assert not accepts(ANY_FILE, text)


@pytest.mark.parametrize("tag", TAGS)
def test_no_line_of_a_content_begins_with_a_tag(tag: str) -> None:
    for ending in (">", " >", '\t file="b.py">', "/>"):
        assert not accepts(ANY_FILE, f'<create file="a.py">\n<{tag}{ending}\n</create>')
    for line in (
        f"<{tag}",
        f"<{tag}s>",
        f" <{tag}>",
        f"x <{tag}>",
        f"<{tag[:-1]}",
        f"<{tag[:-1]}>",
        "<",
        "</",
        "<>",
    ):
        text = f'<create file="a.py">\n{line}\n</create>'
        if line.removeprefix("<").removesuffix(">") not in TAGS or not line.endswith(">"):
            assert accepts(ANY_FILE, text), line


@st.composite
def edits(draw: st.DrawFn) -> PatchEdit:
    kind = draw(st.sampled_from(["edit", "symbol", "insert", "create", "delete"]))
    old, new, name = draw(LINES.filter(bool)), draw(LINES.filter(bool)), draw(NAMES)
    match kind:
        case "edit":
            return PatchEdit(kind="edit", file_path="a.py", search=old, replacement=new)
        case "symbol":
            return PatchEdit(kind="symbol", file_path="a.py", symbol=name, replacement=new)
        case "insert":
            return PatchEdit(kind="insert", file_path="a.py", symbol=name, place="after", replacement=new)
        case "create":
            return PatchEdit(kind="create", file_path="a.py", replacement=f"{new}\n")
    return PatchEdit(kind="delete", file_path="a.py")


@given(st.lists(edits(), min_size=1, max_size=4))
def test_rendered_edits_are_accepted(given_edits: list[PatchEdit]) -> None:
    assert accepts(ANY_FILE, "".join(map(render_edit, given_edits)).rstrip("\n"))


@given(LINES)
def test_what_is_accepted_is_one_edit_with_the_very_lines(content: str) -> None:
    text = f'<edit file="a.py">\n<search>\n{content}\n</search>\n<replacement>\nx\n</replacement>\n</edit>'
    assert accepts(ANY_FILE, text)
    read = parse_edits(text)
    assert isinstance(read, tuple)
    assert len(read) == 1


def test_each_prompt_has_its_files_in_the_grammar() -> None:
    assert 'edited ::= "src/till.py"\n' in IMPLEMENT.shape(INPUTS["implement"]).grammar
    held = [prompt.name for prompt in PROMPTS if "<edit" in prompt.shape(INPUTS[prompt.name]).grammar]
    assert held == ["implement"]


def test_code_with_lines_of_the_edit_format_has_no_grammar() -> None:
    odd = section_texts((shown_file("format.md", "Write:\n</search>\n"),))
    assert IMPLEMENT.shape(replace(INPUTS["implement"], context=odd)).grammar == ""

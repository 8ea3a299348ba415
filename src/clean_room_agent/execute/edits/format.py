r"""The edit format: its tags and which of them belong together, the Markdown fences that a model puts around the code of an edit,
and the format as a grammar in GBNF, for servers that generate by one.

A tag is recognised by its position: it begins a line (several tags may share one), so that the same characters inside a
line of code are code. Nothing is unescaped, and nothing outside the tags is looked at.

It has the forms that the coder is asked for and nothing around them: at most `MAX_BLOCKS` blocks, of given files, each
with the forms that its role allows and the definitions that are known in it: what would be refused is not generated. A line
of a content is any that begins with no tag of the format, so that each content ends at the first closing tag and
what is generated always parses. (That is why there is no grammar for a step whose code has such lines itself.) The rule
of a line is a trie of the tags' names: at each character one alternative at most goes on, so a grammar's sampler keeps
one state however long a content grows.

    line ::= "\n" | [^<\n] rest | "<" line-1        what begins without "<", or with it ...
    line-1 ::= "\n" | [^/ceidrs\n] rest | "/" line-2 | "s" line-3 | ...        ... and goes on as no tag does
"""

import html
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from msgspec import Struct

from clean_room_agent.artifacts.edits import BLOCKS, CONTENTS

ODD_QUOTES = "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u2032\u2033`"
QUOTE = rf"[\"'{ODD_QUOTES}]"
VALUE = (
    r"\"(?P<double>[^\"\n]*)\"|'(?P<quoted>[^'\n]*)'"
    rf"|{QUOTE}(?P<odd>[^\"'{ODD_QUOTES}<>\n]*){QUOTE}|(?P<bare>[^\s\"'{ODD_QUOTES}<>={{}}/]+(?:/[^\s\"'{ODD_QUOTES}<>={{}}/]+)*)"
)
"""Of an attribute: in quotes of any kind, or without blanks in it and without quotes."""
_ANY_VALUE = re.sub(r"\?P<\w+>", "?:", VALUE)
ALIASES = {"replace": "replacement"}
"""What models write in the place of a tag's name."""


def _any_case(*names: str) -> str:
    """A pattern for the names in small or in capital letters: code has tags like <Search>."""
    return "|".join([*names, *map(str.upper, names)])


_CONTENT_NAMES = _any_case(*CONTENTS, *ALIASES)
_BLOCK_NAMES = _any_case(*BLOCKS)
TAG = re.compile(
    rf"<(?:/\s*(?P<closing>{_BLOCK_NAMES}|{_CONTENT_NAMES})\s*"
    rf"|(?P<content>{_CONTENT_NAMES})\s*"
    rf"|(?P<block>{_BLOCK_NAMES})(?P<attributes>(?:[\s,]+\w+\s*[=:]\s*(?:{_ANY_VALUE}))*)[\s,]*(?P<single>/?))>"
)
ATTRIBUTE = re.compile(rf"(?P<name>\w+)\s*[=:]\s*(?:{VALUE})")
ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d+|#[xX][\da-fA-F]+);")
CLOSING = re.compile(rf"</[ \t]*(?:{_any_case('create', 'insert', 'edit')}|{_CONTENT_NAMES})[ \t]*>[ \t]*")
FENCE_LINE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)\Z")
"""The first line of a block of code, whose info string may be anything (a language, a title, a path), or its last one."""
SENTENCE = re.compile(
    r"[-#>*_\s]*[^\W\d_][^={};]*[.:!?)*_`]\s*\Z"
    r"|(?!from |import |return |raise |del |assert )[^\W\d_]+(?:,? [^\W\d_]+){2,}\s*\Z"
)
IN_TEXT = re.compile("\"\"\"|'''|<<|/\\*")
"""What begins a text of several lines in code, where a fence may be part of it."""
CDATA = re.compile(r"\s*<!\[CDATA\[(?:[ \t]*\n)?(.*?)(?:\n[ \t]*)?\]\]>\s*\Z", re.DOTALL)
WRAPPED = re.compile(r"\s*<(code|content|pre|file)>[ \t]*\n(.*?)\n[ \t]*</\1>\s*\Z", re.DOTALL)
"""A tag of no format around the whole."""
DECORATION = " \t#/*`_:-<!>"
"""What may surround a file's name where a line is nothing but that."""
MARKDOWN = frozenset({"md", "markdown"})
MARKUP_SUFFIXES = frozenset({".xml", ".xsd", ".xsl", ".svg", ".html", ".htm", ".xhtml", ".vue", ".plist"})
"""Files in which CDATA is code."""
PROSE_SUFFIXES = frozenset({".md", ".markdown", ".mdx", ".rst", ".txt", ".qmd", ".rmd", ".adoc"})
"""Files in which a fence is text of its own: none is taken off there but around the whole."""
MAX_BLOCKS = 16
MAX_CHANGES = 8
"""Pairs of search and replacement in one block."""
NAME_CHARS = 120
PATH_CHARS = 240
TAGS = (*CONTENTS, *BLOCKS, *(f"/{name}" for name in (*CONTENTS, *BLOCKS)))
"""What no line of a content begins with, after its "<"."""
FORMS = f"""\
root ::= block ("\\n" block){{0,{MAX_BLOCKS - 1}}} "\\n"?
rest ::= [^\\n]* "\\n"
"""
REPLACEMENT = """\
replacement ::= "<replacement>\\n" line* "</replacement>\\n"
"""
EDIT = f"""\
edit ::= "<edit file=\\"" edited "\\">\\n" change{{1,{MAX_CHANGES}}} "</edit>"
change ::= "<search>\\n" line+ "</search>\\n" replacement
{REPLACEMENT}"""
NAMED = """\
rewrite ::= "<edit file=\\"" rewritten "\\">\\n" replacement "</edit>"
insert ::= "<insert file=\\"" inserted "\\">\\n" line+ "</insert>"
side ::= "after" | "before" | "in"
"""
CREATE = """\
create ::= "<create file=\\"" created "\\">\\n" line* "</create>"
"""
DELETE = """\
delete ::= "<delete file=\\"" deleted "\\"/>"
"""
ANY_PATH = f'[^"\\n]{{1,{PATH_CHARS}}}'
ANY_NAME = f'[^"\\n]{{1,{NAME_CHARS}}}'
MAX_NAMES = 300
"""Of one file."""


class Tag(Struct, frozen=True, kw_only=True):
    """One tag. `start` and `end` are character offsets; `line` is 1-based."""

    name: str
    """edit, insert, search, replacement, create or delete."""
    closes: bool
    single: bool = False
    """Written `<.../>`: opens and closes at once."""
    start: int
    end: int
    line: int
    attributes: tuple[tuple[str, str], ...] = ()
    tight: bool = False
    """Whether only blank lines and fence lines separate it from the tag before it."""

    def attribute(self, name: str) -> str:
        """The attribute's value, without blanks around it; "" when it is absent."""
        return dict(self.attributes).get(name, "").strip()

    @property
    def key(self) -> str:
        """What the grammar knows the tag by."""
        if self.closes:
            return f"/{self.name}"
        if self.single:
            return f"{self.name}/"
        return "edit symbol" if self.name == "edit" and self.attribute("symbol") else self.name


def find_tags(text: str, *, indented: bool, inline: bool) -> tuple[Tag, ...]:
    """The tags of `text` in order.

    A line contains tags if it consists only of tags, from its first column on. `indented` allows blanks before them;
    `inline` allows text after them on the line, and closing tags at the end of a line of text.
    """
    tags: list[Tag] = []
    offset = 0
    for number, line in enumerate(text.split("\n"), 1):
        for match in _line_tags(line, indented=indented, inline=inline):
            start = offset + match.start()
            gap = text[tags[-1].end if tags else 0 : start]
            tags.append(_tag_from_match(match, offset=offset, line=number, tight=_is_gap(gap)))
        offset += len(line) + 1
    return tuple(tags)


def partners(tags: tuple[Tag, ...]) -> tuple[int | None, ...]:
    """For each opening tag the index of its closing tag, where all tags between them pair off; None elsewhere."""
    found: list[int | None] = [None] * len(tags)
    for index in range(len(tags) - 1, -1, -1):
        if tags[index].closes or tags[index].single:
            continue
        inner = index + 1
        while inner < len(tags) and not tags[inner].closes:
            partner = inner if tags[inner].single else found[inner]
            inner = len(tags) if partner is None else partner + 1
        if inner < len(tags) and tags[inner].name == tags[index].name:
            found[index] = inner
    return tuple(found)


def holds_tags(text: str) -> bool:
    """Whether a line of `text` consists of tags."""
    return "<" in text and bool(find_tags(text, indented=True, inline=False))


def holds_unpaired_tags(text: str) -> bool:
    """Whether `text` contains a tag whose other half is missing."""
    if "<" not in text:
        return False
    tags = find_tags(text, indented=True, inline=False)
    paired = {index for pair in enumerate(partners(tags)) if pair[1] is not None for index in pair}
    return any(not tag.single and index not in paired for index, tag in enumerate(tags))


def _line_tags(line: str, *, indented: bool, inline: bool) -> list[re.Match[str]]:
    if "<" not in line:
        return []
    found: list[re.Match[str]] = []
    position = _skip_blanks(line, 0) if indented else 0
    while match := TAG.match(line, position):
        found.append(match)
        position = _skip_blanks(line, match.end())
    if position == len(line):
        return found
    if not inline:
        return []
    tail = _closing_tail(line, position)
    if tail < len(line):
        found.extend(TAG.finditer(line, tail))
    return found


def _closing_tail(line: str, position: int) -> int:
    """Where the closing tags begin that the line ends with, not before `position`; the line's end where it has none."""
    start = end = position
    for match in CLOSING.finditer(line, position):
        if match.start() != end:
            start = match.start()
        end = match.end()
    return start if end == len(line) else len(line)


def _skip_blanks(line: str, position: int) -> int:
    return len(line) - len(line[position:].lstrip(" \t"))


def _tag_from_match(match: re.Match[str], *, offset: int, line: int, tight: bool) -> Tag:
    attributes = tuple(
        (one["name"].lower(), one["double"] or one["quoted"] or one["odd"] or one["bare"] or "")
        for one in ATTRIBUTE.finditer(match["attributes"] or "")
    )
    name = (match["closing"] or match["content"] or match["block"]).lower()
    return Tag(
        name=ALIASES.get(name, name),
        closes=match["closing"] is not None,
        single=bool(match["single"]),
        start=offset + match.start(),
        end=offset + match.end(),
        line=line,
        attributes=attributes,
        tight=tight,
    )


def _is_gap(text: str) -> bool:
    return all(not line.strip() or FENCE_LINE.match(line) for line in text.split("\n"))


def unfence(path: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """`texts`, each without the fence or CDATA around it, if every one that is not empty has one; else unchanged.

    A fence that only the search text or only the replacement has is part of the code, but no CDATA is. A text that is alone (a file, a
    definition) may have sentences or its file's name around the fence, or only one half of it.
    """
    if not any(texts):
        return texts
    alone = len(texts) == 1
    if is_prose(path):
        return (_without_fence_of_document(path, texts[0]),) if alone else texts
    bare = tuple(_without_fence(text, path, alone=alone) if text else "" for text in texts)
    if any(text is None for text in bare):
        return tuple(_without_cdata(text, path) or text for text in texts)
    return tuple(text or "" for text in bare)


def unescaped(text: str, file_text: str) -> str:
    """The text with its HTML entities replaced, those of blanks by plain ones, unless the file has any itself."""

    def character(entity: re.Match[str]) -> str:
        return html.unescape(entity[0]).replace("\u00a0", " ")

    return text if ENTITY.search(file_text) else ENTITY.sub(character, text)


def is_prose(path: str) -> bool:
    """Whether the file is written for people, by its suffix."""
    return PurePosixPath(path).suffix.lower() in PROSE_SUFFIXES


def _without_fence_of_document(path: str, text: str) -> str:
    """A document without the fence around the whole of it, which only Markdown may have of its own."""
    lines = text.strip("\n").split("\n")
    opening, closing = FENCE_LINE.match(lines[0]), FENCE_LINE.match(lines[-1])
    if opening is None or closing is None or len(lines) < 2 or not _closes_fence(closing, opening):
        return text
    is_plain = path.endswith(".txt") and not any(map(FENCE_LINE.match, lines[1:-1]))
    return "\n".join(lines[1:-1]) if is_plain or opening["info"].strip().lower() in MARKDOWN else text


def _without_fence(text: str, path: str, *, alone: bool) -> str | None:
    if (bare := _without_cdata(text, path)) is not None:
        return _without_fence(bare, path, alone=alone) or bare
    if alone and not _is_markup(path) and (inside := WRAPPED.match(text)) is not None:
        return _without_fence(inside[2], path, alone=alone) or inside[2]
    lines = text.strip("\n").split("\n")
    if alone and FENCE_LINE.match(lines[0]):
        lead = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
        lines = [line.removeprefix(lead) for line in lines]
    marks = [(index, match) for index, line in enumerate(lines) if (match := FENCE_LINE.match(line))]
    if not marks:
        return None
    (first, opening), (last, closing) = marks[0], marks[-1]
    if (first, last) == (0, len(lines) - 1) and last and _closes_fence(closing, opening):
        inner = "\n".join(lines[1:-1])
        second = marks[1][1] if marks[1][0] == 1 else None
        twice = alone and len(lines) > 2 and second is not None and second["mark"] == opening["mark"]
        return (_without_fence(inner, path, alone=alone) if twice else None) or inner
    return _block_among_sentences(lines, marks, path) if alone else None


def _without_cdata(text: str, path: str) -> str | None:
    """What stands in CDATA if that is all of the text, and no code."""
    inside = None if _is_markup(path) else CDATA.match(text)
    return None if inside is None else inside[1]


def _is_markup(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in MARKUP_SUFFIXES


def _block_among_sentences(lines: list[str], marks: list[tuple[int, re.Match[str]]], path: str) -> str | None:
    """The block of code that the lines hold, with nothing around it but sentences and the file's name; one of its fences may be
    missing.
    """
    (first, opening), (last, closing) = marks[0], marks[-1]
    if len(marks) > 2 or (len(marks) == 2 and not _closes_fence(closing, opening)):
        return None
    if len(marks) == 1:
        if first == len(lines) - 1 and not opening["info"].strip():
            return "\n".join(lines[:-1])
        last = len(lines)
    around = [line for line in (*lines[:first], *lines[last + 1 :]) if line.strip()]
    names = {path, PurePosixPath(path).name}
    if not all(
        line.strip(DECORATION) in names or (SENTENCE.match(line) and not IN_TEXT.search(line))
        for line in around
    ):
        return None
    return "\n".join(lines[first + 1 : last])


def _closes_fence(closing: re.Match[str], opening: re.Match[str]) -> bool:
    return not closing["info"].strip() and closing["mark"].startswith(opening["mark"])


class Editable(Struct, frozen=True, kw_only=True):
    """A file that an answer may edit."""

    path: str
    names: tuple[str, ...] | None = None
    """Qualified names of the definitions that an edit may name in it; None for any."""


ANY_FILE = Editable(path="")


def edit_grammar(
    edited: Iterable[Editable] = (), created: Iterable[str] = (), deleted: Iterable[str] = ()
) -> str:
    """A grammar of answers that edit, create and delete only these files; without any, all files are allowed."""
    files = [one for one in edited if _can_be_quoted(one.path)]
    new = list(filter(_can_be_quoted, created))
    gone = list(filter(_can_be_quoted, deleted))
    if not (files or new or gone):
        files, new, gone = [ANY_FILE], [""], [""]
    named = [one for one in files if one.names is None or one.names]
    rules = {
        "edited": _grammar_choice(_path_rule(one.path) for one in files),
        "rewritten": _grammar_choice(
            f'{_path_rule(one.path)} "\\" symbol=\\"" {_names_rule(one)}' for one in named
        ),
        "inserted": _grammar_choice(
            f'{_path_rule(one.path)} "\\" " side "=\\"" {_names_rule(one)}' for one in named
        ),
        "created": _grammar_choice(map(_path_rule, new)),
        "deleted": _grammar_choice(map(_path_rule, gone)),
    }
    forms: tuple[tuple[str, tuple[str, ...], str], ...] = (
        ("edited", ("edit",), EDIT),
        ("rewritten", ("rewrite", "insert"), NAMED),
        ("created", ("create",), CREATE),
        ("deleted", ("delete",), DELETE),
    )
    blocks = _grammar_choice(block for rule, names, _ in forms if rules[rule] for block in names)
    texts = "".join(text for rule, _, text in forms if rules[rule])
    written = "".join(f"{name} ::= {way}\n" for name, way in rules.items() if way)
    return f"{FORMS}block ::= {blocks}\n{texts}{written}{''.join(_line_rules())}"


def _grammar_choice(ways: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(ways))


def _can_be_quoted(text: str) -> bool:
    return '"' not in text and text.isprintable()


def _path_rule(path: str) -> str:
    return _grammar_literal(path) if path else ANY_PATH


def _names_rule(file: Editable) -> str:
    known = [name for name in file.names or () if _can_be_quoted(name)]
    return f"({_grammar_choice(map(_grammar_literal, known))})" if 0 < len(known) <= MAX_NAMES else ANY_NAME


def _line_rules() -> Iterator[str]:
    """The rules of a line, one for each beginning of a tag."""
    begun = sorted({tag[:end] for tag in TAGS for end in range(len(tag))})
    names = {beginning: f"line-{number}" for number, beginning in enumerate(begun, 1)}
    yield f'line ::= "\\n" | [^<\\n] rest | "<" {names[""]}\n'
    for beginning, name in names.items():
        following = sorted(
            {tag[len(beginning)] for tag in TAGS if tag.startswith(beginning) and tag != beginning}
        )
        ways = ['"\\n"', f"[^{''.join(following)}\\n] rest"]
        for character in following:
            longer = beginning + character
            # Behind a whole name, what ends it would make it a tag.
            ways.append(
                f'"{character}" {names[longer]}'
                if longer in names
                else f'"{character}" ("\\n" | [^ \\t/>\\n] rest)'
            )
        yield f"{name} ::= {' | '.join(ways)}\n"


def _grammar_literal(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

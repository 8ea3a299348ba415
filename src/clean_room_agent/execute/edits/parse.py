"""Parses the edits in an answer, and writes edits as a model would have written them.

The text between tags is raw, so it may hold lines that look like tags. Where a content ends is decided by two rules:

1. at the closing tag that pairs with its opening tag (all tags between them pair off as well), if the rest of the
   answer is then well formed;
2. else at the first closing tag of its name after which the rest of the answer is well formed.

"Well formed" leaves no tag outside a block. So a whole example of the format survives inside a content, and a lone
half of one does too wherever it can be told apart. (A forgotten closing tag can look like the latter: `apply` accepts
unpaired tags only where the file or the context holds tags.) Both rules are tried with tags that stand alone on a line
from its first column on; if that fails, or overlooks a block, with indented tags and tags that share a line with text.
"""

import re
from collections.abc import Iterable
from enum import Enum, auto

from msgspec import Struct

from clean_room_agent.artifacts.edits import InsertPlace, PatchEdit
from clean_room_agent.execute.edits.format import ENTITY, Tag, find_tags, partners, unescaped, unfence
from clean_room_agent.llm.answers import ParseFault, answer_span

UNWRITABLE = re.compile("[\0\ud800-\udfff]")
BLOCKS = "<edit>, <insert>, <create> or <delete>"
FILE = ("file", "path", "filename", "file_path", "filepath", "name", "src")
"""The attribute that names the file, and what models write in its place."""
KEYWORD = re.compile(r"\A(?:async\s+)?(?:def|class|function|func)\s+|(?:\(.*\)(?:\s*->[^:]*)?)?\s*[:{]?\Z")
"""What models write around the name of a definition: the rest of its first line."""
LINES = re.compile(r":\d+(?:-\d+)?\Z")
"""What they write behind the name of a file."""
NAMED_BELOW = re.compile(
    rf"^([ \t]*)<(edit|insert|create|delete)>[ \t]*\n[ \t]*<({'|'.join(FILE)})>[ \t]*([^<>\n\"]+?)[ \t]*</\3>[ \t]*$",
    re.MULTILINE,
)
"""A block whose file stands in a tag of its own."""
BULLET = re.compile(
    r"^[ \t]*(?:[-*+]|\d{1,2}[.)])[ \t]+(?=<(?:edit|insert|create|delete)[\s,]+\w+[ \t]*=)", re.MULTILINE
)
"""What makes a block an item of a list."""
PLACES: tuple[InsertPlace, ...] = ("after", "before", "in")


class _Block(Struct, kw_only=True):
    tag: Tag
    contents: list[tuple[Tag, str]]
    """Opening tag and raw text of each search, replacement, insertion or creation in it."""
    end: int = 0
    """Character offset behind its closing tag."""


class _State(Enum):
    OUTSIDE = auto()
    EDIT = auto()
    SYMBOL_EDIT = auto()
    SEARCH = auto()
    SEARCHED = auto()
    REPLACEMENT = auto()
    REPLACED = auto()
    INSERT = auto()
    CREATE = auto()
    DELETE = auto()


# The last tag of each is what a fault says is expected.
_NEXT: dict[_State, dict[str, _State]] = {
    _State.OUTSIDE: {
        "edit": _State.EDIT,
        "edit symbol": _State.SYMBOL_EDIT,
        "insert": _State.INSERT,
        "create": _State.CREATE,
        "create/": _State.OUTSIDE,
        "delete": _State.DELETE,
        "delete/": _State.OUTSIDE,
    },
    _State.EDIT: {"search": _State.SEARCH},
    _State.SYMBOL_EDIT: {"search": _State.SEARCH, "replacement": _State.REPLACEMENT},
    _State.SEARCHED: {"replacement": _State.REPLACEMENT},
    _State.REPLACED: {"search": _State.SEARCH, "/edit": _State.OUTSIDE},
    _State.DELETE: {"/delete": _State.OUTSIDE},
}
_CLOSING: dict[_State, tuple[str, _State]] = {
    _State.SEARCH: ("/search", _State.SEARCHED),
    _State.REPLACEMENT: ("/replacement", _State.REPLACED),
    _State.INSERT: ("/insert", _State.OUTSIDE),
    _State.CREATE: ("/create", _State.OUTSIDE),
}
_OPENS = {closing.removeprefix("/"): state for state, (closing, _) in _CLOSING.items()}


def parse_edits(text: str) -> tuple[PatchEdit, ...] | ParseFault:
    """The answer's edits in order, at least one, or why there are none: "empty" if it has no block, "truncated" if it ended
    too early or a tag is not closed, else "format". Never raises.
    """
    body = _normalize_answer(text)
    bad = UNWRITABLE.search(body)
    if bad is not None:
        line = body.count("\n", 0, bad.start()) + 1
        return ParseFault(kind="format", fault=f"line {line} holds a character that no text file may hold")
    strict = find_tags(body, indented=False, inline=False)
    loose = find_tags(body, indented=True, inline=True)
    blocks = _parse_blocks(body, strict)
    if not blocks or _leaves_out(blocks, loose):
        blocks = _parse_blocks(body, loose)
    read = _edits_from_blocks(blocks) if blocks else None
    if isinstance(read, tuple):
        return read
    if NAMED_BELOW.search(body):
        return parse_edits(NAMED_BELOW.sub(r'\1<\2 file="\4">\n', body))
    if read is not None:
        return read
    if not loose and ENTITY.search(body):
        return parse_edits(unescaped(body, ""))
    broken = any(_opens_block(tag) for tag in strict) and not _parse_blocks(body, strict)
    return _diagnose_tags(strict if broken else loose)


def _normalize_answer(text: str) -> str:
    r"""`text` with `\n` line ends and blanked thinking; line numbers stay those of the answer."""
    body = text.removeprefix("\ufeff").replace("\r\n", "\n")
    start, end = answer_span(body)
    return "\n" * body.count("\n", 0, start) + BULLET.sub("", body[start:end])


def _parse_blocks(text: str, tags: tuple[Tag, ...]) -> tuple[_Block, ...]:
    """The blocks of a well-formed answer; none if no reading of these tags is well formed."""
    closers = _find_closers(tags)
    if closers is None:
        return ()
    blocks: list[_Block] = []
    state, index = _State.OUTSIDE, 0
    while index < len(tags):
        tag = tags[index]
        if _opens_block(tag):
            blocks.append(_Block(tag=tag, contents=[]))
        state = _NEXT[state][tag.key]
        if state in _CLOSING:
            index = closers[index]
            blocks[-1].contents.append((tag, text[tag.end : tags[index].start]))
            state = _CLOSING[state][1]
        blocks[-1].end = tags[index].end
        index += 1
    return tuple(blocks)


def _leaves_out(blocks: tuple[_Block, ...], loose: tuple[Tag, ...]) -> bool:
    """Whether a block begins outside `blocks`: an edit must never be overlooked."""
    spans = iter(blocks)
    block = next(spans, None)
    for tag in loose:
        while block is not None and block.end <= tag.start:
            block = next(spans, None)
        if _opens_block(tag) and (block is None or tag.start < block.tag.start):
            return True
    return False


def _find_closers(tags: tuple[Tag, ...]) -> dict[int, int] | None:
    """For each tag that may open a content, where that content ends; None if the whole is not well formed.

    Read from the end, so that "is the rest well formed?" is known at each tag: the work is linear in the tags.
    """
    pairs = partners(tags)
    closers: dict[int, int] = {}
    rests = [{state: state is _State.OUTSIDE for state in _NEXT}]
    """rests[n]: in which states the last n tags can be read."""
    first_end: dict[_State, int | None] = dict.fromkeys(_CLOSING)
    for index in range(len(tags) - 1, -1, -1):
        rest = rests[-1]
        opened = _OPENS.get(tags[index].key)
        if opened is not None:
            pair, after = pairs[index], _CLOSING[opened][1]
            end = pair if pair is not None and rests[len(tags) - pair - 1][after] else first_end[opened]
            if end is not None:
                closers[index] = end
        rests.append({state: _can_read(tags, index, state, rest, closers) for state in _NEXT})
        for state, (closing, after) in _CLOSING.items():
            if tags[index].key == closing and rest[after]:
                first_end[state] = index
    return closers if rests[-1][_State.OUTSIDE] else None


def _can_read(
    tags: tuple[Tag, ...], index: int, state: _State, rest: dict[_State, bool], closers: dict[int, int]
) -> bool:
    following = _NEXT[state].get(tags[index].key)
    if following is None or (state is not _State.OUTSIDE and not tags[index].tight):
        return False
    return index in closers if following in _CLOSING else rest[following]


def _opens_block(tag: Tag) -> bool:
    return not tag.closes and tag.name in {"edit", "insert", "create", "delete"}


def _edits_from_blocks(blocks: tuple[_Block, ...]) -> tuple[PatchEdit, ...] | ParseFault:
    edits: list[PatchEdit] = []
    for block in blocks:
        named = unescaped(next(filter(None, map(block.tag.attribute, FILE)), ""), "")
        path = LINES.sub("", named.strip("`\"'").removeprefix("./"))
        if not path:
            return ParseFault(
                kind="format", fault=f'line {block.tag.line}: <{block.tag.name}> needs file="..."'
            )
        if block.tag.name == "delete":
            edits.append(PatchEdit(kind="delete", file_path=path))
        elif block.tag.name == "create":
            text = _content_text(block.contents[0][1]) if block.contents else ""
            edits.append(PatchEdit(kind="create", file_path=path, replacement=_whole_file(path, text)))
        elif block.tag.name == "insert":
            insert = _insert_edit(block, path)
            if isinstance(insert, ParseFault):
                return insert
            edits.append(insert)
        else:
            edits.extend(_replacement_edits(block, path))
    return tuple(edits)


def _insert_edit(block: _Block, path: str) -> PatchEdit | ParseFault:
    named = [(place, block.tag.attribute(place)) for place in PLACES if block.tag.attribute(place)]
    if len(named) != 1:
        fault = f'line {block.tag.line}: <insert> needs one of after="...", before="..." and in="..."'
        return ParseFault(kind="format", fault=fault)
    ((place, symbol),) = named
    symbol = KEYWORD.sub("", symbol)
    (text,) = unfence(path, (_content_text(block.contents[0][1]),))
    return PatchEdit(kind="insert", file_path=path, symbol=symbol, place=place, replacement=text)


def _replacement_edits(block: _Block, path: str) -> list[PatchEdit]:
    if block.contents[0][0].name == "replacement":
        (text,) = unfence(path, (_content_text(block.contents[0][1]),))
        symbol = KEYWORD.sub("", block.tag.attribute("symbol"))
        return [PatchEdit(kind="symbol", file_path=path, symbol=symbol, replacement=text)]
    changes = []
    for index in range(0, len(block.contents), 2):
        (_, raw), (_, new) = block.contents[index : index + 2]
        search, replacement = unfence(path, (_content_text(raw), _content_text(new)))
        changes.append(PatchEdit(kind="edit", file_path=path, search=search, replacement=replacement))
    return changes


def _content_text(raw: str) -> str:
    """The text between two tags, without the line break (and blanks on the tag's own line) next to each."""
    head, line_break, body = raw.partition("\n")
    text = body if line_break and not head.strip(" \t") else raw
    body, line_break, tail = text.rpartition("\n")
    if not tail.strip(" \t"):
        return body if line_break else ""
    return text


def _whole_file(path: str, text: str) -> str:
    """The created file: the line break before the closing tag is its last one."""
    (text,) = unfence(path, (text,))
    return text.removeprefix("\ufeff") + "\n" if text else ""


def _diagnose_tags(tags: tuple[Tag, ...]) -> ParseFault:
    """What is wrong with an answer that is not well formed, read from its beginning."""
    if not tags:
        return ParseFault(kind="empty", fault=f"the answer holds no {BLOCKS} block")
    state, index, opening = _State.OUTSIDE, 0, tags[0]
    while index < len(tags):
        tag = tags[index]
        following = _NEXT[state].get(tag.key)
        if following is None:
            return _unexpected_tag_fault(state, tag, opening)
        if state is not _State.OUTSIDE and not tag.tight:
            fault = f"line {tag.line}: text stands before {_tag_text(tag)} where none may be"
            return ParseFault(kind="format", fault=fault)
        opening = tag if _opens_block(tag) else opening
        state = following
        if state in _CLOSING:
            closing, state = _CLOSING[state]
            end = next((other for other in range(index + 1, len(tags)) if tags[other].key == closing), None)
            if end is None:
                return _unclosed_tag_fault(tag)
            index = end
        index += 1
    return _unclosed_tag_fault(opening)


def _unexpected_tag_fault(state: _State, tag: Tag, opening: Tag) -> ParseFault:
    if state is _State.REPLACED or (state is not _State.OUTSIDE and _opens_block(tag)):
        return _unclosed_tag_fault(opening)
    expected = BLOCKS if state is _State.OUTSIDE else f"<{list(_NEXT[state])[-1]}>"
    fault = f"line {tag.line}: expected {expected}, found {_tag_text(tag)}"
    return ParseFault(kind="format", fault=fault)


def _unclosed_tag_fault(tag: Tag) -> ParseFault:
    return ParseFault(kind="truncated", fault=f"line {tag.line}: {_tag_text(tag)} is never closed")


def _tag_text(tag: Tag) -> str:
    return f"</{tag.name}>" if tag.closes else f"<{tag.name}>"


def render_edits(edits: Iterable[PatchEdit]) -> str:
    """An answer that parses to `edits`.

    Raises:
        ValueError: the format cannot represent them: half of a tag inside a text, a file without a final newline, ...
    """
    wanted = tuple(edits)
    text = "\n".join(render_edit(edit) for edit in wanted)
    read = parse_edits(text)
    if (read if isinstance(read, tuple) else ()) != wanted:  # no edits are no readable answer
        raise ValueError("the edit format cannot carry these edits")
    return text


def render_edit(edit: PatchEdit) -> str:
    """One edit as text, whether or not it would read back."""
    quote = "'" if '"' in edit.file_path + edit.symbol else '"'
    head = f"file={quote}{edit.file_path}{quote}"
    if edit.kind == "delete":
        return f"<delete {head}/>\n"
    if edit.kind == "create":
        (text,) = _fence_if_needed(edit.file_path, (edit.replacement.removesuffix("\n"),))
        return f"<create {head}>\n" + (f"{text}\n" if edit.replacement else "") + "</create>\n"
    if edit.kind == "symbol":
        (text,) = _fence_if_needed(edit.file_path, (edit.replacement,))
        head += f" symbol={quote}{edit.symbol}{quote}"
        return f"<edit {head}>\n<replacement>\n{_with_line_break(text)}</replacement>\n</edit>\n"
    if edit.kind == "insert":
        (text,) = _fence_if_needed(edit.file_path, (edit.replacement,))
        return (
            f"<insert {head} {edit.place}={quote}{edit.symbol}{quote}>\n{_with_line_break(text)}</insert>\n"
        )
    search, replacement = _fence_if_needed(edit.file_path, (edit.search, edit.replacement))
    return (
        f"<edit {head}>\n<search>\n{_with_line_break(search)}</search>\n"
        f"<replacement>\n{_with_line_break(replacement)}</replacement>\n</edit>\n"
    )


def _with_line_break(text: str) -> str:
    return f"{text}\n" if text else ""


def _fence_if_needed(path: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """`texts` such that reading them takes nothing off: those that look fenced get a longer fence around them."""
    if unfence(path, texts) == texts:
        return texts
    return tuple(f"{longer_fence(text)}\n{text}\n{longer_fence(text)}" if text else "" for text in texts)


def longer_fence(text: str) -> str:
    """A fence of code that is longer than any in the text."""
    return "`" * (max(map(len, re.findall(r"`{3,}", text)), default=2) + 1)

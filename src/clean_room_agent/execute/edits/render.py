"""Writing edits in the edit format, as a model would have written them."""

from collections.abc import Iterable
from dataclasses import replace

from clean_room_agent.artifacts.edits import PatchEdit
from clean_room_agent.execute.edits.fences import unfence
from clean_room_agent.execute.edits.parse import parse_edits


def render_edits(edits: Iterable[PatchEdit]) -> str:
    """An answer that reads back as `edits` (but for `answer_line`).

    Raises:
        ValueError: the format cannot carry them: half of a tag inside a text, a file without a final newline, ...
    """
    wanted = tuple(edits)
    text = "\n".join(render_edit(edit) for edit in wanted)
    read = parse_edits(text)
    found = tuple(replace(edit, answer_line=0) for edit in read) if isinstance(read, tuple) else ()
    if found != tuple(replace(edit, answer_line=0) for edit in wanted):
        raise ValueError("the edit format cannot carry these edits")
    return text


def render_edit(edit: PatchEdit) -> str:
    """One edit as text, whether or not it would read back."""
    quote = "'" if '"' in edit.file_path + edit.symbol else '"'
    head = f"file={quote}{edit.file_path}{quote}"
    if edit.kind == "delete":
        return f"<delete {head}/>\n"
    if edit.kind == "create":
        (text,) = _kept(edit.file_path, (edit.replacement.removesuffix("\n"),))
        return f"<create {head}>\n" + (f"{text}\n" if edit.replacement else "") + "</create>\n"
    if edit.kind == "symbol":
        (text,) = _kept(edit.file_path, (edit.replacement,))
        head += f" symbol={quote}{edit.symbol}{quote}"
        return f"<edit {head}>\n<replacement>\n{_block(text)}</replacement>\n</edit>\n"
    if edit.kind == "insert":
        (text,) = _kept(edit.file_path, (edit.replacement,))
        return f"<insert {head} {edit.place}={quote}{edit.symbol}{quote}>\n{_block(text)}</insert>\n"
    search, replacement = _kept(edit.file_path, (edit.search, edit.replacement))
    return (
        f"<edit {head}>\n<search>\n{_block(search)}</search>\n"
        f"<replacement>\n{_block(replacement)}</replacement>\n</edit>\n"
    )


def _block(text: str) -> str:
    return f"{text}\n" if text else ""


def _kept(path: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """`texts` such that reading them takes nothing off: those that look fenced get a longer fence around them."""
    if unfence(path, texts) == texts:
        return texts
    return tuple(f"{_fence(text)}\n{text}\n{_fence(text)}" if text else "" for text in texts)


def _fence(text: str) -> str:
    length = 3
    while "`" * length in text:
        length += 1
    return "`" * length

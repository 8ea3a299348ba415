"""How a command shows text: results on standard output and progress on standard error, without secrets unless `--exact` is
given, without control characters, and folded between words at the terminal's width.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from clean_room_agent.artifacts.names import counted
from clean_room_agent.json_values import change_texts, to_shown

if TYPE_CHECKING:
    from clean_room_agent.redaction import Redactor
    from clean_room_agent.workspace import Workspace

WORD = re.compile(r"\S+")
GAP = re.compile(r"(?<=\S)  +(?=\S)")
"""Between two columns of a line."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LEAST_COLUMN = 20
"""Columns that must be left for a column's text; otherwise it continues below the beginning of the line."""
STEP = 2
"""How far a continuation line is indented if it has no columns."""
HIDDEN = (
    r"\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Non-ASCII characters that control a terminal, change the direction of writing, or have no width or glyph; and lone
surrogates.
"""
ASCII_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f]"
CONTROL = rf"[\x00-\x08\x0b-\x1f{HIDDEN}]"
BYTES = range(0xDC80, 0xDD00)
"""Surrogates that stand for bytes from 0x80 on in names that are not UTF-8."""
IN_JSON = rf"[{HIDDEN}]"


def answer(text: str) -> None:
    """Write `text` to standard output, made safe."""
    _echo(fitted(safe(text), sys.stdout))


def aside(text: str) -> None:
    """Write `text` to standard error, made safe."""
    _echo(fitted(safe(text), sys.stderr), err=True)


def elsewhere(workspace: "Workspace") -> str:
    """The repository's path, quoted for a shell, if commands need it: the current folder is not in it; else ""."""
    import shlex

    from clean_room_agent.errors import CraError
    from clean_room_agent.git.repository import find_top

    try:
        here = find_top(Path.cwd())
    except (CraError, OSError):
        here = None
    return "" if here == workspace.repo else shlex.quote(str(workspace.repo))


def repo_flag(workspace: "Workspace") -> str:
    """` --repo PATH` for a printed command, if the current folder is not in the repository; else ""."""
    place = elsewhere(workspace)
    return f" --repo {place}" if place else ""


def hand_on(text: str) -> None:
    """Write `text` for another program, without its secrets; unchanged, except for what a terminal must not see."""
    display = current_display()
    _echo(display.safe(text) if sys.stdout.isatty() else display.redact(text), nl=False)


def answer_json(value: object, *, line: bool = False) -> None:
    """Write `value` as one JSON document without its secrets; structs become objects. `line`: as one line, at once, if it is one of
    several answers.
    """
    import json

    display = current_display()
    display.answered = True
    indent = 2 if sys.stdout.isatty() and not line else None
    document = json.dumps(display.redacted(to_shown(value)), indent=indent, ensure_ascii=False)
    _echo(visible_json(document))
    if line:
        sys.stdout.flush()


def safe(text: str) -> str:
    """`text` without its secrets, and with nothing that could control a terminal."""
    return current_display().safe(text)


def one_line(text: str) -> str:
    """Like `safe`, with line feeds escaped, too, since a file's name may contain them."""
    return safe(text).replace("\n", "\\x0a")


def _echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    import click  # by then it is loaded; completing does without it

    click.echo(text, err=err, nl=nl)


class ProgressBar:
    """A line on a terminal with the progress of long work; nothing elsewhere."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def show(self, done: int, total: int, note: str = "") -> None:
        """Show that `done` of `total` is done, followed by `note`."""
        if not sys.stderr.isatty() or not total:
            return
        text = f"{self._what} {done * 100 // total:3d} % ({done}/{total}){note}"
        if text != self._shown:
            sys.stderr.write("\r\033[2K" + text)
            sys.stderr.flush()
            self._shown = text

    def close(self) -> None:
        """Remove the line."""
        if self._shown:
            sys.stderr.write("\r\033[2K")
            sys.stderr.flush()
            self._shown = ""


def folded(text: str, width: int) -> str:
    """`text` in lines of at most `width` columns, as far as its words allow."""
    lines: list[str] = []
    for line in text.split("\n"):
        rows = tuple(rows_of(line, width))
        lines.extend(" " * indent + line[start:end] for indent, start, end in rows)
    return "\n".join(lines)


def rows_of(line: str, width: int) -> Iterator[tuple[int, int, int]]:
    """Where to break a line: (spaces before, start, end) of each row of it. Words are never broken.

    Example: ` cost 16 calls, 14,488 tokens, 58.5 s` in 30 columns continues below `16`.
    """
    if _text_width(line) <= width:
        yield 0, 0, len(line)
        return
    hanging = _hanging_indent(line, width)
    indent = start = end = 0
    for word in WORD.finditer(line):
        if end > start and indent + _text_width(line[start : word.end()]) > width:
            yield indent, start, end
            indent, start = hanging, word.start()
        end = word.end()
    yield indent, start, end


def fitted(text: str, stream: IO[str]) -> str:
    """`text` for `stream`: folded at a terminal, unchanged elsewhere."""
    if not stream.isatty():
        return text
    import shutil  # only a terminal needs it, and it loads the compression modules

    return folded(text, shutil.get_terminal_size().columns)


def _hanging_indent(line: str, width: int) -> int:
    """The column at which a continuation line starts."""
    before = len(line) - len(line.lstrip(" "))
    columns = [_text_width(line[: gap.end()]) for gap in GAP.finditer(line, before)]
    fitting = [column for column in columns if width - column >= LEAST_COLUMN]
    hanging = fitting[0] if fitting else before + STEP
    return hanging if width - hanging >= LEAST_COLUMN // 2 else 0


def _text_width(text: str) -> int:
    if "\x1b" in text:
        text = COLOUR.sub("", text)
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # rarely needed, and rich is slow to load

    return cell_len(text)


class Display:
    """How one command shows text. It is passed along in click's context, which both options and output can reach."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.repo: Path | None = None
        """Whose key is used; None: a key of this process alone."""
        self.exact = False
        self.offers_exact = False
        """Whether the command has the flag."""
        self.answered = False
        """Whether standard output has an answer in JSON."""

    def redact(self, text: str) -> str:
        """The text without its secrets."""
        return text if self.exact else self._redactor.redact(text)

    def safe(self, text: str) -> str:
        """The text without its secrets, and with nothing that could control a terminal."""
        return visible(self.redact(text))

    def redacted(self, value: Any) -> Any:
        """A value without its secrets."""
        return value if self.exact else change_texts(value, self._redactor.redact)

    def note(self) -> str:
        """A note that output was redacted; "" if it was not."""
        if "_redactor" not in self.__dict__ or not self._redactor.count:
            return ""
        count = self._redactor.count
        subject = counted(count, "secret was", "secrets were")
        told = f"{subject} replaced by [secret:...] in what was printed, so it is not exact"
        return f"{told}; --exact prints all" if self.offers_exact else told

    @cached_property
    def _redactor(self) -> "Redactor":
        from clean_room_agent.redaction import Redactor, secret_values

        return Redactor(self._redaction_key, secret_values(self._environment))

    def _redaction_key(self) -> bytes:
        from clean_room_agent.errors import CraError
        from clean_room_agent.git.repository import find_top
        from clean_room_agent.workspace import KEY_BYTES, Workspace, is_ours

        try:
            workspace = None if self.repo is None else Workspace(repo=find_top(self.repo.absolute()))
            if workspace is not None and is_ours(workspace.folder):
                return workspace.secret_key()
        except (CraError, OSError):
            pass  # where nothing can be kept, equal secrets are equal within this command
        return os.urandom(KEY_BYTES)


@cache
def _default_display() -> Display:
    return Display({})


def current_display() -> Display:
    """The display of the running command; outside of a command, one without a repository."""
    import click  # by then it is loaded; completing does without it

    context = click.get_current_context(silent=True)
    return (context and context.find_object(Display)) or _default_display()


def visible(text: str) -> str:
    """`text` with every control character but tab and line feed written as an escape, so that it cannot control a
    terminal; likewise what a terminal cannot show: the bytes of a name that is not UTF-8.
    """
    control = ASCII_CONTROL if text.isascii() else CONTROL  # the latter takes a millisecond to compile
    return re.sub(control, lambda match: _escape_character(ord(match.group())), text.replace("\r\n", "\n"))


def visible_json(document: str) -> str:
    r"""A JSON document with characters that JSON allows but a terminal must not see written as `\u....`."""
    return re.sub(IN_JSON, lambda match: _escape_json(match.group()), document)


def _escape_character(number: int) -> str:
    if number in BYTES:
        number &= 0xFF
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def _escape_json(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

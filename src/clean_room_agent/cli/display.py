"""How a command shows text: without secrets unless `--exact` is given, and without terminal control characters."""

import os
import re
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clean_room_agent.report.values import change_texts

if TYPE_CHECKING:
    from clean_room_agent.redaction import Redactor

HIDDEN = (
    r"\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Beyond ASCII: what steers a terminal, turns the direction of writing, has no width or no looks; halves of characters."""
CONTROL = re.compile(rf"[\x00-\x08\x0b-\x1f{HIDDEN}]")
BYTES = range(0xDC80, 0xDD00)
"""Stand for the bytes from 0x80 on, in names that are not UTF-8."""
IN_JSON = re.compile(rf"[{HIDDEN}]")


class Display:
    """How one command shows text. It travels with click's context, as the place where options and output meet."""

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
        """The text without its secrets, and with nothing that could steer a terminal."""
        return visible(self.redact(text))

    def redacted(self, value: Any) -> Any:
        """A view without its secrets."""
        return value if self.exact else change_texts(value, self._redactor.redact)

    def note(self) -> str:
        """A note that output was redacted; "" if it was not."""
        if "_redactor" not in self.__dict__ or not self._redactor.count:
            return ""
        count = self._redactor.count
        subject = "1 secret was" if count == 1 else f"{count} secrets were"
        told = f"{subject} replaced by [secret:...] in what was printed, so it is not exact"
        return f"{told}; --exact prints all" if self.offers_exact else told

    @cached_property
    def _redactor(self) -> "Redactor":
        from clean_room_agent.redaction import Redactor, secret_values

        return Redactor(self._key, secret_values(self._environment))

    def _key(self) -> bytes:
        from clean_room_agent.errors import CraError
        from clean_room_agent.git.repository import find_top
        from clean_room_agent.trust import is_ours
        from clean_room_agent.workspace import KEY_BYTES, Workspace

        try:
            workspace = None if self.repo is None else Workspace(repo=find_top(self.repo.absolute()))
            if workspace is not None and is_ours(workspace.folder):
                return workspace.secret_key()
        except (CraError, OSError):
            pass  # where nothing can be kept, equal secrets are equal within this command
        return os.urandom(KEY_BYTES)


@cache
def _alone() -> Display:
    return Display({})


def current_display() -> Display:
    """The display of the command that runs; outside of any, one that knows no repository."""
    import click  # by then it is loaded; completing does without it

    context = click.get_current_context(silent=True)
    return (context and context.find_object(Display)) or _alone()


def visible(text: str) -> str:
    """`text` with every control character but tab and line feed written as an escape, so that it cannot steer a terminal;
    so is what no terminal can write: the bytes of a name that is not UTF-8.
    """
    return CONTROL.sub(lambda match: _escape(ord(match.group())), text.replace("\r\n", "\n"))


def visible_json(document: str) -> str:
    r"""A JSON document with what JSON itself lets stand, and a terminal does not, written as `\u....`."""
    return IN_JSON.sub(lambda match: _escape_json(match.group()), document)


def _escape(number: int) -> str:
    if number in BYTES:
        number &= 0xFF
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def _escape_json(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

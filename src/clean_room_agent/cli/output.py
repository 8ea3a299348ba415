"""Answers go to standard output, progress to standard error; terminal escapes in foreign text are made visible."""

import dataclasses
import json
import re
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def console() -> "Console":
    """For answers that a person reads."""
    from rich.console import Console

    return Console(file=sys.stdout, soft_wrap=True)


def progress_console() -> "Console":
    """For progress: standard error."""
    from rich.console import Console

    return Console(file=sys.stderr, soft_wrap=True)


def answer(text: str) -> None:
    """Write `text` to standard output, its control characters neutralised."""
    click.echo(visible(text))


def answer_json(value: object) -> None:
    """Write `value` as one JSON document; dataclasses become objects."""
    click.echo(json.dumps(plain(value), indent=2 if sys.stdout.isatty() else None, ensure_ascii=False))


def visible(text: str) -> str:
    """`text` with every control character but tab and line feed written as an escape, so that it cannot steer a terminal."""
    return CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """`visible` text, line feeds included: a file's name may hold some."""
    return visible(text).replace("\n", "\\x0a")


def plain(value: object) -> Any:
    """`value` as what JSON can say."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


class ProgressBar:
    """A line on a terminal that says how far a long piece of work is; nothing elsewhere."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown = ""

    def show(self, done: int, total: int, note: str = "") -> None:
        """`done` of `total` is done; `note` stands behind it."""
        if not sys.stderr.isatty() or not total:
            return
        text = f"{self._what} {done * 100 // total:3d} % ({done}/{total}){note}"
        if text != self._shown:
            sys.stderr.write("\r\033[2K" + text)
            sys.stderr.flush()
            self._shown = text

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write("\r\033[2K")
            sys.stderr.flush()
            self._shown = ""

"""The words of a shell command."""

import re
import shlex
from collections.abc import Iterator

from msgspec import Struct

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
SEPARATORS = frozenset({"{", "}", "!", "if", "then", "elif", "else", "while", "until", "do"})
"""Words after which a simple command begins."""
SHELL_WORD = re.compile(
    r"(?P<comment>#[^\n]*)|(?P<operator>\n|[;&|()]+)|(?P<space>[^\S\n]+)"
    r"|(?P<word>(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^\s;&|()'\"\\])+)|(?P<unclosed>.)",
    re.DOTALL,
)


class ShellWord(Struct, frozen=True, kw_only=True):
    """A word of a shell command, or an operator between simple commands."""

    written: str
    """As it is written, with its quotes."""
    text: str
    """What it says; as written for an operator."""
    separates: bool
    """Whether a new simple command begins behind it."""
    end: int


def shell_words(command: str) -> tuple[ShellWord, ...]:
    """The words of a shell command, in order, without comments. A quote that is never closed separates two words, so that
    nothing is lost in texts that the shell reads differently, such as those of `<<`.
    """
    found = []
    for match in SHELL_WORD.finditer(command.replace("\\\n", "  ")):
        written, kind = match[0], match.lastgroup
        if kind in {"operator", "word"}:
            text = "".join(shlex.split(written)) if kind == "word" else written
            separates = kind == "operator" or written in SEPARATORS
            found.append(ShellWord(written=written, text=text, separates=separates, end=match.end()))
    return tuple(found)


def simple_commands(command: str) -> Iterator[tuple[list[ShellWord], bool]]:
    """The words of each simple command of a shell command, and whether it is piped into another."""
    words: list[ShellWord] = []
    for word in shell_words(f"{command}\n"):
        if not word.separates:
            words.append(word)
        elif words:
            yield words, word.written == "|"
            words = []

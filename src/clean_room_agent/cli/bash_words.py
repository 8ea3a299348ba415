"""How bash reads the words of a line that is being typed, and how a word is written so that bash reads it back exactly.

Bash inserts what a completion function offers as it is, into whatever quote is open; so this program escapes it. (Its own
escaping, `compopt -o filenames`, is not in bash 3.2, expands a leading `~`, and adds a slash where a folder has that name.)
"""

import re
from collections.abc import Sequence

from msgspec import Struct

PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./=-]*")
"""Words that mean themselves wherever they stand: within any quote and without one."""
LEAVES_QUOTE = {"": "$`\\'\"!", '"': '$`\\"!', "'": "`\\'", "$'": ""}
"""The characters that are written as an escape in a quote of their own, by the quote that is open.

A backslash would do for most, but not in a line that is itself between backticks, where bash reads it a second time.
"""
SUBSTITUTION = {"": re.compile(r"`|\$[({\[]|[<>]\("), '"': re.compile(r"`|\$[({\[]")}
"""What opens a substitution, in which quotes are counted anew, by the quote that is open."""


class Typed(Struct, frozen=True, kw_only=True):
    """A line up to the cursor."""

    words: tuple[str, ...]
    """After the program's name, without their quotes; the last is under the cursor."""
    kept: str
    """What bash keeps of the last word: it replaces what follows."""
    quote: str
    """The quote that is open where bash inserts: `'`, `"`, `$'`, or none."""
    followed: bool
    """Whether `quote` is certain: if not, only words can be offered that mean themselves in any."""


def read_line(line: str, breaks: str) -> Typed:
    r"""Read a line as the shell does; `breaks` is bash's COMP_WORDBREAKS.

    >>> read_line("cra show 'till/mon", " '=")
    Typed(words=('show', 'till/mon'), kept='', quote="'", followed=True)
    >>> read_line("cra solve --stages=sc\\o", " '=")
    Typed(words=('solve', '--stages=sco'), kept='--stages=', quote='', followed=True)
    """
    words: list[str] = []
    word: str | None = None
    quote = kept = ""
    followed = True
    at = 0
    while at < len(line):
        found = line[at]
        width = 1
        if quote in SUBSTITUTION and SUBSTITUTION[quote].match(line, at):
            followed = False
        if not quote and found in " \t\n":
            words += [] if word is None else [word]
            word, kept = None, ""
        elif not quote and (
            opens := next((each for each in ("$'", '$"', "'", '"') if line.startswith(each, at)), "")
        ):
            word = word or ""
            width, quote = len(opens), "$'" if opens == "$'" else opens[-1]
            before_quote, kept = kept, word
        elif quote and found == quote[-1]:
            # What is quoted to its end does not begin a new word for bash.
            quote, kept = "", before_quote
        elif found == "\\" and quote != "'":
            escaped = line[at + 1 : at + 2]
            taken, width = _unescape(line, at, quote)
            # Readline knows no escapes within apostrophes, so it may take the quote to end here.
            followed = followed and escaped != "" and not (quote == "$'" and escaped == "'")
            word = (word or "") + taken
        else:
            word = (word or "") + found
            if not quote and found in breaks:
                kept = word.removesuffix("@")  # `@` begins a word, and belongs to it
        at += width
    words.append(word or "")
    return Typed(words=tuple(words[1:]) or ("",), kept=kept, quote=quote, followed=followed)


def _unescape(line: str, at: int, quote: str) -> tuple[str, int]:
    """What the escape at `at` stands for, and its length in the line."""
    escaped = line[at + 1 : at + 2]
    if quote == "$'":
        by_number = re.compile(r"\\x([0-9A-Fa-f]{1,2})").match(line, at)
        return (chr(int(by_number[1], 16)), len(by_number[0])) if by_number else (escaped, 2)
    if quote == '"' and escaped not in '$`"\\':
        return "\\" + escaped, 2
    return escaped, 2


def write_word(word: str, quote: str) -> str:
    r"""`word` as it is inserted where `quote` is open, or none; bash closes the quote.

    >>> print(write_word("a b$(c)", ""), write_word("a b$(c)", '"'), write_word("a'b", "$'"))
    a\ b$'\x24'\(c\) a b"$'\x24'"(c) a\x27b
    """
    if quote == "$'":
        return re.sub(r"[\\'`]", lambda found: f"\\x{ord(found[0]):02x}", word)
    written = "".join(_write(character, quote) for character in word)
    # Readline takes a quote at the end for the one that closes.
    return written + quote if quote and written.endswith(quote) else written


def _write(character: str, quote: str) -> str:
    if character in LEAVES_QUOTE[quote]:
        return f"{quote}$'\\x{ord(character):02x}'{quote}"
    return character if quote or PLAIN.fullmatch(character) else f"\\{character}"


def write_words(names: Sequence[str], typed: Typed) -> tuple[list[str], bool]:
    """The names as they are inserted for the rest of the word under the cursor; and whether they are only a beginning.

    Bash inserts what all have in common, which could end in the middle of an escape: so what the names themselves have in
    common comes first, by itself; and if all of that is typed, a word without any letter keeps bash from inserting.
    """
    plain = [name for name in names if PLAIN.fullmatch(name)]
    offered = list(names) if typed.followed else plain
    start = len(typed.kept)
    if len(offered) > 1 and len(plain) < len(names):
        first, last = min(offered), max(offered)
        differs = (at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1])
        common = first[: next(differs, len(first))]
        if common != typed.words[-1]:
            return [write_word(common[start:], typed.quote)], True
        return ["", *(write_word(name[start:], typed.quote) for name in offered)], False
    return [write_word(name[start:], typed.quote) for name in offered], False

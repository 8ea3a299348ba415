"""Scans Python text for names with one regular expression that skips strings and comments.

The text is the file decoded as latin-1, so that its indexes are byte offsets.
"""

import builtins
import keyword
import re
from collections.abc import Sequence

LETTER = r"A-Za-z_\x80-\xff"
WORD = rf"[{LETTER}][{LETTER}0-9]*+"
TRIPLE = r'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"""' + r"|'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+'''"
SINGLE = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"' + r"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'"
STRING = rf"(?:{TRIPLE}|{SINGLE})"
SKIPPED = (
    rf"[^{LETTER}0-9\"'#.@\0]++"
    rf"|(?=[\"']){STRING}(?:\.{WORD})*+"
    rf"|[rbu][rbu]?+(?=[\"']){STRING}(?:\.{WORD})*+"
    r"|[#\"'][^\n]*+"
    rf"|def[ \t]++{WORD}|class[ \t]++{WORD}"
    r"|global[ \t]++[^\n]*+|nonlocal[ \t]++[^\n]*+"
    r"|from[ \t]++[.\w]++[ \t]++import[ \t]++(?:\([^)]*+\)|(?:[^\\\n]|\\\n)*+)"
    r"|import[ \t]++(?:\([^)]*+\)|(?:[^\\\n]|\\\n)*+)"
    r"|[0-9][\w.]*+"
    rf"|[.@](?![{LETTER}])"
)
NAMES = re.compile(
    rf"(?:{SKIPPED})*+("
    rf"[fFtT][rR]?+{STRING}|[rR][fFtT]{STRING}"
    rf"|super\([^()]*+\)(?:\.{WORD})++\(?+"
    rf"|[.@]?+{WORD}(?:\.{WORD})*+(?:\(|[ \t]*+=(?!=))?+|\0|)",
    re.DOTALL,
)
"""Its one group is a dotted chain, with `@` before it or `(` after it where the source has it, or a whole f-string;
it is empty at the end. A chain that begins with a dot goes on from something else than a name; one that
ends with `=` is assigned to or is a keyword argument's name. What follows a quote that nothing closes is skipped to
the end of its line, as is a comment.

What is skipped is one loop, and its branches begin with what they can be told by, for speed.
"""
BETWEEN = "\n\0\n"
"""Stands between texts that are scanned together."""
INTERPOLATED = re.compile(r"\{\{|\{([^{}!]*(?:\{[^{}]*\}[^{}!]*)*)")
KEYWORDS = frozenset(keyword.kwlist)
BUILTINS = frozenset(dir(builtins)) | {"__file__", "__path__"}
COMMON = frozenset(
    name
    for kind in (str, bytes, list, dict, set, tuple, int, float, object, type, BaseException, property)
    for name in dir(kind)
)
"""Attributes of built-in types: a unique definition of such a name says nothing of what a use means."""


def mentions(text: str) -> set[str]:
    """The distinct matches of `NAMES` in the text, looking into the braces of f-strings."""
    return _with_formatted(set(NAMES.findall(text)))


def mentions_of(texts: Sequence[str]) -> list[set[str]]:
    """`mentions` for each of the texts, in one pass; the sets may contain ""."""
    found = NAMES.findall(BETWEEN.join(texts))
    if found.count("\0") != len(texts) - 1:
        # Some text has an unclosed quote, which swallowed a boundary.
        return [mentions(text) for text in texts]
    parts, start = [], 0
    for _ in range(len(texts) - 1):
        end = found.index("\0", start)
        parts.append(set(found[start:end]))
        start = end + 1
    parts.append(set(found[start:]))
    is_formatted = any(one and one[-1] in "\"'" for one in found)
    return [_with_formatted(part) for part in parts] if is_formatted else parts


def _with_formatted(found: set[str]) -> set[str]:
    for formatted in [one for one in found if one and one[-1] in "\"'"]:
        found.discard(formatted)
        for inner in INTERPOLATED.findall(formatted):
            if inner:
                found |= mentions(inner)
    found.discard("")
    return found

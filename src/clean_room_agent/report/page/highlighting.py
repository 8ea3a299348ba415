"""Syntax colours for the lines of a diff, from Pygments on each version of the file."""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from clean_room_agent.unified_diff import DiffLine, FileDiff

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

LEXERS = {
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cc", "cpp", "hpp"), "cpp"),
    **dict.fromkeys(("cjs", "js", "jsx", "mjs"), "javascript"),
    **dict.fromkeys(("cts", "mts", "ts", "tsx"), "typescript"),
    **dict.fromkeys(("bash", "sh"), "bash"),
    **dict.fromkeys(("cfg", "ini"), "ini"),
    **dict.fromkeys(("py", "pyi"), "python"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **{name: name for name in ("css", "go", "html", "java", "json", "sql", "toml")},
    "kt": "kotlin",
    "rb": "ruby",
    "rs": "rust",
}
"""Pygments' names by suffix. A table, since Pygments' search by file name also imports plug-ins of other packages."""
CLASSES = {
    "Comment": "tc",
    "Keyword": "tk",
    "Literal.String": "ts",
    "Literal.Number": "tn",
    "Name.Function": "tf",
    "Name.Class": "tf",
    "Name.Decorator": "tf",
    "Name.Tag": "tf",
    "Name.Builtin": "tb",
    "Operator.Word": "tk",
}
"""The style's classes by kind of token."""
MOST_CHARS = 100_000
LONGEST_LINE = 2_000
"""Longer versions get no colours, since lexers run regular expressions over untrusted text."""


def coloured_lines(change: FileDiff) -> tuple[Markup, ...]:
    """The text of each line of the change as HTML, in order."""
    alias = LEXERS.get(change.path.rpartition(".")[2].lower(), "")
    plain = [escape(line.text) for line in change.lines]
    if not alias:
        return tuple(plain)
    for version in ("deleted", "added"):
        places = [at for at, line in enumerate(change.lines) if line.kind in {"same", version}]
        found = _coloured([change.lines[at] for at in places], alias)
        for at, text in zip(places, found, strict=True):
            plain[at] = text
    return tuple(plain)


def _coloured(lines: Sequence[DiffLine], alias: str) -> list[Markup]:
    texts = [line.text for line in lines]
    if sum(map(len, texts)) > MOST_CHARS or any(len(text) > LONGEST_LINE for text in texts):
        return [escape(text) for text in texts]
    rows: list[list[Markup]] = [[]]
    for kind, piece in _lexer(alias).get_tokens("\n".join(texts)):
        name = _class_of(kind)
        for number, text in enumerate(piece.split("\n")):
            if number:
                rows.append([])
            if text:
                rows[-1].append(
                    Markup('<span class="{}">{}</span>').format(name, text) if name else escape(text)
                )
    found = [Markup("").join(row) for row in rows[: len(texts)]]
    return found if len(found) == len(texts) else [escape(text) for text in texts]


@functools.cache
def _lexer(alias: str) -> "Lexer":
    from pygments.lexers import get_lexer_by_name

    return get_lexer_by_name(alias, stripnl=False, ensurenl=False)


@functools.cache
def _class_of(kind: "_TokenType") -> str:
    """The class of the nearest parent kind that has one."""
    for each in reversed(kind.split()):
        name = CLASSES.get(str(each).removeprefix("Token."))
        if name is not None:
            return name
    return ""

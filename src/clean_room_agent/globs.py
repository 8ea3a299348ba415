r"""Glob patterns for paths: `*` and `?` stay within a name, `**` crosses folders.

A pattern becomes one regular expression without exponential backtracking, because patterns also come from the
repository. The part before the next `**` is matched as early as possible and then fixed (an atomic group): an earlier
end leaves more of the path to what follows, so no other match could do better. The same holds for each `*` and the text
up to the next one. `src/**/test_*.py` becomes `(?>src/)(?:.+?/)??test_[^/]*\.py`, and `a*b*c` becomes
`a(?>[^/]*?b)[^/]*c`.
"""

import re
from collections.abc import Iterable
from functools import cache

from msgspec import Struct, field

TOKEN = re.compile(r"((?<![^/])\*\*/|/\*\*\Z|\*\*|\*|\?)")
DEEP = {"": "", "**": ".*?", "**/": "(?:.+?/)??"}
PART_STARS = re.compile(r"(?P<whole>(?<![^/])\*\*(?![^/]))|\*{2,}")
BRACES = re.compile(r"\{([^{}]*)\}")


class _Section(Struct):
    """A part of a pattern without `**` in it."""

    after: str
    """The token before it; "" at the pattern's beginning."""
    head: str = ""
    """The expression up to its first `*`."""
    starred: list[str] = field(default_factory=list)
    """For each `*`, the expression up to the next one."""

    def add(self, expression: str) -> None:
        if self.starred:
            self.starred[-1] += expression
        else:
            self.head += expression

    def render(self, *, last: bool) -> str:
        fixed, ending = (self.starred[:-1], self.starred[-1:]) if last else (self.starred, [])
        text = DEEP[self.after] + self.head
        text += "".join(f"(?>[^/]*?{expression})" for expression in fixed)
        text += "".join(f"[^/]*{expression}" for expression in ending)
        return text if last or not text else f"(?>{text})"


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches the whole path, by the rules of a .gitignore: one without a slash matches a
    name in any folder, one that ends with a slash everything in the folder.
    """
    return compile_globs(tuple(map(_from_root, patterns))).match(path) is not None


@cache
def compile_globs(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """A regular expression for paths (relative to the root) that one of the patterns matches completely; without
    patterns it matches nothing.
    """
    alternatives = "|".join(map(_expression, patterns))
    return re.compile(rf"(?:{alternatives})\Z" if patterns else r"(?!)", re.DOTALL)


def expand_braces(pattern: str) -> tuple[str, ...]:
    """The patterns that `{a,b}` expands to; nested braces are not supported."""
    found = BRACES.search(pattern)
    if found is None:
        return (pattern,)
    before, after = pattern[: found.start()], pattern[found.end() :]
    return tuple(one for choice in found[1].split(",") for one in expand_braces(before + choice + after))


def whole_name_stars(pattern: str) -> str:
    """The pattern with `**` replaced by `*` unless it is a whole name, as npm and TypeScript read it."""
    return PART_STARS.sub(lambda found: found["whole"] or "*", pattern)


def _from_root(pattern: str) -> str:
    rooted = pattern if "/" in pattern.rstrip("/") else f"**/{pattern}"
    return f"{rooted}**".removeprefix("/") if rooted.endswith("/") else rooted.removeprefix("/")


def _expression(pattern: str) -> str:
    sections = [_Section(after="")]
    for piece in TOKEN.split(pattern):
        if piece in {"**", "**/"}:
            sections.append(_Section(after=piece))
        elif piece == "*":
            sections[-1].starred.append("")
        elif piece == "?":
            sections[-1].add("[^/]")
        else:
            sections[-1].add("/.+" if piece == "/**" else re.escape(piece))
    return "".join(section.render(last=section is sections[-1]) for section in sections)

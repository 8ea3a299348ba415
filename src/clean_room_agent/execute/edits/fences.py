"""Removing the Markdown fences that a model puts around the code of an edit."""

import re
from pathlib import PurePosixPath

OPENING = re.compile(r"[ \t]*(`{3,}|~{3,})[\w.+#-]*[ \t]*\Z")
PROSE_SUFFIXES = frozenset({".md", ".markdown", ".mdx", ".rst", ".txt", ".qmd", ".rmd", ".adoc"})
"""Files in which a fence is text of its own: nothing is taken off there."""


def unfence(path: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    """`texts`, each without the fence around it, if every one that is not empty has one; else unchanged.

    A fence that only the search text or only the replacement has is part of the code.
    """
    if is_prose(path) or not any(texts):
        return texts
    bare = tuple(_without_fence(text) if text else "" for text in texts)
    return texts if any(text is None for text in bare) else tuple(text or "" for text in bare)


def is_prose(path: str) -> bool:
    """Whether the file is written for people, by its suffix."""
    return PurePosixPath(path).suffix.lower() in PROSE_SUFFIXES


def _without_fence(text: str) -> str | None:
    lines = text.strip("\n").split("\n")
    opening = OPENING.match(lines[0])
    if opening is None or len(lines) < 2:
        return None
    mark, closing = opening[1], lines[-1].strip()
    if set(closing) != {mark[0]} or len(closing) < len(mark):
        return None
    return "\n".join(lines[1:-1])

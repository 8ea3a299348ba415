"""Joins adjacent comments and classifies them: todo, fixme, rationale and so on."""

import re
from collections.abc import Iterable, Mapping

from tree_sitter import Node

from clean_room_agent.languages.parsed import Comment

KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("todo", re.compile(r"\bTODO\b|^todo\b", re.MULTILINE)),
    ("fixme", re.compile(r"\b(?:FIXME|XXX)\b|^fixme\b", re.MULTILINE)),
    ("hack", re.compile(r"\b(?:HACK|KLUDGE)\b|\b(?:hack|kludge|work-?around)\b")),
    (
        "bug_ref",
        re.compile(
            r"(?:^|[\s(])#\d{2,}\b|\b(?:gh|bpo|issue|bug|ticket|pr)[ -]?#?\d+\b|/(?:issues?|pull|bugs?)/\d+"
            r"|\bCVE-\d{4}-\d+|\b[A-Z]{2,10}-\d{2,}\b",
            re.IGNORECASE,
        ),
    ),
    (
        "note",
        re.compile(
            r"\b(?:NOTE|NB|N\.B\.|WARNING|IMPORTANT|CAUTION)\b|^(?:note|warning|important)\s*:", re.MULTILINE
        ),
    ),
)
REASON = re.compile(
    r"\b(?:because|since (?:we|it|the|this|that)|so that|in order (?:to|that)|due to|to (?:avoid|prevent|ensure|allow|keep)"
    r"|otherwise|the reason|reason (?:is|for|why)|that(?:'s| is) why|this is why|which is why|needed (?:for|to|by|because)"
    r"|required (?:for|by|to)|necessary (?:for|to|because)|on purpose|intentional(?:ly)?|deliberate(?:ly)?|by design"
    r"|rather than|instead of|for (?:backwards?|performance|compatibility|historical)|backwards?[ -]compat\w*"
    r"|work-?around|workaround)\b",
    re.IGNORECASE,
)
PROHIBITION = re.compile(r"\b(?:must|should|can|do|does|did|could|would)(?: not|n't|not) \w+", re.IGNORECASE)
CLAUSE = re.compile(r"\b(?:as|because|since|or)\b", re.IGNORECASE)
"""What makes a prohibition a reason where it follows later on: looked for once, behind the first."""
# Every text that the patterns above match contains one of these. Searching for fixed words takes a tenth of the time
# of a pattern, and rules out most comments.
KIND_WORDS: Mapping[str, tuple[str, ...]] = {
    "todo": ("todo",),
    "fixme": ("fixme", "xxx"),
    "hack": ("hack", "kludge", "workaround", "work-around"),
    "bug_ref": tuple("0123456789"),
    "note": ("note", "nb", "n.b.", "warning", "important", "caution"),
}
REASON_WORDS = (
    "because", "since", "so that", "in order", "due to", "to avoid", "to prevent", "to ensure", "to allow", "to keep",
    "otherwise", "reason", "why", "needed", "required", "necessary", "on purpose", "intentional", "deliberate", "by design",
    "rather than", "instead of", "backward", "performance", "compat", "historical", " not", "n't", "cannot", "work",
)  # fmt: skip
LETTER = re.compile(r"[^\W\d_]")
NOT_PROSE = re.compile(r"!|-\*-|\s*(?:vim|coding)[:=]")
"""What follows the mark in lines for the system or an editor."""
DIRECTIVE = re.compile(
    r"type:\s*(?:ignore\b(?:\[[^\]]*\])?|[^#]*)|noqa\b(?::\s*[A-Z]+\d+(?:[, ]+[A-Z]+\d+)*)?|pragma:\s*no\s*\w+"
    r"|(?:fmt|isort|yapf|mypy|pyright|pylint|ruff|flake8|pyre|nosec|autopep8)\s*:\s*[\w-]+(?:\[[^\]]*\]|=[\w-]+(?:\s*,\s*[\w-]+)*)?"
    r"|@ts-(?:ignore|expect-error|nocheck|check)\b|eslint(?:-(?:disable|enable)(?:-next-line|-line)?|-env)\b(?:(?! --)[^\n])*"
    r"|(?:prettier|biome|oxlint|deno-lint)-ignore\S*|(?:istanbul|c8|v8|node:coverage)\s+(?:ignore|disable|enable)(?:\s+\w+)?"
    r"|[#@]__\w+__|#(?:end)?region\b|<(?:reference|amd-\w+)\b[^>]*>"
)
"""What tells a tool something and a person nothing; a reason may follow."""


def classify(text: str) -> tuple[str, bool]:
    """Return the kind of the comment, and whether it gives a reason."""
    lowered = text.lower()
    gives_reason = any(map(lowered.__contains__, REASON_WORDS)) and _gives_reason(text)
    for kind, pattern in KINDS:
        if any(map(lowered.__contains__, KIND_WORDS[kind])) and pattern.search(text):
            return kind, gives_reason
    return ("rationale" if gives_reason else "general"), gives_reason


def _gives_reason(text: str) -> bool:
    if REASON.search(text) is not None:
        return True
    prohibition = PROHIBITION.search(text)
    return prohibition is not None and CLAUSE.search(text, prohibition.end()) is not None


def merge_line_comments(comments: Iterable[tuple[Node, str]], source: bytes) -> list[Comment]:
    """Sort comments, each with its text without comment marks, by position, and join full-line ones on adjacent lines at the same
    column. Those without letters, and those meant only for tools, are left out.
    """
    merged: list[tuple[int, int, list[str]]] = []
    last_row, last_column = -2, -1
    for node, text in sorted(comments, key=lambda comment: comment[0].start_byte):
        directive = DIRECTIVE.match(text)
        if directive is not None:
            text = text[directive.end() :].lstrip("#/-: ")  # noqa: PLW2901 - what follows is the comment
            if not text:
                continue
        start = node.start_byte
        row, column = node.start_point
        own_line = not source[start - column : start].strip()
        if row < 2 and NOT_PROSE.match(text):
            continue
        if own_line and row == last_row + 1 and column == last_column:
            merged[-1][2].append(text)
        else:
            merged.append((start, row + 1, [text]))
        last_row, last_column = (node.end_point[0], column) if own_line else (-2, -1)
    whole = [Comment(start, line, "\n".join(texts)) for start, line, texts in merged]
    return [comment for comment in whole if LETTER.search(comment.text)]

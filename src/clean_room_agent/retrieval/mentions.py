"""Finds what a text mentions: paths, identifiers, error messages, stack frames, tests; and guesses the kind of task."""

import re
from collections.abc import Iterable
from typing import TypeVar

from msgspec import Struct

from clean_room_agent.artifacts.evidence import StackFrame

ValueT = TypeVar("ValueT")
FENCED = re.compile(r"^(```+|~~~+)[^\n]*\n(.*?)^\1", re.MULTILINE | re.DOTALL)
URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s<>\"')\]]+")
FILE_SUFFIXES = (
    "py|pyi|js|jsx|mjs|cjs|ts|mts|cts|tsx|json|toml|cfg|ini|yml|yaml|md|rst|txt|html|css|scss|sh|sql|c|h|cc|cpp|hpp|"
    "rs|go|java|rb|php|kt|swift|lua|vue|svelte"
)
PATH = re.compile(
    rf"(?<![\w./\\-])(?:[\w@+.-]+/)*[\w@+.-]+\.(?:{FILE_SUFFIXES})(?![\w/-])|(?<![\w./-])[\w@+.-]+(?:/[\w@+.-]+)+"
)
QUOTED = re.compile(r"`([^`\n]{1,120})`")
DOTTED = re.compile(r"(?<![\w.])[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+")
WORD = re.compile(r"[A-Za-z_$][\w$]*")
CALLED = re.compile(r"(?<![\w$])([A-Za-z_$][\w$]*+)\(")
CALLED_SO = re.compile(
    r"\b(?:function|method|class)\s+([A-Za-z_$][\w$]*)|(?<![\w$.])([A-Za-z_$][\w$]*)\s+(?:function|method|class)\b"
)
ERROR_LINE = re.compile(
    r"^[ \t>]*(?:E[ \t]+)?((?:[A-Za-z_]\w*\.){0,5}[A-Za-z_]\w*(?:Error|Exception|Warning)\b(?::[^\n]*)?)",
    re.MULTILINE,
)
PYTHON_FRAME = re.compile(r'File "([^"\n]{1,300})", line (\d{1,7})(?:, in ([^\s]{1,120}))?')
PYTEST_FRAME = re.compile(
    r"^[ \t>]*([\w./\\@+-]{1,200}\.pyi?):(\d{1,7}): (?:in ([\w<>.]{1,120}))?", re.MULTILINE
)
JS_FRAME = re.compile(
    r"^[ \t]*at (?:(?:async |new )?([\w$.<>\[\] ]{1,120}?) \()?(?:file://)?([\w./\\@+:-]{1,300}?):(\d{1,7}):\d{1,7}\)?[ \t]*$",
    re.MULTILINE,
)
TEST_ID = re.compile(r"(?<![^\s,;()'\"`])[\w./-]++::[^\s,;'\"`)]+")
TEST_WORD = re.compile(r"\b(?:test_\w+|Test[A-Z]\w+)\b")
KIND_WORDS = {
    "bug": r"\b(?:fix\w*|bugs?|crash\w*|regress\w*|broken|incorrect\w*|wrong\w*|fail(?:s|ed|ing|ure)?|traceback|leaks?)\b|\b[A-Za-z]{1,60}Error\b",
    "feature": r"\b(?:add(?:s|ed|ing)?|support\w*|implement\w*|introduc\w*|allow\w*|new|feature\w*|provide\w*)\b",
    "refactoring": r"\b(?:refactor\w*|renam\w*|simplif\w*|clean ?up|extract\w*|restructur\w*|dedup\w*|move(?:s|d)?)\b",
    "test": r"\b(?:tests?|testing|coverage)\b",
    "docs": r"\b(?:docs?|documentation|docstrings?|typos?|readme|changelog)\b",
    "performance": r"\b(?:perf|performance|speed\w*|slow\w*|fast(?:er)?|optimi[sz]\w*)\b",
}
KINDS = {kind: re.compile(words, re.IGNORECASE) for kind, words in KIND_WORDS.items()}
FIRST_LINE_WEIGHT = 3


class Mentions(Struct, frozen=True, kw_only=True):
    """What a text mentions, without repeats, in order of first appearance; not checked against the index."""

    paths: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    """Words that look like code: quoted, called, dotted, snake_case, camelCase, CONSTANT, or inside a code block."""
    named: tuple[str, ...] = ()
    """Those of them that a reader takes for names: by their form, or because the text calls them a function, a method or a
    class. A bare word in a code block (`value`) is none.
    """
    error_messages: tuple[str, ...] = ()
    frames: tuple[StackFrame, ...] = ()
    """Innermost last where the text is a Python trace, first where it is a JavaScript one."""
    test_names: tuple[str, ...] = ()
    kind: str = ""


def find_mentions(text: str) -> Mentions:
    """Everything that `text` mentions."""
    blocks = tuple(match.group(2) for match in FENCED.finditer(text))
    plain = URL.sub(" ", text)
    return Mentions(
        paths=unique(match.group(0).rstrip(".") for match in PATH.finditer(plain)),
        identifiers=_identifiers(plain, blocks),
        named=_mentioned_names(plain),
        error_messages=unique(match.group(1).strip() for match in ERROR_LINE.finditer(text)),
        frames=find_frames(text),
        test_names=unique((*TEST_ID.findall(plain), *TEST_WORD.findall(plain))),
        kind=kind_of_task(text),
    )


def find_frames(text: str) -> tuple[StackFrame, ...]:
    """The stack frames in `text` as Python, pytest and JavaScript engines print them, in the order of the text."""
    found: list[tuple[int, StackFrame]] = []
    for pattern in (PYTHON_FRAME, PYTEST_FRAME):
        for match in pattern.finditer(text):
            path, line, function = match.group(1), int(match.group(2)), match.group(3) or ""
            found.append(
                (match.start(), StackFrame(path=path.replace("\\", "/"), line=line, function=function))
            )
    for match in JS_FRAME.finditer(text):
        function = (match.group(1) or "").strip()
        path = match.group(2).replace("\\", "/")
        found.append((match.start(), StackFrame(path=path, line=int(match.group(3)), function=function)))
    return unique(frame for _, frame in sorted(found, key=lambda entry: entry[0]))


def kind_of_task(text: str) -> str:
    """bug, feature, refactoring, test, docs or performance, judging by the words; "" if none fits.

    The first of several that fit equally well wins.
    """
    first, _, rest = text.strip().partition("\n")
    best, best_score = "", 0
    for kind, pattern in KINDS.items():
        score = FIRST_LINE_WEIGHT * len(pattern.findall(first)) + min(
            len(pattern.findall(rest)), FIRST_LINE_WEIGHT
        )
        if score > best_score:
            best, best_score = kind, score
    return best


def looks_like_code(word: str) -> bool:
    """Whether a bare word is more likely an identifier than prose."""
    if len(word) < 3 or not any(char.isalpha() for char in word):
        return False
    if "_" in word.strip("_") or word.startswith("_") or "$" in word:
        return True
    inner = word[1:]
    return any(char.isupper() for char in inner) and any(char.islower() for char in word)


def unique(values: Iterable[ValueT]) -> tuple[ValueT, ...]:
    """`values` without repeats, in order of first appearance."""
    return tuple(dict.fromkeys(values))


def _mentioned_names(text: str) -> tuple[str, ...]:
    words = (first or second for first, second in CALLED_SO.findall(text))
    return unique(word for word in (*_by_form(text), *words) if len(word) > 1)


def _identifiers(text: str, blocks: tuple[str, ...]) -> tuple[str, ...]:
    in_blocks = (word for block in blocks for word in WORD.findall(block) if len(word) > 3)
    return unique(word for word in (*_by_form(text), *in_blocks) if len(word) > 1)


def _by_form(text: str) -> list[str]:
    found: list[tuple[int, str]] = []
    for match in QUOTED.finditer(text):
        found.extend((match.start() + word.start(), word.group(0)) for word in WORD.finditer(match.group(1)))
    for pattern, group in ((DOTTED, 0), (CALLED, 1)):
        found.extend((match.start(), match.group(group)) for match in pattern.finditer(text))
    found.extend(
        (match.start(), match.group(0)) for match in WORD.finditer(text) if looks_like_code(match.group(0))
    )
    return [word for _, word in sorted(found)]

"""Finding lines such as `# ... rest unchanged`, by which a model leaves code out instead of writing it."""

import re
from pathlib import PurePosixPath

from clean_room_agent.execute.edits.fences import is_prose

COMMENT = re.compile(r"(?:#+|//+|/\*+|--|<!--|\{/\*+|\*|;+)\s*(?P<words>.*?)\s*(?:\*+/\}?|-->)?\Z")
DOTS = r"(?:\.{3,}|…)"
BARE = re.compile(rf"[\[(]?\s*{DOTS}\s*[\])]?\Z")
EXAMPLE_DOTS = re.compile(r"\W{1,3}[ \t]{2,}")
"""Indented inside a comment: the comment shows code, and leaves out code of its example."""
LEADING_DOTS = re.compile(rf"[\[(]?\s*{DOTS}\s*(?P<words>[\w ,'/()-]{{1,80}}?)\s*{DOTS}?\s*[\])]?\Z")
TRAILING_DOTS = re.compile(rf"[\[(]?\s*(?P<words>[\w ,'/()-]{{1,80}}?)\s*{DOTS}\s*[\])]?\Z")
HINTS = re.compile(
    r"\b(?:rest|remain(?:s|ing|der)?|existing|unchanged|untouched|omitted|same as|as before|as is|previous|other|more|"
    r"code here|snip(?:ped)?|implementation)\b",
    re.IGNORECASE,
)
_UNIT = r"(?:code|file|function|class|method|implementation|body|module|contents?|logic|tests?|imports?|methods|functions)"
_TAIL = (
    r"(?:(?:is|are|remains?|stays?|goes|continues)\s+)?"
    r"(?:here|unchanged|untouched|the same|as is|(?:same )?as before|omitted(?: for brevity)?)"
)
WORDED = re.compile(
    rf"\(?(?:the\s+)?(?:"
    rf"(?:rest|remainder)\s+of\s+(?:(?:the|this|your)\s+)?(?:\w+\s+){{0,2}}{_UNIT}(?:\s+{_TAIL})?"
    rf"|(?:rest|everything else|all else)\s+{_TAIL}"
    rf"|(?:existing|unchanged)\s+{_UNIT}(?:\s+{_TAIL})?"
    rf"|(?:remaining|original|previous|other)\s+{_UNIT}\s+{_TAIL}"
    rf"|(?:code\s+|everything\s+)?(?:unchanged|same as before|no changes?(?:\s+(?:here|needed))?)"
    rf"|(?:code\s+)?omitted(?:\s+for brevity)?"
    rf")\.?\)?\Z",
    re.IGNORECASE,
)
COMMENT_TAIL = re.compile(r"(?:^|\s)#.*\Z")
DEFINITION = re.compile(r"\s*(?:async\s+)?def\s+(?P<name>\w+)")
EXEMPT_CLASS = re.compile(r"\s*class\b.*\b(?:Protocol|ABC)\b")
EXEMPT_DECORATOR = re.compile(r"\s*@.*\b(?:overload|abstractmethod|abstractproperty)\b")
MOST_DOTS = 100
"""Lines of bare dots that are looked at, each with all that stands above it."""
DOTS_ARE_TEXT = frozenset({".pyi", ".yaml", ".yml"})


def elided_line(path: str, new: str, *, old: str, file_text: str) -> str:
    """The first line of `new` that stands for text not written, and that the file does not have; "" if none.

    `old` is what `new` replaces. A bare `...` is Python where it is the whole body of a stub, a class or a block; it is
    an elision where the file has a body for the function of that name.
    """
    known = {line.strip() for line in file_text.split("\n")}
    for line in new.split("\n"):
        if _is_marked(line) and line.strip() not in known:
            return line.strip()
    lines = new.split("\n")
    bare = [index for index, line in enumerate(lines) if BARE.match(line.strip())]
    if len(bare) <= sum(BARE.match(line.strip()) is not None for line in old.split("\n")):
        return ""
    suffix = PurePosixPath(path).suffix.lower()
    if is_prose(path) or suffix in DOTS_ARE_TEXT:
        return ""
    if suffix == ".py":
        bare = [index for index in bare[:MOST_DOTS] if not _is_python_body(lines, index, file_text)]
    return lines[bare[0]].strip() if bare else ""


def elided_search(search: str, file_text: str) -> str:
    """The first line of a search text that stands for text not quoted, and that the file does not have."""
    known = {line.strip() for line in file_text.split("\n")}
    for line in search.split("\n"):
        if (_is_marked(line) or BARE.match(line.strip())) and line.strip() not in known:
            return line.strip()
    return ""


def _is_marked(line: str) -> bool:
    """Whether the line says in a comment, or in words beside dots, that something is left out."""
    text = line.strip()
    comment = COMMENT.match(text)
    if comment is not None:
        text = comment["words"]
        if BARE.match(text):
            return not EXAMPLE_DOTS.match(line.strip())
        if WORDED.match(text):
            return True
    dotted = LEADING_DOTS.match(text)
    if dotted is not None:
        return HINTS.search(dotted["words"]) is not None
    dotted = TRAILING_DOTS.match(text)
    return dotted is not None and WORDED.match(dotted["words"]) is not None


def _is_python_body(lines: list[str], index: int, file_text: str) -> bool:
    """Whether the bare dots at `index` are the only statement of a block whose body the file does not have."""
    if _is_in_docstring(lines[:index]):
        return True
    above = [number for number in range(index - 1, -1, -1) if _without_comment(lines[number]).strip()]
    if above and lines[above[0]].lstrip().startswith((">>>", "...", "Traceback")):
        return True
    indent = _indent(lines[index])
    below = next((line for line in lines[index + 1 :] if line.strip()), "")
    header = next((number for number in above if _indent(lines[number]) < indent), None)
    if (
        header is None
        or (below and _indent(below) >= indent)
        or not _without_comment(lines[header]).endswith(":")
    ):
        return False
    between = [line.strip() for line in lines[header + 1 : index] if _without_comment(line)]
    if between and not (between[0].startswith(('"', "'", 'r"')) and between[-1].endswith(('"', "'"))):
        return False
    if lines[header].lstrip().startswith(")"):
        header = next(
            (n for n in range(header - 1, -1, -1) if _indent(lines[n]) <= _indent(lines[header])), header
        )
    definition = DEFINITION.match(lines[header])
    if definition is None or _is_exempt(lines, header):
        return True
    return not _has_body(definition["name"], file_text)


def _is_in_docstring(above: list[str]) -> bool:
    """Whether a string over several lines is open, as far as these lines show."""
    text = "\n".join(above)
    return any(text.count(quotes) % 2 for quotes in ('"""', "'''"))


def _without_comment(line: str) -> str:
    return COMMENT_TAIL.sub("", line).rstrip()


def _is_exempt(lines: list[str], header: int) -> bool:
    """Whether the function is decorated as a stub or stands in an abstract class."""
    for line in reversed(lines[:header]):
        if EXEMPT_DECORATOR.match(line) and _indent(line) == _indent(lines[header]):
            return True
        if line.strip() and _indent(line) < _indent(lines[header]):
            return EXEMPT_CLASS.match(line) is not None
    return False


def _has_body(name: str, file_text: str) -> bool:
    """Whether the file defines `name` with more than dots."""
    for match in re.finditer(
        rf"^[ \t]*(?:async[ \t]+)?def[ \t]+{re.escape(name)}\b", file_text, re.MULTILINE
    ):
        body = re.match(r"[^:]*(?:\([^)]*\))?[^:\n]*:[ \t]*(?:\n[ \t]*)?(\S+)", file_text[match.end() :])
        if body is None or body[1] != "...":
            return True
    return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())

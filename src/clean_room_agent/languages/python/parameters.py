"""Parses a Python signature: parameters with annotations, and the return annotation."""

import re
from functools import lru_cache
from typing import NamedTuple

from clean_room_agent.languages.python.expressions import KEPT, OPENING, PIECES, split
from clean_room_agent.languages.python.name_scan import WORD

FLAT = r"[^()\[\]{}\"'#]"
TEXT = r"\"[^\"\\\n]*+\"|'[^'\\\n]*+'"
INNER = rf"[(\[{{](?:{FLAT}++|{TEXT})*+[)\]}}]"
MIDDLE = rf"[(\[{{](?:{FLAT}++|{TEXT}|{INNER})*+[)\]}}]"
OUTER = rf"[(\[{{](?:{FLAT}++|{TEXT}|{MIDDLE})*+[)\]}}]"
WHOLE = re.compile(
    rf"(?:async\s+)?def\s+{WORD}\s*+\(((?:{FLAT}++|{TEXT}|{OUTER})*+)\)\s*+(?:->\s*+(.*?)\s*+)?:?", re.DOTALL
)
"""A signature without comments and with no more than three levels of brackets in brackets."""
PART = re.compile(
    rf"\s*+(\*{{0,2}})\s*+({WORD})\s*+(?::\s*+((?:[^,=()\[\]{{}}\"'#]++|{TEXT}|{OUTER})*+))?"
    rf"(?:=(?:[^,()\[\]{{}}\"'#]++|{TEXT}|{OUTER})*+)?,?"
)
HEAD = re.compile(rf"\s*(?:async\s+)?(?:def|class)\s+{WORD}\s*")
BRACKETS = re.compile(r"[\[({\"']")
COMMENT = re.compile(r"#[^\n]*")


class Signature(NamedTuple):
    """What comes between a function's `def` and its body."""

    parameters: list[tuple[str, str]]
    """Name and annotation ("" for none); what gathers the rest (`*args`) has none."""
    returns: str


def read_signature(text: str, name: str = "") -> Signature:
    """Parse the signature of a function called `name`."""
    head = f"def {name}("
    return _read_signature(f"def _({text[len(head) :]}" if text.startswith(head) else text)


@lru_cache(maxsize=KEPT)
def _read_signature(text: str) -> Signature:
    whole = WHOLE.fullmatch(text)
    if whole is None:
        inside, returns = _brackets(text)
        return Signature(read_parameters(inside), returns)
    found = [(name, "" if star else annotation.rstrip()) for star, name, annotation in PART.findall(whole[1])]
    return Signature(found, whole[2] or "")


def read_parameters(text: str) -> list[tuple[str, str]]:
    """(name, annotation) of each parameter in a comma-separated list."""
    is_plain = BRACKETS.search(text) is None
    return _read(text.split(",") if is_plain else split(text, ","), is_plain=is_plain)


def _read(parts: list[str], *, is_plain: bool) -> list[tuple[str, str]]:
    found = []
    for part in parts:
        head = part.partition("=")[0] if is_plain else split(part, "=")[0]
        name, _, annotation = head.partition(":")
        name = name.strip()
        if name and name[0] == "*":
            name, annotation = name.lstrip("* "), ""
        if name and name != "/":
            found.append((name, annotation.strip()))
    return found


def arguments(text: str) -> str:
    """What the brackets in the head of a class statement contain; "" if there are none."""
    return _brackets(text)[0]


def _brackets(text: str) -> tuple[str, str]:
    """The inside of the parentheses after the name, and what follows `->`."""
    head = HEAD.match(text)
    rest = text[head.end() :] if head else text
    if "#" in rest:
        rest = COMMENT.sub("", rest)
    if rest.startswith("["):
        rest = rest[_closing(rest) + 1 :].lstrip()
    if not rest.startswith("("):
        return "", ""
    end = _closing(rest)
    after = rest[end + 1 :].strip().removesuffix(":").strip()
    return rest[1:end], after[2:].strip() if after.startswith("->") else ""


def _closing(text: str) -> int:
    """Index of the bracket that closes the one at the start of the text; its length if none does."""
    depth = place = 0
    for piece in PIECES.findall(text):
        depth += OPENING.get(piece, 0)
        if depth == 0:
            return place
        place += len(piece)
    return len(text)

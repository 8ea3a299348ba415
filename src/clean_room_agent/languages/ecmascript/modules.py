"""Parses the names that import and export statements bind."""

import re
from typing import NamedTuple

from clean_room_agent.languages.ecmascript.expressions import WORD
from clean_room_agent.languages.interface import DEFAULT

ALL = "*"
COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
SOURCE = re.compile(r"\bfrom\s*['\"]([^'\"\n;]+)['\"]")
IMPORT = re.compile(r"import\s+(?:type\s+(?!from\b)|typeof\s+)?(.*?)\s*\bfrom\s*['\"]", re.DOTALL)
REQUIRED = re.compile(
    rf"(?:export\s+)?import\s+(?:type\s+)?({WORD})\s*=\s*require\s*\(\s*['\"]([^'\"\n;]+)['\"]"
)
BRACES = re.compile(r"\{(.*)\}", re.DOTALL)
ITEM = re.compile(rf"\s*(?:type\s+(?!as\b))?({WORD})(?:\s+as\s+({WORD}))?\s*")
NAMESPACE = re.compile(rf"\*\s*as\s+({WORD})")
EXPORT_ALL = re.compile(rf"export\s+(?:type\s+)?\*\s*(?:as\s+({WORD}))?\s*\bfrom\b")
EXPORT_LIST = re.compile(r"export\s+(?:type\s+)?\{")
EXPORT_NAME = re.compile(rf"export\s*(default\b|=)\s*({WORD}(?:\.{WORD})*+)\s*;?\s*")


class Taken(NamedTuple):
    """A bound name, and the module and name that it refers to."""

    name: str
    """As it is called here; `ALL` for every name of the module."""
    there: str
    """As it is called in the module; "" for the module itself."""
    module: str
    """As it is written; "" for this file."""


def read_import(text: str) -> list[Taken]:
    """The names that an import statement binds."""
    text = _strip_comments(text)
    required = REQUIRED.match(text)
    if required is not None:
        return [Taken(required[1], "", required[2])]
    clause, source = IMPORT.match(text), SOURCE.search(text)
    if clause is None or source is None:
        return []
    named = BRACES.search(clause[1])
    found = [Taken(here, there, source[1]) for here, there in _name_pairs(named[1])] if named else []
    for part in BRACES.sub("", clause[1]).split(","):
        whole = NAMESPACE.fullmatch(part.strip())
        if whole is not None:
            found.append(Taken(whole[1], "", source[1]))
        elif re.fullmatch(WORD, part.strip()):
            found.append(Taken(part.strip(), DEFAULT, source[1]))
    return found


def read_export(text: str) -> list[Taken]:
    """What an export statement without a declaration offers; `name` is what others import."""
    text = _strip_comments(text)
    source = SOURCE.search(text)
    module = source[1] if source else ""
    everything = EXPORT_ALL.match(text)
    if everything is not None:
        return [Taken(everything[1] or ALL, "" if everything[1] else ALL, module)]
    named = BRACES.search(text) if EXPORT_LIST.match(text) else None
    if named is not None:
        return [Taken(here, there, module) for here, there in _name_pairs(named[1])]
    one = EXPORT_NAME.fullmatch(text)
    return [Taken(one[1], one[2], "")] if one else []


def _name_pairs(text: str) -> list[tuple[str, str]]:
    """The pairs (name here, name there) between braces."""
    items = (ITEM.fullmatch(part) for part in text.split(","))
    return [(item[2] or item[1], item[1]) for item in items if item is not None]


def _strip_comments(text: str) -> str:
    return COMMENT.sub(" ", text) if "//" in text or "/*" in text else text

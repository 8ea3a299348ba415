"""Parses configuration files as JavaScript tools do: JSON with comments and trailing commas, and some YAML."""

import json
import re
from collections.abc import Mapping

COMMENTS = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
COMMAS = re.compile(r'("(?:\\.|[^"\\\n])*")|,(?=\s*[}\]])')
PACKAGES = re.compile(r"^packages:[ \t]*(?:#.*)?(\[[^\]]*\]|(?:\n[ \t]*(?:-.*|#.*)?)*)", re.MULTILINE)
ITEM = re.compile(r"""(?:^[ \t]*-|[\[,])[ \t\n]*(?:'([^'\n]*)'|"([^"\n]*)"|([^\s'"#,\]]+))""", re.MULTILINE)


def read_object(text: str | None) -> Mapping[str, object]:
    """Parse the text; anything that is not a JSON object gives an empty one."""
    if text is None:
        return {}
    try:
        return as_object(_loads(text.removeprefix("\ufeff")))
    except (ValueError, RecursionError):
        return {}


def read_packages(text: str | None) -> tuple[str, ...]:
    """The items of `packages` in the text of a `pnpm-workspace.yaml`."""
    found = PACKAGES.search((text or "").replace("\r\n", "\n"))
    return () if found is None else tuple("".join(item) for item in ITEM.findall(found[1]))


def as_object(value: object) -> Mapping[str, object]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_text(value: object) -> str:
    """The value if it is a string, else ""."""
    return value if isinstance(value, str) else ""


def as_texts(value: object) -> tuple[str, ...]:
    """The strings in the value if it is a list; the value itself if it is a string."""
    if isinstance(value, str):
        return (value,)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _loads(text: str) -> object:
    try:
        return json.loads(text, strict=False)
    except ValueError:
        plain = COMMENTS.sub(lambda found: found[1] or " ", text)
        return json.loads(COMMAS.sub(lambda found: found[1] or "", plain), strict=False)

"""Which files git stores as UTF-8 and writes into a working tree in another encoding (`working-tree-encoding`).

Git itself is asked, since attributes come from several files, and by way of macros.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from clean_room_agent.git.command import fields, joined
from clean_room_agent.proc import inherited_environment

ATTRIBUTE = "working-tree-encoding"
UTF8 = re.compile(r"utf-?8", re.IGNORECASE)
WITHOUT_ENCODING = frozenset({"unspecified", ""})
NO_NAME = frozenset({"set", "unset"})
"""What git says of an attribute without a value; it stops at such a file."""
CONVERTED = f"a file that git converts ({ATTRIBUTE}, or a filter driver)"
FILE = ".gitattributes"
OF_ALL_USERS = tuple(
    Path(place) / "gitattributes" for place in ("/etc", "/usr/local/etc", "/opt/homebrew/etc")
)


def encodings(ask: Callable[[tuple[str, ...], bytes], bytes], paths: Iterable[str]) -> dict[str, str]:
    """The encoding of those of `paths` that git converts, by path; one of `NO_NAME` where the attribute names none.
    `ask` runs git with arguments and an input.
    """
    given = tuple(paths)
    told = fields(ask(("-z", "--stdin", ATTRIBUTE), joined(given))) if given else ()
    pairs = zip(told[0::3], told[2::3], strict=True)
    return {path: name for path, name in pairs if name not in WITHOUT_ENCODING and not UTF8.fullmatch(name)}


def why_not_shown(encoding: str) -> str:
    """Why a file that git converts is neither shown nor edited."""
    if encoding in NO_NAME:
        return f"its attribute {ATTRIBUTE} names no encoding"
    return f"git converts it to {encoding} in a working tree ({ATTRIBUTE})"


def has_attributes(top: Path, paths: Iterable[str], configured: Iterable[str]) -> bool:
    """Whether any file can give attributes to the files of the working tree; `configured` are values of
    `core.attributesFile`.
    """
    env = inherited_environment(without="GIT_")
    home = Path(env.get("HOME", "/"))
    users = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "git/attributes"
    if any(configured) or not (top / ".git").is_dir():
        return True
    files = (users, *OF_ALL_USERS, top / ".git/info/attributes")
    return any(file.exists() for file in files) or any(
        path == FILE or path.endswith(f"/{FILE}") for path in paths
    )

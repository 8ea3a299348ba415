"""Repositories that are a real one several times over, each copy with names of its own."""

import keyword
import random
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct

from benchmarks.commits.checkouts import git
from clean_room_agent.syntax import grammar_of

DEFINED = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
WORD = re.compile(r"\w+")
COMMITS = 100
"""That each copy has beside the one that adds it."""
TOUCHED = 3
"""Files that each of them changes."""
SEED = 1
WHO = b"Ada Example <ada@example.org>"
FIRST_DATE = 1_700_000_000


class Original(Struct, frozen=True, kw_only=True):
    """The files of a real repository, and the names that it defines."""

    files: Mapping[str, bytes]
    names: frozenset[str]
    """Functions, classes, modules and packages of its Python files, without those that Python itself knows."""


def read_original(source: Path) -> Original:
    """What git tracks there, links and submodules left out."""
    listed = git(source, "ls-files", "-z").split("\0")
    paths = [path for path in listed if (source / path).is_file() and not (source / path).is_symlink()]
    files = {path: (source / path).read_bytes() for path in sorted(paths)}
    names: set[str] = set()
    for path, content in files.items():
        if grammar_of(path) == "python":
            names.update(DEFINED.findall(content.decode(errors="replace")))
            pure = PurePosixPath(path)
            names.update(
                (pure.stem, *(folder.name for folder in pure.parents if f"{folder}/__init__.py" in files))
            )
    return Original(files=files, names=frozenset(name for name in names if _is_own(name)))


def copied(original: Original, number: int) -> Iterator[tuple[str, bytes]]:
    """Path and content of every file of one copy. Its names, also in paths, have its number for an ending.

    Names are told by spelling alone, so words of comments and of strings change with them; imports, calls and bases
    lead to the same places of the same copy as in the original.
    """
    mapping = {name: f"{name}x{number}" for name in original.names}

    def renamed(text: str) -> str:
        return WORD.sub(lambda match: mapping.get(match.group(), match.group()), text)

    for path, content in original.files.items():
        if grammar_of(path) != "python":
            yield f"copy{number}/{path}", content
            continue
        text = content.decode("utf-8", "surrogateescape")
        yield f"copy{number}/{renamed(path)}", renamed(text).encode("utf-8", "surrogateescape")


def make_enlarged(original: Original, top: Path, copies: int) -> Path:
    """`top` is a repository of so many copies, with a history that is as long for each of them."""
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir(parents=True)
    git(top, "init", "-q", "-b", "main")
    stream = b"".join(_history(original, copies))
    subprocess.run(("git", "fast-import", "--quiet"), cwd=top, input=stream, check=True)
    git(top, "reset", "-q", "--hard", "main")
    return top


def _is_own(name: str) -> bool:
    """Prose, too, has lines that begin with `class`, so keywords come up; the shortest names begin strings as well."""
    return len(name) > len("rb") and not (
        name.startswith("__") or keyword.iskeyword(name) or keyword.issoftkeyword(name)
    )


def _history(original: Original, copies: int) -> Iterator[bytes]:
    """The input of git fast-import: each copy comes with one commit and is then changed by `COMMITS` of them."""
    chance = random.Random(SEED)
    date = FIRST_DATE
    for number in range(copies):
        files = dict(copied(original, number))
        yield _commit(date, f"Add copy {number}", files)
        sources = [path for path in files if grammar_of(path) == "python"]
        for change in range(COMMITS):
            date += 60
            touched = sorted(chance.sample(sources, min(TOUCHED, len(sources))))
            for path in touched:
                files[path] += b"\n# changed by %d\n" % change
            yield _commit(date, f"Change {change} of copy {number}", {path: files[path] for path in touched})


def _commit(date: int, message: str, files: Mapping[str, bytes]) -> bytes:
    words = message.encode()
    parts = [b"commit refs/heads/main\ncommitter %b %d +0000\ndata %d\n%b\n" % (WHO, date, len(words), words)]
    for path, content in files.items():
        quoted = (
            path.replace("\\", "\\\\")
            .replace('"', '\\"')
            .replace("\n", "\\n")
            .encode("utf-8", "surrogateescape")
        )
        parts.append(b'M 100644 inline "%b"\ndata %d\n%b\n' % (quoted, len(content), content))
    return b"".join(parts)

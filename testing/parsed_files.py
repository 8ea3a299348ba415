"""The files of a repository that `cra index` parses, and an edit of one."""

import subprocess
from pathlib import Path

from clean_room_agent.syntax import MAX_PARSED_BYTES, grammar_of


def parsed_files(top: Path) -> list[str]:
    """Relative paths of the tracked files that have a grammar and are not too large to be parsed, sorted."""
    listed = subprocess.run(
        ("git", "ls-files", "-z"), cwd=top, capture_output=True, check=True, text=True
    ).stdout.split("\0")
    return sorted(path for path in listed if grammar_of(path) and _is_parsed(top / path))


def with_function(source: bytes, path: str) -> bytes:
    """The source with a function more at its end."""
    if grammar_of(path) == "python":
        return source + b"\n\ndef measured_addition(first, second):\n    return first + second\n"
    return source + b"\nexport function measuredAddition(first, second) {\n  return first + second\n}\n"


def _is_parsed(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_PARSED_BYTES

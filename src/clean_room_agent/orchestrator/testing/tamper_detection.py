"""Code that replaces, by its own words, what JavaScript's tests judge by: no report of theirs would show it."""

import re
from collections.abc import Iterable

from clean_room_agent.execute.edits.paths import is_test_configuration, is_test_path

SCRIPT = re.compile(r"\.(?:[cm]?[jt]sx?|vue|svelte)\Z")
JUDGES = (
    r"(?:expect|assert|it|test|describe|suite|specify|beforeEach|afterEach|before|after|beforeAll|afterAll)"
)
ASSIGNED = r"\s*(?:\?\?|\|\||&&)?=(?![=>])"
MEDDLING = re.compile(
    rf"(?:\b(?:globalThis|global|window|self)(?:\.|\[['\"`]){JUDGES}\b['\"`]?\]?(?:\.\w+)*{ASSIGNED}"
    rf"|\bObject\.(?:defineProperty|assign)\(\s*(?:globalThis|global|window|self)\b[^)]*\b(?:expect|assert)\b"
    rf"|\brequire\(['\"`](?:node:)?(?:assert|test|chai|vitest|@jest/globals|expect)(?:/\w+)?['\"`]\)(?:\.\w+)+{ASSIGNED}"
    rf"|\b(?:assert|expect)\.(?!extend\b)\w+(?:\.\w+)*{ASSIGNED}"
    rf"|\bprocess\.(?:exit|reallyExit){ASSIGNED})"
)


def tampering(diff: str) -> tuple[str, ...]:
    """`path: line` for each line that the unified `diff` adds, outside of tests, and that replaces a judge; in order."""
    return tuple(
        f"{path}: {line.strip()}"
        for path, line in _added(diff.split("\n"))
        if SCRIPT.search(path)
        and not is_test_path(path)
        and not is_test_configuration(path)
        and MEDDLING.search(line)
    )


def _added(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    path = ""
    for line in lines:
        if line.startswith("+++ "):
            path = line.removeprefix("+++ ").removeprefix("b/").rstrip("\t")
        elif line.startswith("+"):
            yield path, line[1:]

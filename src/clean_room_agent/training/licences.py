"""The licence of a commit's code, from its licence files."""

import re
from functools import cache

from clean_room_agent.git.clones import Objects

LICENCE_FILE = re.compile(r"(?i)(?:un)?licen[cs]e|copying")
ALLOWED = ("MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC", "0BSD", "Unlicense", "PSF-2.0", "Zlib")
"""Licences that let anybody learn from the code and pass it on, by their SPDX names."""

MAX_CHARACTERS = 200_000
"""Of a licence's text; the longest, of several licences, have 40,000, and what is longer is not known."""
# Each by words that all of its copies hold, "..." for any words between; the first that fits counts, so special ones come
# before general ones.
TEXTS: tuple[tuple[str, tuple[re.Pattern[str], ...]], ...] = tuple(
    (name, tuple(re.compile(part, re.IGNORECASE) for part in pattern.split("...")))
    for name, pattern in (
        ("AGPL-3.0", r"gnu affero general public license"),
        ("LGPL", r"gnu lesser general public license|gnu library general public"),
        ("GPL", r"gnu general public license"),
        ("MPL-2.0", r"mozilla public license"),
        ("EPL", r"eclipse public license"),
        ("Apache-2.0", r"apache license,? version 2\.0|apache license\W+version 2\.0"),
        ("PSF-2.0", r"python software foundation license"),
        (
            "BSD-3-Clause",
            r"redistribution and use in source and binary forms...(?:neither the name|names? of (?:its|the) .{0,80}may not be used)",
        ),
        ("BSD-2-Clause", r"redistribution and use in source and binary forms"),
        (
            "ISC",
            r"permission to use, copy, modify, and/?(?:or )?distribute this software...(?:copyright notice and this permission|provided that the above)",
        ),
        ("0BSD", r"permission to use, copy, modify, and/?(?:or )?distribute this software"),
        ("Unlicense", r"this is free and unencumbered software"),
        ("MIT", r"permission is hereby granted, free of charge"),
        ("Zlib", r"this software is provided 'as-is', without any express or implied"),
    )
)


class Licences:
    """The licences of one repository's commits; each text is read once."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: dict[str, str] = {}

    def of(self, commit: str) -> str:
        """The commit's licences by their SPDX names, sorted and joined with AND; "" if none is known."""
        files = self._objects.list_folder(commit)
        found = {self._licence_of_blob(blob) for name, blob in files.items() if LICENCE_FILE.match(name)}
        return " AND ".join(sorted(found - {""}))

    def _licence_of_blob(self, blob: str) -> str:
        if blob not in self._known:
            text = (self._objects.read(blob) or b"").decode("utf-8", "replace")
            self._known[blob] = licence_of_text(text)
        return self._known[blob]


def is_allowed(licence: str, allowed: tuple[str, ...] | None) -> bool:
    """Whether each of the licences is on the list; an unknown one is not. None allows any, and none at all."""
    return allowed is None or (bool(licence) and all(name in allowed for name in licence.split(" AND ")))


@cache
def licence_of_text(text: str) -> str:
    """The SPDX name of a licence's text; "" if it is not a known one."""
    if len(text) > MAX_CHARACTERS:
        return ""
    words = " ".join(text.split())
    return next((name for name, parts in TEXTS if _has_parts_in_order(words, parts)), "")


def _has_parts_in_order(words: str, parts: tuple[re.Pattern[str], ...]) -> bool:
    """Whether the parts occur in this order; in linear time, unlike one pattern with `.*`."""
    at = 0
    for part in parts:
        found = part.search(words, at)
        if found is None:
            return False
        at = found.end()
    return True

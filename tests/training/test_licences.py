"""Licences are known by their texts first, and only those on the list are learned from."""

from pathlib import Path

import pytest
from msgspec import field

from clean_room_agent.git.clones import Objects
from clean_room_agent.training.licences import ALLOWED, Licences, is_allowed, licence_of_text

MIT = "Permission is hereby granted, free\nof charge, to any person"
BSD = "Redistribution and use in source and\nbinary forms, with or without modification"


class StoredFiles(Objects, frozen=True, kw_only=True):
    """A repository whose every commit has these files."""

    files: dict[str, str]
    reads: list[str] = field(default_factory=list)

    def read(self, name: str) -> bytes | None:
        self.reads.append(name)
        return self.files[name].encode()

    def list_folder(self, commit: str) -> dict[str, str]:
        return {name: name for name in self.files}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (MIT, "MIT"),
        (BSD, "BSD-2-Clause"),
        (f"{BSD}\nNeither the name of the copyright holder", "BSD-3-Clause"),
        ("Apache License\n   Version 2.0, January 2004", "Apache-2.0"),
        ("GNU AFFERO GENERAL PUBLIC LICENSE", "AGPL-3.0"),
        ("GNU GENERAL PUBLIC LICENSE Version 3", "GPL"),
        ("All rights reserved.", ""),
    ],
)
def test_texts_are_told_apart(text: str, name: str) -> None:
    assert licence_of_text(text) == name


def test_all_licence_files_count_and_each_must_be_allowed() -> None:
    files = {"LICENSE.txt": MIT, "COPYING": "GNU GENERAL PUBLIC LICENSE"}
    both = Licences(StoredFiles(Path(), files=files))
    assert both.of("HEAD") == "GPL AND MIT"
    assert not is_allowed(both.of("HEAD"), ALLOWED)
    assert is_allowed("MIT", ALLOWED)
    assert not is_allowed("", ALLOWED)


def test_each_text_is_read_once() -> None:
    objects = StoredFiles(Path(), files={"LICENSE": MIT})
    licences = Licences(objects)
    assert [licences.of(commit) for commit in "abc"] == ["MIT"] * 3
    assert objects.reads == ["LICENSE"]


def test_a_licence_that_never_ends_is_not_known_and_takes_no_time() -> None:
    assert licence_of_text("Redistribution and use in source and binary forms, " * 3_000) == "BSD-2-Clause"
    assert licence_of_text(MIT + " and" * 100_000) == ""

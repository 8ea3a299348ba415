"""Tells by a file's path whether it is code, a test, or documentation, set-up, data or build output."""

from typing import Literal

FileKind = Literal["code", "test", "side"]
"""`side`: documentation, examples, set-up files, data, and build output."""

TEST_FOLDERS = frozenset({"test", "tests", "testing", "__tests__", "spec", "specs"})
SIDE_FOLDERS = frozenset(
    {"doc", "docs", "example", "examples", "changelog", "news", ".github", "benchmarks", "bench", "dist"}
)
SIDE_SUFFIXES = frozenset(
    {
        *(".md", ".rst", ".txt", ".adoc", ".html", ".css", ".scss", ".svg", ".po", ".snap"),
        *(".toml", ".cfg", ".ini", ".yml", ".yaml", ".json", ".jsonc", ".lock", ".xml", ".csv"),
    }
)
SIDE_NAMES = frozenset({"setup.py", "Makefile", "Dockerfile"})


def is_test_file(path: str) -> bool:
    """Whether the path is that of a test or of its helpers."""
    *folders, name = path.split("/")
    stem = name.split(".", 1)[0]
    if not TEST_FOLDERS.isdisjoint(folders):
        return True
    if stem.startswith("test_") or stem.endswith("_test") or stem == "conftest":
        return True
    return ".test." in name or ".spec." in name


def is_side_file(path: str) -> bool:
    """Whether the path is that of documentation, an example, a set-up file, data or build output."""
    *folders, name = path.split("/")
    if not SIDE_FOLDERS.isdisjoint(folders):
        return True
    stem, dot, suffix = name.rpartition(".")
    if not dot or not stem:
        return name.isupper() or name in SIDE_NAMES  # CHANGES, LICENSE, AUTHORS
    return f".{suffix.lower()}" in SIDE_SUFFIXES or ".min." in name or name in SIDE_NAMES


def kind_of(path: str) -> FileKind:
    """The kind of the file at `path`; tests before the rest."""
    if is_test_file(path):
        return "test"
    return "side" if is_side_file(path) else "code"

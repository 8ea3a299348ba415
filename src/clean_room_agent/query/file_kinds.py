"""Files that a task rarely means: tests, and documentation, examples and set-up files."""

from pathlib import PurePosixPath

from clean_room_agent.artifacts.tasks import TaskQuery

TEST_FOLDERS = frozenset({"test", "tests", "testing", "__tests__", "spec", "specs"})
SIDE_FOLDERS = frozenset(
    {"doc", "docs", "example", "examples", "changelog", "news", ".github", "benchmarks", "bench"}
)
SIDE_SUFFIXES = frozenset(
    {".md", ".rst", ".txt", ".toml", ".cfg", ".ini", ".yml", ".yaml", ".lock", ".html", ".css"}
)
SIDE_NAMES = frozenset({"setup.py", "package.json", "package-lock.json", "Makefile", "Dockerfile", "LICENSE"})

TEST_WEIGHT = 0.1
SIDE_WEIGHT = 0.3


def is_test_file(path: str) -> bool:
    """Whether the path is that of a test or of its helpers."""
    place = PurePosixPath(path)
    stem = place.name.split(".", 1)[0]
    if any(part in TEST_FOLDERS for part in place.parts[:-1]):
        return True
    if stem.startswith("test_") or stem.endswith("_test") or stem == "conftest":
        return True
    return any(mark in place.name for mark in (".test.", ".spec."))


def is_side_file(path: str) -> bool:
    """Whether the path is that of documentation, an example or a set-up file."""
    place = PurePosixPath(path)
    if any(part in SIDE_FOLDERS for part in place.parts[:-1]):
        return True
    return place.suffix.lower() in SIDE_SUFFIXES or place.name in SIDE_NAMES


def file_weight(path: str, query: TaskQuery) -> float:
    """What a file's score is multiplied with: 1, or less for a kind of file that the task does not ask for."""
    if is_test_file(path) and not asks_for_tests(query):
        return TEST_WEIGHT
    if is_side_file(path) and query.kind != "docs" and not any(is_side_file(named) for named in query.paths):
        return SIDE_WEIGHT
    return 1.0


def asks_for_tests(query: TaskQuery) -> bool:
    """Whether the task is about tests themselves."""
    return query.kind == "test" or any(is_test_file(named) for named in query.paths)

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.execute.edits.paths import (
    is_control_path,
    is_test_configuration,
    is_test_path,
    matches_any,
    path_fault,
)


@pytest.mark.parametrize(
    "path", ["a.py", "src/pkg/a b.py", ".github/workflows/ci.yml", "ü/ñ.py", ".gitignore", "a/..b"]
)
def test_a_path_inside_the_repository_is_accepted(path: str) -> None:
    assert path_fault(path) == ""
    assert not is_control_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "", "..", "../a", "a/../../b", "/etc/passwd", "~/x", "C:/x", "a\\b", "a//b", "./a", "a/.", "a\nb", "a\u202eb",
        "a\u200b.py", "nul", "con.py", "a/aux.txt", "a:b", "a.py.", " a", "a /b", "x" * 5000, "/".join("a" * 60), "a*",
    ],
)  # fmt: skip
def test_a_path_that_could_leave_or_deceive_is_refused(path: str) -> None:
    assert path_fault(path)


@pytest.mark.parametrize(
    "path",
    [
        ".git/config", "sub/.git/hooks/x", ".GIT/config", ".git", ".clean_room/raw.sqlite", ".gitmodules",
        "a/.gitattributes", "GIT~1/config", ".g\u200bit/config", ".git./x", ".git::$DATA", "\uff0egit/config", "GI7EB~1/x",
    ],
)  # fmt: skip
def test_control_files_are_known_under_every_disguise(path: str) -> None:
    assert is_control_path(path)


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        (".env", ".env", True), ("a/.env", ".env", True), ("a/.environment", ".env", False),
        ("a/b.pem", "*.pem", True), ("docs/a/b.md", "docs/**", True), ("docs", "docs/**", False),
        ("docs/a.md", "docs/", True), ("a/docs/x", "docs/**", False), ("a/docs/x", "**/docs/**", True),
        ("src/a/b/c.py", "src/**/c.py", True), ("src/c.py", "src/**/c.py", True), ("src/a.py", "/src/*.py", True),
        ("src/a/b.py", "src/*.py", False), ("a+b.py", "a+b.py", True), ("ab.py", "a?.py", True),
    ],
)  # fmt: skip
def test_globs_fit_names_anywhere_and_paths_from_the_root(path: str, pattern: str, fits: bool) -> None:
    assert matches_any(path, [pattern]) is fits


@pytest.mark.parametrize(
    "path",
    [
        "tests/a.py",
        "src/x/tests/data.json",
        "test_a.py",
        "a_test.py",
        "src/a.test.ts",
        "x/__tests__/b.js",
        "a.spec.jsx",
    ],
)
def test_tests_are_known_by_name(path: str) -> None:
    assert is_test_path(path)


@pytest.mark.parametrize("path", ["src/contest.py", "src/latest.py", "attest/a.py", "src/testament.ts"])
def test_other_names_are_not_tests(path: str) -> None:
    assert not is_test_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "conftest.py",
        "a/conftest.py",
        "pytest.ini",
        "tox.ini",
        "setup.cfg",
        ".github/workflows/a.yml",
        "jest.config.js",
    ],
)
def test_files_that_steer_tests_are_known(path: str) -> None:
    assert is_test_configuration(path)


@given(st.text())
def test_any_text_is_judged_without_an_exception(path: str) -> None:
    path_fault(path)
    is_control_path(path)
    is_test_path(path)
    assert not matches_any(path, ["no/such/name"])

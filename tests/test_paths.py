import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clean_room_agent import paths
from clean_room_agent.paths import (
    compile_globs,
    expand_braces,
    is_installed_metadata,
    is_secret_name,
    is_test_configuration,
    is_test_module,
    is_test_path,
    kind_of,
    matches_glob,
    whole_name_stars,
)


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("a/b/c", "**", True), ("a/b/c", "a**c", True), ("a/b/c", "a*c", False), ("a", "a/**", False), ("a/", "a/**", False),
        ("x/a/b", "**/a/**", True), ("a", "**/a", True), ("ba", "**/a", False), ("a/b", "a?b", False), ("abc", "*b*", True),
        ("", "*", True), ("a/x/b", "a/*/b", True), ("a/b", "a/*/b", False), ("a/x/y/b", "a/**/b", True), ("a/b", "a/**/b", True),
        ("a.b", "a?b", True), ("axb", "a.b", False), ("x/a\nb", "x/a*", True), ("a/b/c/b/d", "**/b/d", True),
    ],
)  # fmt: skip
def test_stars_mean_what_they_mean_in_a_gitignore(path: str, pattern: str, fits: bool) -> None:
    assert matches_glob(path, [pattern]) is fits


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("b.lock", "*.lock", True), ("a/b.lock", "*.lock", True), ("a/b.lock", "/*.lock", False), ("b.lock", "/*.lock", True),
        ("vendor/a/b.js", "vendor/", True), ("x/vendor/b.js", "vendor/", True), ("vendor", "vendor/", False),
        (".env", ".env", True), ("a/.environment", ".env", False), ("src/a.py", "/src/*.py", True),
        ("src/a/b.py", "src/*.py", False), ("a+b.py", "a+b.py", True), ("docs/a/b.md", "docs/**", True), ("a/docs/x", "docs/**", False),
        ("a/dist/b", "a/dist/", True), ("x/a/dist/b", "a/dist/", False), ("src/x/y.py", "src/**.py", True),
        ("a/b", "a**/b", True), ("ab", "a**/b", False), ("ax/y/b", "a**/b", True),
    ],
)  # fmt: skip
def test_a_pattern_without_a_slash_fits_in_any_folder(path: str, pattern: str, fits: bool) -> None:
    assert matches_glob(path, [pattern]) is fits


@pytest.mark.parametrize(
    ("pattern", "expression"),
    [("src/**/test_*.py", r"(?>src/)(?:.+?/)??test_[^/]*\.py"), ("a*b*c", "a(?>[^/]*?b)[^/]*c")],
)
def test_the_examples_of_the_module_are_what_patterns_become(pattern: str, expression: str) -> None:
    assert compile_globs((pattern,)).pattern == rf"(?:{expression})\Z"
    assert f"`{expression}`" in (paths.__doc__ or "")


def test_of_several_patterns_one_is_enough_and_none_fit_nothing() -> None:
    assert matches_glob("a.py", ["*.js", "*.py"])
    assert not matches_glob("a.py", [])
    assert not matches_glob("a.py", ["*.js", "*.ts"])


def test_a_pattern_is_compiled_from_the_root() -> None:
    assert compile_globs(("*.py",)).match("a/b.py") is None
    assert compile_globs(("a.py", "b/*")).match("b/c") is not None


def test_braces_stand_for_each_of_their_choices() -> None:
    assert expand_braces("packages/{a,b}/*") == ("packages/a/*", "packages/b/*")
    assert expand_braces("{a,b}-{1,2}") == ("a-1", "a-2", "b-1", "b-2")
    assert expand_braces("plain/*") == ("plain/*",)


def test_stars_beside_other_characters_stay_within_a_name() -> None:
    assert whole_name_stars("src/**/a**b/***/**") == "src/**/a*b/*/**"


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("a/" * 2000 + "a", "**/" * 20 + "*a" * 20 + "b"),
        ("a" * 4000, "*a" * 20 + "b"),
        ("a/" * 2000, "**a" * 20 + "b"),
        ("a/" * 2000, "**/a*/*" * 12 + "b"),
        ("a" * 3000 + "/" + "a" * 3000, "**/" + "*a*a" * 10 + "/**/b"),
    ],
)
def test_a_pattern_of_many_stars_is_matched_in_no_time(path: str, pattern: str) -> None:
    started = time.process_time()
    assert not matches_glob(path, [pattern])
    assert time.process_time() - started < 2


def naive(path: str, pattern: str, *, begins: bool = True) -> bool:
    """Every way of fitting a pattern is tried: slow, and right. `begins`: the pattern is at the beginning of a name."""
    if not pattern:
        return not path
    if pattern == "/**":
        return path.startswith("/") and len(path) > 1
    if begins and pattern.startswith("**/"):
        rests = (path[at + 1 :] for at in range(1, len(path)) if path[at] == "/")
        return naive(path, pattern[3:]) or any(naive(rest, pattern[3:]) for rest in rests)
    if pattern.startswith("**"):
        return any(naive(path[at:], pattern[2:], begins=False) for at in range(len(path) + 1))
    if pattern.startswith("*"):
        name = re.match(r"[^/]*", path)
        assert name is not None
        return any(naive(path[at:], pattern[1:], begins=False) for at in range(name.end() + 1))
    fits = path[:1] not in {"", "/"} if pattern[0] == "?" else path[:1] == pattern[0]
    return fits and naive(path[1:], pattern[1:], begins=pattern[0] == "/")


PATHS = st.lists(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=4).map("/".join)


@given(path=PATHS, pattern=st.text("ab/*?", max_size=8))
@example(path="abab", pattern="*ab")
@example(path="a/ab/b", pattern="**a*b/*")
@example(path="aab/ab", pattern="**/a*b")
def test_a_pattern_fits_what_it_fits_when_every_way_is_tried(path: str, pattern: str) -> None:
    assert (compile_globs((pattern,)).match(path) is not None) is naive(path, pattern)


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
        "ava.config.js",
        "bunfig.toml",
        ".nycrc",
        ".taprc",
        "src/conftest/__init__.py",
        "sitecustomize/__init__.py",
        ".forgejo/workflows/a.yml",
        ".gitea/workflows/a.yml",
        ".tekton/push.yml",
        ".cirrus.yml",
        ".mergify.yml",
        "cloudbuild.yaml",
        "jenkins/Jenkinsfile",
        ".pre-commit-config.yaml",
        ".husky/pre-commit",
        "lefthook.yml",
        ".devcontainer/devcontainer.json",
        "src/__mocks__/fs.js",
        "tsconfig.test.json",
        "jsconfig.json",
        ".env",
        "web/.env.test",
        ".envrc",
        ".python-version",
        ".nvmrc",
        "mise.toml",
        ".yarn/plugins/a.cjs",
        ".pnp.cjs",
        "go.work",
        "nose2.cfg",
    ],
)
def test_files_that_steer_tests_are_known(path: str) -> None:
    assert is_test_configuration(path)


@pytest.mark.parametrize(
    "path",
    [
        "x.egg-info/PKG-INFO",
        "src/X.EGG-INFO/entry_points.txt",
        "x-1.dist-info/METADATA",
        "a.egg-link",
        "src/a.pth",
        "python311._pth",
        "pyvenv.cfg",
        "entry_points.txt",
        "__editable___a_finder.py",
    ],
)
def test_metadata_of_installed_packages_is_known(path: str) -> None:
    assert is_installed_metadata(path)


@pytest.mark.parametrize(
    "path", ["eggs.py", "egg-info.md", "src/entry_points.py", "docs/a.path", ".env.example"]
)
def test_other_files_are_not(path: str) -> None:
    assert not is_installed_metadata(path)
    assert not is_test_configuration(path)


@given(st.text())
def test_any_name_is_judged_whatever_its_case(path: str) -> None:
    lowered = path.lower()
    assert is_test_path(path) == is_test_path(lowered)
    assert is_test_module(path) == is_test_module(lowered)
    assert is_test_configuration(path) in {True, False}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/_pytest/python.py", "code"),
        ("testing/test_python.py", "test"),
        ("lib/app.spec.ts", "test"),
        ("pkg/parse_test.py", "test"),
        ("conftest.py", "test"),
        ("docs/conf.py", "side"),
        ("CHANGES", "side"),
        ("package.json", "side"),
        ("setup.py", "side"),
        ("bin/tool", "code"),
        ("dist/app.js", "side"),
        ("assets/player.min.js", "side"),
        ("src/dist.js", "code"),
        ("src/contest.py", "code"),
        ("tests/readme.md", "test"),
    ],
)
def test_a_path_says_what_kind_a_file_is(path: str, kind: str) -> None:
    assert kind_of(path) == kind


@pytest.mark.parametrize(
    "path",
    [".env", "a/.env.local", "A/.ENV", "prod.env", "certs/server.pem", "x.key", ".ssh/config", "id_rsa", "id_ed25519_work",
     ".netrc", ".npmrc", "a/.aws/credentials", "main.tfstate", "secrets.yaml"],
)  # fmt: skip
def test_names_that_hold_secrets_are_known(path: str) -> None:
    assert is_secret_name(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "env.py",
        ".env.example",
        "src/environment.ts",
        "keys.py",
        "id_rsa.pub",
        "monkey",
        "pem.md",
        "aws/s3.py",
    ],
)
def test_ordinary_names_are_no_secrets(path: str) -> None:
    assert not is_secret_name(path)

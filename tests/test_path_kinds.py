import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.path_kinds import (
    is_secret_name,
    is_test_configuration,
    is_test_module,
    is_test_path,
    kind_of,
)


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
    ],
)
def test_files_that_steer_tests_are_known(path: str) -> None:
    assert is_test_configuration(path)


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

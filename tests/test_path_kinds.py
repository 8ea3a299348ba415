import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.path_kinds import is_test_configuration, is_test_module, is_test_path


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
def test_any_name_is_judged_without_an_exception(path: str) -> None:
    is_test_path(path)
    is_test_module(path)
    is_test_configuration(path)

"""The kind of file that a path names, by the usual naming rules alone: tests, their configuration, continuous
integration, files with secrets; and, more coarsely, for a ranking: code, a test, documentation and the like.
"""

import re
from typing import Literal

from clean_room_agent.globs import compile_globs

TEST_PATH = re.compile(
    r"(?:^|/)(?:tests?|testing|__tests__|specs?|e2e)/"
    r"|(?:^|/)test_[^/]*\.pyi?\Z|_test\.(?:py|go)\Z|(?:^|/)tests?\.py\Z"
    r"|\.(?:test|spec)\.[cm]?[jt]sx?\Z|(?:^|/)__snapshots__/"
)
TEST_MODULE = re.compile(
    r"(?:^|/)test_?[^/]*\.py\Z|[^/]_?tests?\.(?:py|go)\Z|\.(?:test|spec|cy)\.[cm]?[jt]sx?\Z"
    r"|(?:^|/)(?:tests?|__tests__|specs?)/(?:.*/)?[^/]*\.[cm]?[jt]sx?\Z"
)
SHADOW = re.compile(
    r"^(?:src/|lib/)?(?:pytest|_pytest|unittest|pluggy|doctest|nose2?|xdist"
    r"|iniconfig|packaging|pygments|exceptiongroup|py)(?:\.py|/__init__\.py)\Z"
)
TEST_CONFIGURATION = re.compile(
    r"(?:^|/)(?:conftest\.py|\.?pytest\.(?:ini|toml)|tox\.(?:ini|toml)|setup\.cfg|noxfile\.py|\.coveragerc"
    r"|(?:conftest|sitecustomize|usercustomize)/__init__\.py|sitecustomize\.py|usercustomize\.py|[^/]*\.pth"
    r"|(?:jest|vitest|vite|karma|babel|playwright|cypress|ava)\.(?:conf|config)\.[cm]?[jt]sx?|jest\.config\.json"
    r"|(?:jest|vitest|mocha|test)[.-]?(?:setup|preset|workspace|environment)\.(?:[cm]?[jt]sx?|json)"
    r"|setup-?tests?\.[cm]?[jt]sx?"
    r"|\.mocharc(?:\.[a-z]+)?|\.babelrc(?:\.[a-z]+)?|\.swcrc|\.nycrc(?:\.json)?|\.taprc|bunfig\.toml|\.npmrc|\.yarnrc(?:\.yml)?)\Z"
    r"|(?:^|/)(?:node_modules|site-packages|\.?venv)/"
    r"|(?:^|/)(?:tests?|testing|__tests__|specs?|e2e)/(?:.*/)?__init__\.pyi?\Z"
)
CI = re.compile(
    r"^\.(?:github|forgejo|gitea)/(?:workflows|actions)/|^\.gitlab-ci[^/]*\Z|^\.gitlab/ci/|^\.circleci/|^azure-pipelines[^/]*\Z"
    r"|(?:^|/)jenkinsfile\Z|^\.travis\.yml\Z|^bitbucket-pipelines\.yml\Z|^\.(?:drone|woodpecker|appveyor|cirrus|mergify)\.ya?ml\Z"
    r"|^cloudbuild\.ya?ml\Z|^\.pre-commit-config\.yaml\Z|^\.?lefthook\.ya?ml\Z"
    r"|^\.(?:buildkite|ci|tekton|woodpecker|husky|devcontainer)/"
)
FileKind = Literal["code", "test", "side"]
"""`side`: documentation, examples, setup files, data, and build output."""
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
SECRET_NAMES = (
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "*.gpg",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".pypirc",
    ".npmrc",
    ".htpasswd",
    ".git-credentials",
    ".dockercfg",
    "credentials",
    "credentials.json",
    "secrets.json",
    "secrets.toml",
    "secrets.yml",
    "secrets.yaml",
    "service-account*.json",
    "*.tfvars",
    "*.tfstate",
)
HARMLESS_NAMES = (".env.example", ".env.sample", ".env.template", ".env.dist", "*.example.env", "*.pub")
SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".kube"})
# One pattern for all: an index asks for every file of a repository.
SECRET = compile_globs(SECRET_NAMES)
NO_SECRET = compile_globs(HARMLESS_NAMES)


def is_test_path(path: str) -> bool:
    """Whether the file is a test by the usual naming rules."""
    return TEST_PATH.search(path.lower()) is not None


def is_test_configuration(path: str) -> bool:
    """Whether the whole file is about which tests run, or how, here or in continuous integration."""
    return TEST_CONFIGURATION.search(path.lower()) is not None or is_ci(path)


def is_ci(path: str) -> bool:
    """Whether the file is only read by continuous integration, hooks or development containers."""
    return CI.search(path.lower()) is not None


def is_test_module(path: str) -> bool:
    """Whether runners collect tests from the file, by its name."""
    return TEST_MODULE.search(path.lower()) is not None


def shadows_runner(path: str) -> bool:
    """Whether a new file of this name would be imported instead of Python's test runners."""
    return SHADOW.search(path.lower()) is not None


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
    """Whether the path is that of documentation, an example, a setup file, data or build output."""
    *folders, name = path.split("/")
    if not SIDE_FOLDERS.isdisjoint(folders):
        return True
    stem, dot, suffix = name.rpartition(".")
    if not dot or not stem:
        return name.isupper() or name in SIDE_NAMES  # CHANGES, LICENSE, AUTHORS
    return f".{suffix.lower()}" in SIDE_SUFFIXES or ".min." in name or name in SIDE_NAMES


def kind_of(path: str) -> FileKind:
    """The kind of the file at `path`; tests take precedence."""
    if is_test_file(path):
        return "test"
    return "side" if is_side_file(path) else "code"


def is_secret_name(path: str) -> bool:
    """Whether the file at `path` (forward slashes) must stay out of index, snapshot and prompts."""
    folder, _, name = path.lower().rpartition("/")
    if not SECRET_FOLDERS.isdisjoint(folder.split("/")):
        return True
    return SECRET.match(name) is not None and NO_SECRET.match(name) is None

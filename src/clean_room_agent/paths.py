r"""Paths in a repository: which glob patterns they match, and the kind of file that they name by the usual naming rules
alone: tests, their configuration, continuous integration, files with secrets; and, more coarsely, for a ranking: code, a
test, documentation and the like.

In a pattern, `*` and `?` stay within a name, and `**` crosses folders. It becomes one regular expression without
exponential backtracking, because patterns also come from the repository. The part before the next `**` is matched as early
as possible and then fixed (an atomic group): an earlier end leaves more of the path to what follows, so no other match could
do better. The same holds for each `*` and the text up to the next one. `src/**/test_*.py` becomes
`(?>src/)(?:.+?/)??test_[^/]*\.py`, and `a*b*c` becomes `a(?>[^/]*?b)[^/]*c`.
"""

import posixpath
import re
from collections.abc import Collection, Iterable
from functools import cache
from typing import Literal

from msgspec import Struct, field

TEST_PATH = (
    r"(?:^|/)(?:tests?|testing|__tests__|specs?|e2e)/"
    r"|(?:^|/)test_[^/]*\.pyi?\Z|_test\.(?:py|go)\Z|(?:^|/)tests?\.py\Z"
    r"|\.(?:test|spec)\.[cm]?[jt]sx?\Z|(?:^|/)__snapshots__/"
)
TEST_MODULE = (
    r"(?:^|/)test_?[^/]*\.py\Z|[^/]_?tests?\.(?:py|go)\Z|\.(?:test|spec|cy)\.[cm]?[jt]sx?\Z"
    r"|(?:^|/)(?:tests?|__tests__|specs?)/(?:.*/)?[^/]*\.[cm]?[jt]sx?\Z"
)
SHADOW = (
    r"^(?:src/|lib/)?(?:pytest|_pytest|unittest|pluggy|doctest|nose2?|xdist"
    r"|iniconfig|packaging|pygments|exceptiongroup|py)(?:\.py|/__init__\.py)\Z"
)
TEST_CONFIGURATION = (
    r"(?:^|/)(?:conftest\.py|\.?pytest\.(?:ini|toml)|tox\.(?:ini|toml)|setup\.cfg|noxfile\.py|\.coveragerc"
    r"|(?:conftest|sitecustomize|usercustomize)/__init__\.py|sitecustomize\.py|usercustomize\.py|[^/]*\.pth"
    r"|(?:jest|vitest|vite|karma|babel|playwright|cypress|ava)\.(?:conf|config)\.[cm]?[jt]sx?|jest\.config\.json"
    r"|(?:jest|vitest|mocha|test)[.-]?(?:setup|preset|workspace|environment)\.(?:[cm]?[jt]sx?|json)"
    r"|setup-?tests?\.[cm]?[jt]sx?"
    r"|\.mocharc(?:\.[a-z]+)?|\.babelrc(?:\.[a-z]+)?|\.swcrc|\.nycrc(?:\.json)?|\.taprc|bunfig\.toml|\.npmrc|\.yarnrc(?:\.yml)?)\Z"
    r"|(?:^|/)(?:node_modules|site-packages|\.?venv|__mocks__|\.yarn)/"
    r"|(?:^|/)(?:(?:ts|js)config[^/]*\.json|\.env(?!\.(?:example|sample|template|dist)\Z)(?:\.[^/]+)?|\.envrc|\.flaskenv"
    r"|\.(?:python|node)-version|\.nvmrc|\.tool-versions|\.?mise(?:\.[\w-]+)?\.toml|go\.work|(?:uv|hatch|pixi)\.toml"
    r"|\.pnp(?:\.loader)?\.[cm]?js|\.pnpmfile\.cjs|(?:lerna|nx|turbo)\.json|\.c8rc(?:\.json)?"
    r"|(?:nose2?|unittest|behave)\.(?:cfg|ini)|\.behaverc|\.noserc)\Z"
    r"|(?:^|/)(?:tests?|testing|__tests__|specs?|e2e)/(?:.*/)?__init__\.pyi?\Z"
)
INSTALLED = (
    r"(?:^|/)[^/]*\.(?:egg-info|dist-info)(?:/|\Z)"
    r"|(?:^|/)(?:[^/]*\.egg-link|[^/]*\.pth|[^/]*\._pth|pyvenv\.cfg|entry_points\.txt|__editable__[^/]*)\Z"
)
NAMED_TEST = r"(?:^|/)(?:test_[^/]*|[^/]*_test|tests?)\.py\Z|_test\.go\Z|\.(?:test|spec|cy)\.[cm]?[jt]sx?\Z"
HOLDS_TESTS = (
    r"(?m)^\s*(?:async\s+)?def\s+test|^\s*(?:test|it|describe|suite|specify)\s*(?:\.\w+\s*)*\(|^func Test"
)
TEST_DATA = (
    r"(?:^|/)(?:testdata|test[_-]?(?:data|fixtures|files)|(?:__)?fixtures?(?:__)?|__snapshots__|snapshots?|goldens?|cassettes)/"
    r"|\.(?:snap|ambr|golden|approved(?:\.\w+)?)\Z"
)
CODE = r"\.(?:pyi?|[cm]?[jt]sx?|vue|svelte|go|rs|rb|java|kt|c|h|cc|cpp|hpp|cs|php|swift)\Z"
PRODUCT_TEST_FOLDER = r"(?:^|.*/)(?:test|testing)(?=/)"
CI = (
    r"^\.(?:github|forgejo|gitea)/(?:workflows|actions)/|^\.gitlab-ci[^/]*\Z|^\.gitlab/ci/|^\.circleci/|^azure-pipelines[^/]*\Z"
    r"|(?:^|/)jenkinsfile\Z|^\.travis\.yml\Z|^bitbucket-pipelines\.yml\Z|^\.(?:drone|woodpecker|appveyor|cirrus|mergify)\.ya?ml\Z"
    r"|^cloudbuild\.ya?ml\Z|^\.pre-commit-config\.yaml\Z|^\.?lefthook\.ya?ml\Z"
    r"|^\.(?:buildkite|ci|tekton|woodpecker|husky|devcontainer)/"
)
TRANSLATION_OR_DATA = (
    r"\.(?:pot?|mo|xlf|xliff|arb|resx|csv|tsv|jsonl|ndjson|parquet|snap|svg|lock)\Z"
    r"|(?:^|/)(?:locales?|translations|i18n|l10n)/"
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
GLOB_PART = r"((?<![^/])\*\*/|/\*\*\Z|\*\*|\*|\?)"
DEEP_STARS = {"": "", "**": ".*?", "**/": "(?:.+?/)??"}
PARTIAL_STARS = r"(?P<whole>(?<![^/])\*\*(?![^/]))|\*{2,}"
BRACES = r"\{([^{}]*)\}"


class _Section(Struct):
    """A part of a pattern without `**` in it."""

    after: str
    """The token before it; "" at the pattern's beginning."""
    head: str = ""
    """The expression up to its first `*`."""
    starred: list[str] = field(default_factory=list)
    """For each `*`, the expression up to the next one."""

    def add(self, expression: str) -> None:
        if self.starred:
            self.starred[-1] += expression
        else:
            self.head += expression

    def render(self, *, last: bool) -> str:
        fixed, ending = (self.starred[:-1], self.starred[-1:]) if last else (self.starred, [])
        text = DEEP_STARS[self.after] + self.head
        text += "".join(f"(?>[^/]*?{expression})" for expression in fixed)
        text += "".join(f"[^/]*{expression}" for expression in ending)
        return text if last or not text else f"(?>{text})"


def matches_glob(path: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches the whole path, by the rules of a .gitignore: one without a slash matches a
    name in any folder, one that ends with a slash everything in the folder.
    """
    return compile_globs(tuple(map(_from_root, patterns))).match(path) is not None


@cache
def compile_globs(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """A regular expression for paths (relative to the root) that one of the patterns matches completely; without
    patterns it matches nothing.
    """
    alternatives = "|".join(map(_glob_expression, patterns))
    return re.compile(rf"(?:{alternatives})\Z" if patterns else r"(?!)", re.DOTALL)


def expand_braces(pattern: str) -> tuple[str, ...]:
    """The patterns that `{a,b}` expands to; nested braces are not supported."""
    found = re.search(BRACES, pattern)
    if found is None:
        return (pattern,)
    before, after = pattern[: found.start()], pattern[found.end() :]
    return tuple(one for choice in found[1].split(",") for one in expand_braces(before + choice + after))


def whole_name_stars(pattern: str) -> str:
    """The pattern with `**` replaced by `*` unless it is a whole name, as npm and TypeScript read it."""
    return re.sub(PARTIAL_STARS, lambda found: found["whole"] or "*", pattern)


def _from_root(pattern: str) -> str:
    rooted = pattern if "/" in pattern.rstrip("/") else f"**/{pattern}"
    return f"{rooted}**".removeprefix("/") if rooted.endswith("/") else rooted.removeprefix("/")


def _glob_expression(pattern: str) -> str:
    sections = [_Section(after="")]
    for piece in re.split(GLOB_PART, pattern):
        if piece in {"**", "**/"}:
            sections.append(_Section(after=piece))
        elif piece == "*":
            sections[-1].starred.append("")
        elif piece == "?":
            sections[-1].add("[^/]")
        else:
            sections[-1].add("/.+" if piece == "/**" else re.escape(piece))
    return "".join(section.render(last=section is sections[-1]) for section in sections)


def is_test_path(path: str) -> bool:
    """Whether the file is a test by the usual naming rules."""
    return re.search(TEST_PATH, path.lower()) is not None


def folder_of_tests(path: str) -> str:
    """The outermost folder for tests that the file is in, with a slash at its end; "" if there is none."""
    found = re.search(TEST_PATH, path.lower())
    return path[: found.end()] if found is not None and found[0].endswith("/") else ""


def is_test_configuration(path: str) -> bool:
    """Whether the whole file is about which tests run, or how, here or in continuous integration."""
    return re.search(TEST_CONFIGURATION, path.lower()) is not None or is_ci(path)


def is_ci(path: str) -> bool:
    """Whether the file is only read by continuous integration, hooks or development containers."""
    return re.search(CI, path.lower()) is not None


def is_test_module(path: str) -> bool:
    """Whether runners collect tests from the file, by its name."""
    return re.search(TEST_MODULE, path.lower()) is not None


def is_installed_metadata(path: str) -> bool:
    """Whether Python reads the file to know which packages and plugins are installed, or where to look for modules."""
    return re.search(INSTALLED, path.lower()) is not None


def is_named_test(path: str) -> bool:
    """Whether the name is that of a test in whatever folder, by the narrowest naming rules."""
    return re.search(NAMED_TEST, path.lower()) is not None


def is_code(path: str) -> bool:
    """Whether the file's suffix is that of a programming language."""
    return re.search(CODE, path.lower()) is not None


def is_test_data(path: str) -> bool:
    """Whether the file is data that tests compare with, by its name."""
    return re.search(TEST_DATA, path.lower()) is not None and not is_code(path)


def is_translation_or_data(path: str) -> bool:
    """Whether the file is no code, but what code reads: translations, tables, pictures, locks."""
    return re.search(TRANSLATION_OR_DATA, path.lower()) is not None and not is_code(path)


def is_test_support(path: str, text: str, paths: Collection[str]) -> bool:
    """Whether the file, one of `paths` with this `text`, is what tests are helped by: beside them, but no test itself.

    A folder `test` or `testing` inside a package offers help to others, like `numpy/testing`, unless it holds tests.
    """
    if not is_test_path(path) or is_named_test(path):
        return False
    if is_code(path) and re.search(HOLDS_TESTS, text):
        return False
    offered = re.match(PRODUCT_TEST_FOLDER, path)
    if offered is None or is_test_path(path[offered.end() :]):
        return True
    folder = offered[0]
    parent = folder.rpartition("/")[0]
    in_package = bool(parent) and f"{parent}/__init__.py" in paths
    if not in_package:
        return True
    inside = (one[len(folder) + 1 :] for one in paths if one.startswith(f"{folder}/"))
    return any(is_named_test(one) and not is_test_path(posixpath.dirname(one) + "/") for one in inside)


def shadows_runner(path: str) -> bool:
    """Whether a new file of this name would be imported instead of Python's test runners."""
    return re.search(SHADOW, path.lower()) is not None


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
    is_secret = compile_globs(SECRET_NAMES).match(name) is not None
    return is_secret and compile_globs(HARMLESS_NAMES).match(name) is None

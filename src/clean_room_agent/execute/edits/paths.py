"""Which paths an edit or a plan may name: rules on the text of the path, without a look at any file system."""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

MAX_PATH = 4096
MAX_SEGMENT_BYTES = 255
MAX_DEPTH = 40
CONTROL_FOLDERS = frozenset({".git", ".clean_room", ".hg", ".svn"})
CONTROL_FILES = frozenset({".gitmodules", ".gitattributes"})
"""They make git run programs or fetch from elsewhere."""
SHORT_ALIAS = re.compile(r"(?:\.?git|gi[0-9a-z]{2,4}|clean_?)~\d+\Z")
"""What Windows may call a control folder: `GIT~1`."""
DEVICE = re.compile(
    r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$)(?:\..*)?\Z", re.IGNORECASE
)
DRIVE = re.compile(r"[A-Za-z]:")
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
GLOB_PIECE = re.compile(r"(\*\*/|/\*\*\Z|\*\*|\*|\?)")
GLOB_MEANING = {"**/": "(?:[^/]+/)*", "/**": "/.+", "**": ".*", "*": "[^/]*", "?": "[^/]"}
TEST_PATH = re.compile(
    r"(?:^|/)(?:tests?|testing|__tests__|specs?|e2e)/"
    r"|(?:^|/)test_[^/]*\.pyi?\Z|_test\.(?:py|go)\Z|(?:^|/)tests?\.py\Z"
    r"|\.(?:test|spec)\.[cm]?[jt]sx?\Z|(?:^|/)__snapshots__/"
)
TEST_CONFIGURATION = re.compile(
    r"(?:^|/)(?:conftest\.py|pytest\.ini|\.pytest\.ini|tox\.ini|setup\.cfg|noxfile\.py|\.coveragerc"
    r"|sitecustomize\.py|usercustomize\.py|[^/]*\.pth"
    r"|(?:jest|vitest|vite|karma|babel|playwright|cypress)\.(?:conf|config)\.[cm]?[jt]sx?|jest\.config\.json"
    r"|\.mocharc(?:\.[a-z]+)?|\.babelrc(?:\.[a-z]+)?)\Z"
    r"|^\.github/(?:workflows|actions)/|^\.gitlab-ci[^/]*\Z|^\.circleci/|^azure-pipelines[^/]*\Z|^jenkinsfile\Z"
    r"|^\.travis\.yml\Z"
)


def path_fault(path: str) -> str:
    """Why `path` cannot name a file of the repository, in words; "" when it can."""
    if not path or len(path) > MAX_PATH:
        return "the path is empty or too long"
    if any(unicodedata.category(character) in HIDDEN_CATEGORIES for character in path):
        return "the path holds a control, format or unassigned character"
    if "\\" in path:
        return "paths are written with forward slashes"
    if path[0] in "/~" or DRIVE.match(path):
        return "the path must be relative to the repository's root"
    segments = path.split("/")
    if len(segments) > MAX_DEPTH:
        return "the path is too deep"
    return next((fault for fault in map(_segment_fault, segments) if fault), "")


def is_control_path(path: str) -> bool:
    """Whether `path` lies in, or is, what git or cra itself is steered by, however the name is disguised."""
    segments = [_plain(segment) for segment in path.split("/")]
    return segments[-1] in CONTROL_FILES or any(
        segment in CONTROL_FOLDERS or SHORT_ALIAS.match(segment) is not None for segment in segments
    )


def is_test_path(path: str) -> bool:
    """Whether the file is a test by the usual naming rules."""
    return TEST_PATH.search(path.lower()) is not None


def is_test_configuration(path: str) -> bool:
    """Whether the file as a whole decides which tests run, or how."""
    return TEST_CONFIGURATION.search(path.lower()) is not None


def matches_any(path: str, patterns: Iterable[str]) -> bool:
    """Whether a glob pattern fits: one without a slash fits the name at any depth, `**` any number of folders."""
    return any(_glob(pattern).match(path) is not None for pattern in patterns)


def _segment_fault(segment: str) -> str:
    if segment in {"", ".", ".."}:
        return "the path holds an empty segment, '.' or '..'"
    if len(segment.encode("utf-8")) > MAX_SEGMENT_BYTES:
        return "a name in the path is too long"
    if segment != segment.strip(" ") or segment.endswith("."):
        return "a name in the path begins or ends with a blank, or ends with a dot"
    if any(character in '<>:"|?*' for character in segment):
        return 'the path holds one of <>:"|?*'
    if DEVICE.match(segment):
        return f"{segment} is the name of a device on some systems"
    return ""


def _plain(segment: str) -> str:
    """What file systems that fold case, width or invisible characters make of a name."""
    folded = unicodedata.normalize("NFKC", segment.split(":", 1)[0])
    kept = (
        character
        for character in folded
        if unicodedata.category(character) not in {"Cf", "Cc"} and not "\ufe00" <= character <= "\ufe0f"
    )
    return "".join(kept).rstrip(" .").casefold()


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    anchored = pattern if "/" in pattern.rstrip("/") else f"**/{pattern}"
    if anchored.endswith("/"):
        anchored += "**"
    pieces = GLOB_PIECE.split(anchored.removeprefix("/"))
    return re.compile("".join(GLOB_MEANING.get(piece, re.escape(piece)) for piece in pieces) + r"\Z")

"""Which paths an edit or a plan may name, judged by the path alone, without looking at a file system."""

import re
import unicodedata

MAX_PATH = 4096
MAX_SEGMENT_BYTES = 255
MAX_DEPTH = 40
CONTROL_FOLDERS = frozenset({".git", ".clean_room", ".hg", ".svn", ".bzr", ".jj"})
CONTROL_FILES = frozenset({".gitmodules", ".gitattributes", ".worktreeinclude"})
"""They make git run programs or fetch from elsewhere, or name private files that tests are then shown."""
SHORT_ALIAS = re.compile(r"(?:\.?git|gi[0-9a-z]{2,4}|clean_?|cl[0-9a-f]{4})~\d+\Z")
"""What Windows may call a control folder: `GIT~1`."""
DEVICE = re.compile(
    r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$)(?:\..*)?\Z", re.IGNORECASE
)
DRIVE = re.compile(r"[A-Za-z]:")
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that take no place on a screen, beside those of the categories below."""
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})


def path_fault(path: str) -> str:
    """Why `path` cannot name a file of the repository, in words; "" when it can."""
    if not path or len(path) > MAX_PATH:
        return "the path is empty or too long"
    if INVISIBLE.search(path) or any(
        unicodedata.category(character) in HIDDEN_CATEGORIES for character in path
    ):
        return "the path holds a control, format, invisible or unassigned character"
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
    folded = INVISIBLE.sub("", unicodedata.normalize("NFKC", segment.split(":", 1)[0]))
    kept = (character for character in folded if unicodedata.category(character) not in HIDDEN_CATEGORIES)
    return "".join(kept).rstrip(" .").upper().casefold()

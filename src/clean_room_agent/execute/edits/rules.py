"""The rules for edits: an edit may name a path of the repository, and change the step's targets and what its context
shows, but never what protects the tests, and never leave out code by a line such as `# ... rest unchanged`.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct, field

from clean_room_agent.artifacts.context import ContextPackage
from clean_room_agent.artifacts.edits import EditCode, PatchEdit
from clean_room_agent.config import load_toml
from clean_room_agent.execute.edits.format import is_prose
from clean_room_agent.paths import is_installed_metadata, is_test_configuration, is_test_path, matches_glob

if TYPE_CHECKING:
    from clean_room_agent.artifacts.plans import FileRole, TargetFile

MAX_PATH_BYTES = 1024
"""What every system takes, below the folder of a worktree."""
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
"""Invisible characters in addition to those of the categories below."""
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
PACKAGE_JSON_TEXT = "scripts jest vitest mocha ava babel type exports imports main module browser config nyc c8 tap workspaces"
PACKAGE_JSON_TEST_KEYS = tuple(PACKAGE_JSON_TEXT.split())
UNREADABLE = object()
NOTHING: AbstractSet[str] = frozenset()
NO_OTHERS: Mapping[str, str] = MappingProxyType({})
COMMENT = re.compile(r"(?:#+|//+|/\*+|--|<!--|\{/\*+|\*|;+)\s*(?P<words>.*?)\s*(?:\*+/\}?|-->)?\Z")
DOTS = r"(?:\.{3,}|…)"
BARE = re.compile(rf"[\[(]?\s*{DOTS}\s*[\])]?\Z")
EXAMPLE_DOTS = re.compile(r"\W{1,3}[ \t]{2,}")
"""Indented inside a comment: the comment shows code, and leaves out code of its example."""
LEADING_DOTS = re.compile(rf"[\[(]?\s*{DOTS}\s*(?P<words>[\w ,'/()-]{{1,80}}?)\s*{DOTS}?\s*[\])]?\Z")
TRAILING_DOTS = re.compile(rf"[\[(]?\s*(?P<words>[\w ,'/()-]{{1,80}}?)\s*{DOTS}\s*[\])]?\Z")
HINTS = re.compile(
    r"\b(?:rest|remain(?:s|ing|der)?|existing|unchanged|untouched|omitted|same as|as before|as is|previous|other|more|"
    r"code here|snip(?:ped)?|implementation)\b",
    re.IGNORECASE,
)
_UNIT = r"(?:code|file|function|class|method|implementation|body|module|contents?|logic|tests?|imports?|methods|functions)"
_TAIL = (
    r"(?:(?:is|are|remains?|stays?|goes|continues)\s+)?"
    r"(?:here|unchanged|untouched|the same|as is|(?:same )?as before|omitted(?: for brevity)?)"
)
WORDED = re.compile(
    rf"\(?(?:the\s+)?(?:"
    rf"(?:rest|remainder)\s+of\s+(?:(?:the|this|your)\s+)?(?:\w+\s+){{0,2}}{_UNIT}(?:\s+{_TAIL})?"
    rf"|(?:rest|everything else|all else)\s+{_TAIL}"
    rf"|(?:existing|unchanged)\s+{_UNIT}(?:\s+{_TAIL})?"
    rf"|(?:remaining|original|previous|other)\s+{_UNIT}\s+{_TAIL}"
    rf"|(?:code\s+|everything\s+)?(?:unchanged|same as before|no changes?(?:\s+(?:here|needed))?)"
    rf"|(?:code\s+)?omitted(?:\s+for brevity)?"
    rf")\.?\)?\Z",
    re.IGNORECASE,
)
COMMENT_TAIL = re.compile(r"(?:^|\s)#.*\Z")
DEFINITION = re.compile(r"\s*(?:async\s+)?def\s+(?P<name>\w+)")
EXEMPT_CLASS = re.compile(r"\s*class\b.*\b(?:Protocol|ABC)\b")
EXEMPT_DECORATOR = re.compile(r"\s*@.*\b(?:overload|abstractmethod|abstractproperty)\b")
MOST_DOTS = 100
"""Lines of bare dots that are examined, each with everything above it."""
DOTS_ARE_TEXT = frozenset({".pyi", ".yaml", ".yml"})


def path_fault(path: str) -> str:
    """Why `path` cannot name a file of the repository, in words; "" when it can."""
    if not path or len(path.encode(errors="replace")) > MAX_PATH_BYTES:
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
    """Whether `path` is, or is inside, something that controls git or cra itself, however the name is disguised."""
    segments = [_plain_segment(segment) for segment in path.split("/")]
    return segments[-1] in CONTROL_FILES or any(
        segment in CONTROL_FOLDERS or SHORT_ALIAS.match(segment) is not None for segment in segments
    )


def _fold_case(name: str) -> str:
    """The name as file systems compare it that fold case or normalize Unicode."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


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


def _plain_segment(segment: str) -> str:
    """The name as seen by file systems that fold case, width or invisible characters."""
    folded = INVISIBLE.sub("", unicodedata.normalize("NFKC", segment.split(":", 1)[0]))
    kept = (character for character in folded if unicodedata.category(character) not in HIDDEN_CATEGORIES)
    return "".join(kept).rstrip(" .").upper().casefold()


class Places(Collection[str]):
    """The files of a tree that edits may change, and what else is in it."""

    def __init__(
        self, files: Iterable[str], others: Mapping[str, str] = NO_OTHERS, *, only: AbstractSet[str] = NOTHING
    ) -> None:
        """`others` says what stands at paths that are not for edits: "a link". `only` are the files that the user allows to be
        changed, besides tests; empty: all.
        """
        self._files = frozenset(files) - others.keys()
        self._others = others
        self._only = only

    @classmethod
    def of(cls, paths: Collection[str]) -> "Places":
        """The paths as places; if nothing else is known, there are only these files."""
        return paths if isinstance(paths, Places) else cls(paths)

    def __contains__(self, path: object) -> bool:
        return path in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def outside(self, path: str) -> str:
        """Why the user does not allow that the file is changed or created, in words; "" if it is allowed."""
        if not self._only or path in self._only or is_test_path(path):
            return ""
        return f"{path} is none of the files that --file names: {', '.join(sorted(self._only))}"

    def obstacle(
        self, path: str, *, made: AbstractSet[str] = NOTHING, gone: AbstractSet[str] = NOTHING
    ) -> str:
        """Why `path` is no file for edits and cannot become one, in words; "" if it is or can. `made` and `gone` are files
        that are created and deleted before.
        """
        outside = self.outside(path)
        if outside or (path in self and path not in gone):
            return outside
        folder = ""
        for name in path.split("/"):
            here = f"{folder}{name}"
            is_file = here in made or (here in self and here not in gone)
            what = "a file" if is_file else self._others.get(here, "")
            if here == path and what:
                return "" if is_file else f"{path} is {what}"
            if what:
                return f"{here} is {what}, so nothing can be inside it"
            names = self._names_in(folder, made, gone)
            if name not in names:
                twin = next((other for other in sorted(names) if _fold_case(other) == _fold_case(name)), "")
                return f"only letter case or Unicode form tells it from {folder}{twin}" if twin else ""
            folder = f"{here}/"
        return f"{path} is a folder"

    def _names_in(self, folder: str, made: AbstractSet[str], gone: AbstractSet[str]) -> set[str]:
        """What stands directly inside the folder ("" or ending with a slash)."""
        standing = (path for path in chain(self._files, self._others) if path not in gone)
        return {
            path.removeprefix(folder).partition("/")[0]
            for path in chain(standing, made)
            if path.startswith(folder)
        }


class EditRules(Struct, frozen=True, kw_only=True):
    """The rules for one step's edits."""

    targets: "tuple[TargetFile, ...]"
    """Of the step."""
    planned: tuple[str, ...] = ()
    """Other paths that the plan names; tests and test configuration among them may be edited if the context showed
    them.
    """
    protected: tuple[str, ...] = ()
    """Glob patterns of `[edit].protected`."""
    scripts: tuple[str, ...] = ()
    """What the test commands run and tests read; like tests, edited only if the plan names it."""
    uneditable: Mapping[str, str] = field(default_factory=dict)
    """Paths whose files are not text that survives a round trip, or would be none, and new ones that would be loaded in place
    of others: why, by path.
    """
    places: Places = Places(())
    """Of the tree that is edited."""

    def role(self, path: str) -> "FileRole | None":
        """What the step has to do with `path`; None if it is not a target."""
        return next((target.role for target in self.targets if target.path == path), None)

    def is_planned(self, path: str) -> bool:
        """Whether the plan names `path`."""
        return self.role(path) is not None or path in self.planned


class EditOutcome(Struct, frozen=True):
    """What becomes of one edit, most often why it is refused."""

    code: EditCode
    detail: str = ""
    tier: int = 0
    """Of the match that decided; 0 if none did."""
    lines: tuple[int, ...] = ()
    """1-based first lines of the places that matched."""
    nearest: str = ""
    """The most similar real text, if the search text was not found."""


def refuse_path(
    edit: PatchEdit, rules: EditRules, package: ContextPackage, *, exists: bool
) -> EditOutcome | None:
    """Why this step may not change the edit's file; None if it may."""
    fault = path_fault(edit.file_path)
    if fault and not is_control_path(edit.file_path):
        return EditOutcome(EditCode.WRONG_FILE, fault)
    outside = rules.places.outside(edit.file_path)
    if outside:
        return EditOutcome(EditCode.PROTECTED, outside)
    protection = _protection_reason(edit.file_path, rules, exists=exists)
    if protection:
        return EditOutcome(EditCode.PROTECTED, f"{edit.file_path} {protection}")
    return _refuse_unplanned(edit, rules, package)


def _protection_reason(path: str, rules: EditRules, *, exists: bool) -> str:
    """What protects the file, whatever the edit; "" if nothing does."""
    if is_control_path(path):
        return "steers git or cra and is never edited"
    if is_installed_metadata(path):
        return "tells Python what is installed, and is never edited"
    if matches_glob(path, rules.protected):
        return "is protected by [edit].protected"
    if path in rules.uneditable:
        return f"is not editable: {rules.uneditable[path]}"
    decides = is_test_path(path) or is_test_configuration(path) or path in rules.scripts
    if exists and not rules.is_planned(path) and decides:
        return "decides whether tests pass, and the plan does not name it"
    return ""


def _refuse_unplanned(edit: PatchEdit, rules: EditRules, package: ContextPackage) -> EditOutcome | None:
    path, role = edit.file_path, rules.role(edit.file_path)
    shown = {item.path for item in package.primary()}
    if role is None and path not in shown:
        editable = ", ".join(sorted(shown.union(target.path for target in rules.targets)))
        detail = f"{path} is neither a target of this step nor shown; edit only: {editable}"
        return EditOutcome(EditCode.WRONG_FILE, detail)
    if edit.kind == "delete" and role != "delete":
        return EditOutcome(EditCode.PROTECTED, f"the plan does not say that {path} is to be deleted")
    if edit.kind == "create" and role is None:
        return EditOutcome(EditCode.WRONG_FILE, f"{path} is not a target of this step")
    return None


def refuse_content(path: str, before: str, after: str, rules: EditRules) -> EditOutcome | None:
    """Why the changed text is refused: it changes how tests are run, and the plan does not name the file."""
    if rules.is_planned(path) or tool_settings(path, before) == tool_settings(path, after):
        return None
    detail = f"this changes how the project's tools and tests run, and the plan does not name {path}"
    return EditOutcome(EditCode.PROTECTED, detail)


def tool_settings(path: str, text: str) -> object:
    """The settings for tools and tests in a file that configures more than tests; the same for all other files."""
    name = PurePosixPath(path).name.lower()
    if name == "pyproject.toml":
        try:
            data = load_toml(text)
        except (ValueError, RecursionError):
            return UNREADABLE, text
        project = data.get("project")
        entries = project.get("entry-points") if isinstance(project, dict) else None
        return data.get("tool"), data.get("build-system"), entries
    if name == "package.json":
        try:
            package = json.loads(text)
        except (ValueError, RecursionError):
            return UNREADABLE, text
        return [package.get(key) for key in PACKAGE_JSON_TEST_KEYS] if isinstance(package, dict) else text
    if name == "go.mod":
        return re.findall(r"(?m)^.*(?:=>|toolchain).*$", text)
    return None


def only_symbols_shown(path: str, rules: EditRules, package: ContextPackage) -> bool:
    """Whether the step may only edit the symbols of `path` that the context shows."""
    return rules.role(path) is None and all(
        item.symbol is not None for item in package.primary() if item.path == path
    )


def elided_line(path: str, new: str, *, old: str, file_text: str) -> str:
    """The first line of `new` that is a placeholder for omitted text and not in the file; "" if there is none.

    `old` is what `new` replaces. A bare `...` is Python if it is the whole body of a stub, a class or a block; it is an
    elision if the file has a body for the function of that name.
    """
    known = {line.strip() for line in file_text.split("\n")}
    lines = new.split("\n")
    for line in lines:
        if _is_marked(line) and line.strip() not in known:
            return line.strip()
    bare = [index for index, line in enumerate(lines) if BARE.match(line.strip())]
    if len(bare) <= sum(BARE.match(line.strip()) is not None for line in old.split("\n")):
        return ""
    suffix = PurePosixPath(path).suffix.lower()
    if is_prose(path) or suffix in DOTS_ARE_TEXT:
        return ""
    if suffix == ".py":
        bare = [index for index in bare[:MOST_DOTS] if not _is_python_body(lines, index, file_text)]
    return lines[bare[0]].strip() if bare else ""


def elided_search(search: str, file_text: str) -> str:
    """The first line of a search text that is a placeholder for omitted text and not in the file."""
    known = {line.strip() for line in file_text.split("\n")}
    for line in search.split("\n"):
        if (_is_marked(line) or BARE.match(line.strip())) and line.strip() not in known:
            return line.strip()
    return ""


def _is_marked(line: str) -> bool:
    """Whether the line says in a comment, or in words next to dots, that something is left out."""
    text = line.strip()
    comment = COMMENT.match(text)
    if comment is not None:
        text = comment["words"]
        if BARE.match(text):
            return not EXAMPLE_DOTS.match(line.strip())
        if WORDED.match(text):
            return True
    dotted = LEADING_DOTS.match(text)
    if dotted is not None:
        return HINTS.search(dotted["words"]) is not None
    dotted = TRAILING_DOTS.match(text)
    return dotted is not None and WORDED.match(dotted["words"]) is not None


def _is_python_body(lines: list[str], index: int, file_text: str) -> bool:
    """Whether the bare dots at `index` are the only statement of a block whose body the file does not have."""
    if _is_in_docstring(lines[:index]):
        return True
    above = [number for number in range(index - 1, -1, -1) if _without_comment(lines[number]).strip()]
    if above and lines[above[0]].lstrip().startswith((">>>", "...", "Traceback")):
        return True
    indent = _indent_width(lines[index])
    below = next((line for line in lines[index + 1 :] if line.strip()), "")
    header = next((number for number in above if _indent_width(lines[number]) < indent), None)
    if (
        header is None
        or (below and _indent_width(below) >= indent)
        or not _without_comment(lines[header]).endswith(":")
    ):
        return False
    between = [line.strip() for line in lines[header + 1 : index] if _without_comment(line)]
    if between and not (between[0].startswith(('"', "'", 'r"')) and between[-1].endswith(('"', "'"))):
        return False
    if lines[header].lstrip().startswith(")"):
        header = next(
            (n for n in range(header - 1, -1, -1) if _indent_width(lines[n]) <= _indent_width(lines[header])),
            header,
        )
    definition = DEFINITION.match(lines[header])
    if definition is None or _is_exempt(lines, header):
        return True
    return not _has_body(definition["name"], file_text)


def _is_in_docstring(above: list[str]) -> bool:
    """Whether a string over several lines is open, as far as these lines show."""
    text = "\n".join(above)
    return any(text.count(quotes) % 2 for quotes in ('"""', "'''"))


def _without_comment(line: str) -> str:
    return COMMENT_TAIL.sub("", line).rstrip()


def _is_exempt(lines: list[str], header: int) -> bool:
    """Whether the function is decorated as a stub or is in an abstract class."""
    for line in reversed(lines[:header]):
        if EXEMPT_DECORATOR.match(line) and _indent_width(line) == _indent_width(lines[header]):
            return True
        if line.strip() and _indent_width(line) < _indent_width(lines[header]):
            return EXEMPT_CLASS.match(line) is not None
    return False


def _has_body(name: str, file_text: str) -> bool:
    """Whether the file defines `name` with more than dots."""
    for match in re.finditer(
        rf"^[ \t]*(?:async[ \t]+)?def[ \t]+{re.escape(name)}\b", file_text, re.MULTILINE
    ):
        body = re.match(r"[^:]*(?:\([^)]*\))?[^:\n]*:[ \t]*(?:\n[ \t]*)?(\S+)", file_text[match.end() :])
        if body is None or body[1] != "...":
            return True
    return False


def _indent_width(line: str) -> int:
    return len(line) - len(line.lstrip())

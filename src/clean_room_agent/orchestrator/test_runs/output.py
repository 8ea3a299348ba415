"""Normalises the output of test runners for prompts: the same run gives the same text, wherever and whenever it runs.
Also reads the expected and the actual value of a failed assertion, by each runner's conventions, in full up to a limit.

Gone or replaced: terminal escapes, absolute paths, temporary folders, durations, clock times at the start of a
line, addresses, UUIDs, passing port numbers, what tools call JavaScript's imports, pytest's header and caret lines (they
differ between Python versions). A failure's report is reduced to why and where: error lines, values, and frames with their
source in the tree.
"""

import ast
import posixpath
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from clean_room_agent import safe_open
from clean_room_agent.artifacts.evidence import FailingTest, StackFrame
from clean_room_agent.artifacts.test_results import Failure
from clean_room_agent.languages.printed_values import strip_escapes, values_in
from clean_room_agent.languages.relations import of_operator
from clean_room_agent.languages.test_runners import frames_in
from clean_room_agent.syntax import MAX_PARSED_BYTES, statement_spans

MOST_LINES = 1000
"""Lines at the beginning and at the end of an output that are used: normalising a megabyte takes a quarter of a second.
"""
HEADER = re.compile(
    r"(?:=+ test session starts =+"
    r"|platform \S+ -- Python .*"
    r"|(?:cachedir|rootdir|configfile|plugins|testpaths|inifile|hypothesis profile|asyncio): .*"
    r"|hypothesis profile .*"
    r"|Using --randomly-seed=.*|Random(?:ized with)? seed:? \S+"
    r"|timeout: .*s|timeout method: .*|timeout func_only: .*"
    r"|created: \d+/\d+ workers?.*|\d+ workers \[\d+ items?\].*|bringing up nodes\.\.\.|scheduling tests via .*"
    r"|-+ generated xml file: .* -+)"
)
CARETS = re.compile(r"(?:E {3})?[ \t]{4,}[~^]*\^[~^ ]*")
DURATION = r" in \d+(?:\.\d+)?(?:s| seconds)(?: \(\d+:\d\d:\d\d\))?"
CODE_HOME = re.compile(r"(?<![^\s\"'(=<>:,])[^\s\"'(=<>:,]*/lib/python3\.\d+/(?:(site|dist)-packages/)?")
REPLACEMENTS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    # From the beginning of a word alone: begun at each slash, a long word would take the square of its length.
    (
        "/pytest-of-",
        re.compile(r"(?<![^\s\"':])([^\s\"':/]*)(?:/[^\s\"':]*)?/pytest-of-[^/\s]+/pytest-(?:\d+|current)"),
        r"\1<tmp>",
    ),
    ("tmp/", re.compile(r"(?:/private)?/(?:var/)?tmp/(?:tmp[a-z0-9_]{8}|[\w.]+-[A-Za-z0-9]{6})\b"), "<tmp>"),
    ("var/folders/", re.compile(r"/(?:private/)?var/folders/[^/\s]+/[^/\s]+/T\b"), "<tmp>"),
    ("at 0x", re.compile(r"\bat 0x[0-9a-fA-F]+"), "at 0x…"),
    ("0x", re.compile(r"\b0x[0-9a-fA-F]{9,}"), "0x…"),
    ("-", re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<uuid>"),
    ("id=", re.compile(r"\b(p?id=)\d{3,}\b", re.IGNORECASE), r"\1<id>"),
    ("pid ", re.compile(r"\b(pid )\d{3,}\b", re.IGNORECASE), r"\1<id>"),
    ("process ", re.compile(r"\b(process )\d{3,}\b", re.IGNORECASE), r"\1<id>"),
    (
        ":",
        re.compile(r"(127\.0\.0\.1|localhost|\[::1\]):(?:3[2-9]\d{3}|[45]\d{4}|6[0-5]\d{3})\b"),
        r"\1:<port>",
    ),
    (
        ":",
        re.compile(r"^\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?", re.MULTILINE),
        "<time>",
    ),
    # Centred, so its marks tell the duration.
    (" =", re.compile(rf"^=+ (.*?){DURATION} =+$", re.MULTILINE), r"=== \1 ==="),
    (" in ", re.compile(rf"{DURATION}(?=[ =.\n]|$)"), ""),
    (" (", re.compile(r" \(\d+(?:\.\d+)? ?(?:ms|s|m)\)"), ""),
    ("s ", re.compile(r"^\d+(?:\.\d+)?s (call|setup|teardown) ", re.MULTILINE), r"\1 "),
    ("duration_ms", re.compile(r"^([ \t]*(?:# |ℹ )?duration_ms:?) [\d.]+$", re.MULTILINE), r"\1"),  # noqa: RUF001 - node prints it
    ("", re.compile(r"^((?:Time:|   Start at|   Duration) ).*$", re.MULTILINE), r"\1"),
    ("s", re.compile(r"^([ \t]+[✓×❯↓✔✖].*?) \d+(?:\.\d+)? ?m?s$", re.MULTILINE), r"\1"),  # noqa: RUF001 - vitest's mark
    # What was imported, as V8 prints it of code that a tool has translated.
    ("(0 , ", re.compile(r"\(0 , [\w$]+\.([\w$.]+)\)"), r"\1"),
    ("__vi", re.compile(r"\b__vi(?:te_ssr)?_import_\d+__\.(?=[A-Za-z_$])"), ""),
    ("[gw", re.compile(r"^\[gw\d+\] (?:\[ *\d+%\] )?", re.MULTILINE), ""),
)
"""(what is, in lower case, part of all that the pattern finds; the pattern; its replacement): most texts have none of
these parts, and looking for them takes a hundredth of the time.
"""
MAX_VALUE = 2_000
"""Characters of a value; of a longer one the beginning, the end, and the surroundings of the first difference."""
AROUND = 200
"""Characters before the first difference that are kept."""
TEXT = re.compile(r"[bru]*['\"]")
MEMBER = "to be in "
CONTAINER = "to contain "
"""What is expected of a member, before the container; and of a container, before the member."""
MAX_CONTAINER = 400
"""Characters of a container: its members say little, and they would be in every prompt."""
FIXED = re.compile(r"expect|want|should|correct|golden|reference|desired|baseline", re.IGNORECASE)
FOUND = re.compile(r"actual|result|got|response|received|output|observed", re.IGNORECASE)
EQUALITY = frozenset({"", "==", "is"})
LITERAL = (
    ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.Set | ast.UnaryOp | ast.expr_context | ast.unaryop
)


def normalise(text: str, roots: Sequence[Path]) -> str:
    """`text` without what differs between two runs of the same code; paths below `roots` become relative."""
    kept = [
        line
        for line in strip_escapes(text).split("\n")
        if not HEADER.fullmatch(line.strip()) and not CARETS.fullmatch(line)
    ]
    plain = relative_paths("\n".join(kept), roots)
    if "/lib/python3." in plain:
        plain = CODE_HOME.sub(lambda match: "site-packages/" if match[1] else "python/", plain)
    lowered = plain.lower()
    for needle, pattern, replacement in REPLACEMENTS:
        if needle in lowered:
            plain = pattern.sub(replacement, plain)
    return plain


def first_and_last_lines(text: str) -> str:
    """A very long text's first and last lines, the cut marked; any other text as it is.

    Lines are counted, not characters, since two runs of the same code print the same number of lines.
    """
    lines = text.split("\n")
    if len(lines) <= 2 * MOST_LINES:
        return text
    left_out = len(lines) - 2 * MOST_LINES
    return "\n".join([*lines[:MOST_LINES], f"[... {left_out} lines left out ...]", *lines[-MOST_LINES:]])


def normalise_name(name: str, roots: Sequence[Path]) -> str:
    """A test's name without roots and addresses, so that it is the same test in the next run."""
    plain = relative_paths(strip_escapes(name), roots)
    return re.sub(r"(\bat |\b)0x[0-9a-fA-F]{9,}", r"\g<1>0x…", plain)


def relative_paths(text: str, roots: Sequence[Path]) -> str:
    """`text` with the paths below `roots`, however they are spelt, relative to the root; a root itself is `.`."""
    for spelling, pattern in _root_patterns(tuple(roots)):
        if spelling in text:
            text = pattern.sub(lambda match: "" if match[1] else ".", text)
    return text


@lru_cache(maxsize=16)
def _root_patterns(roots: tuple[Path, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Each spelling of the roots, the longest first, with the pattern of what begins with it.

    Kept, because following links costs more than the rest, and a run of many tests has thousands of texts.
    """
    spellings = {str(root) for root in roots} | {str(root.resolve()) for root in roots}
    return tuple(
        (root, re.compile(rf"(?:file://)?{re.escape(root)}(/|(?![\w.-]))"))
        for root in sorted(spellings - {"/"}, key=lambda spelling: (-len(spelling), spelling))
    )


def label(operator: str, left: str, right: str, statement: str) -> tuple[str, str]:
    """(expected, actual) of a comparison in Python whose left and right side are known.

    By the convention of pytest and unittest the tested value is on the left; if the statement has a literal or a name
    like `expected` there, and none on the right, it is the other way round. What is expected by an operator other than
    equality is said in words: `to be in [1, 2]`.
    """
    is_reversed = bool(right) and _is_reversed(statement)
    expected, actual = (left, right) if is_reversed else (right, left)
    if operator not in EQUALITY:
        expected = of_operator(operator, expected, is_right=is_reversed)
    return expected, actual


def _is_reversed(statement: str) -> bool:
    try:
        tree = ast.parse(textwrap.dedent(statement))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    sides: list[ast.expr] = []
    node = next((one for one in ast.walk(tree) if isinstance(one, ast.Assert | ast.Expr)), None)
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
        sides = [node.test.left, node.test.comparators[0]]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        sides = node.value.args[:2]
    return len(sides) == 2 and _expectation_score(sides[0]) > _expectation_score(sides[1])


def _expectation_score(side: ast.expr) -> int:
    """How much an expression looks like what is expected: 1 for literals and telling names, -1 for results."""
    name = side.id if isinstance(side, ast.Name) else side.attr if isinstance(side, ast.Attribute) else ""
    if name:
        return 1 if FIXED.search(name) else -1 if FOUND.search(name) else 0
    return 1 if all(isinstance(node, LITERAL) for node in ast.walk(side)) else 0


def cut_pair(expected: str, actual: str) -> tuple[str, str]:
    """Both values, each of at most about `MAX_VALUE` characters: the beginning, the end, and the part where they begin to
    differ. Of a container in which something is looked for, the beginning and the end.
    """
    first = len(posixpath.commonprefix([expected, actual]))
    said = expected.removeprefix("not ")
    most_expected = most_actual = MAX_VALUE
    if said.startswith(MEMBER) and not TEXT.match(said.removeprefix(MEMBER)):
        most_expected = MAX_CONTAINER
    elif said.startswith(CONTAINER) and not TEXT.match(actual):
        most_actual = MAX_CONTAINER
    return _shorten_value(expected, first, most_expected), _shorten_value(actual, first, most_actual)


def _shorten_value(value: str, first: int, most: int) -> str:
    if len(value) <= most:
        return value
    third = most // 3
    start = min(max(first - AROUND, 0), len(value))
    spans = sorted([(0, third), (start, start + third), (len(value) - third, len(value))])
    shown, end = "", 0
    for begin, stop in spans:
        if begin > end:
            shown += f"[... {begin - end} characters left out ...]"
        shown += value[max(begin, end) : stop]
        end = max(end, min(stop, len(value)))
    return shown


MAX_STATEMENT_LINES = 12
"""A longer statement is reduced to the one line."""
MAX_STATEMENT = 1_000
MAX_FILES = 8
"""Cached files: failures come in the order of their files."""


class SourceTree:
    """Reads files below one folder, without following links."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[str, tuple[list[str], Mapping[int, tuple[int, int]]]] = {}
        self._exists: dict[str, bool] = {}

    def exists(self, path: str) -> bool:
        """Whether there is a regular file at the relative path."""
        if path not in self._exists:  # the failures of one cause share their frames
            self._exists[path] = safe_open.is_file(self._root, path)
        return self._exists[path]

    def statement(self, path: str, line: int) -> str:
        """The statement at a 1-based line, stripped, or that line alone; "" if there is none."""
        lines, spans = self._load_file(path)
        if not 0 < line <= len(lines):
            return ""
        first, last = spans.get(line, (line, line))
        if last - first >= MAX_STATEMENT_LINES or last > len(lines):
            first = last = line
        text = lines[first - 1].lstrip() if first == last else "\n".join(lines[first - 1 : last])
        return textwrap.dedent(text).strip()[:MAX_STATEMENT]

    def statement_lines(self, path: str, line: int) -> tuple[int, int]:
        """First and last line of the statement at a 1-based line; that line alone if there is none."""
        return self._load_file(path)[1].get(line, (line, line))

    def _load_file(self, path: str) -> tuple[list[str], Mapping[int, tuple[int, int]]]:
        if path not in self._read:
            data = safe_open.read_or_none(self._root, path, max_bytes=MAX_PARSED_BYTES + 1) or b""
            if len(self._read) >= MAX_FILES:
                self._read.clear()
            lines = data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
            self._read[path] = (lines, statement_spans(data, path))
        return self._read[path]


HINT = re.compile(
    r"\s*(?:Use -v+ to (?:get|show)\b.*|Omitting \d+ identical items\b.*|Skipping \d+ identical .*|Full diff:"
    r"|\.\.\.Full output truncated.*|Diff is \d+ characters long\..*|Number of calls: .*|…|\.\.\."
    r"|\?[ \t][-+^ \t]*|\^[~^]*)"
)
"""Lines about the runner's options, or that point at the line above."""
COMMENT = re.compile(r" // (?:Object\.is equality|deep equality|indexOf|[a-zA-Z ]{1,40})\Z")
"""Comments of jest and vitest on a matcher."""
CODE = re.compile(r"\bAssertionError \[ERR_ASSERTION\]")
DIFF_HEAD = re.compile(
    r"Full diff:|[-+] (?:Expected|Snapshot|Received)\b.*|\+ actual - expected.*|\+ expected - actual"
)
"""The line after which only a diff follows."""
LABELLED = re.compile(
    r"(?:Expected|Received|Actual|Regex|Input)\b[^:]{0,40}:.*|Received function did not throw"
)
ABBREVIATED = re.compile(r"\.\.\.|…|\[\d+ chars\]|\bArray\(\d+\)")
ASSERTED = re.compile(r"(?:(?P<error>\w*Error): )?(?P<words>assert .*|expected .*|.* != .*|.*\bdiffer: .*)")
"""The line with the comparison."""
WHERE = re.compile(r"\s*\+\s+(?:where|and)\b")
"""Lines in which pytest explains a call in a comparison."""
SAID = re.compile(r".* : (?P<said>.+)")
"""The test's own message, which unittest puts after its diff."""


def error_lines(message: str, *, values_known: bool = False) -> tuple[str, ...]:
    """The lines of the normalised message that say what went wrong. Hints about the runner's options are left out, and with
    `values_known`, its diffs and abbreviated values. Only the first `MAX_LINES`; the rest is counted.
    """
    lines = message.split("\n")
    found: list[str] = []
    compared = False
    for line in lines:
        plain = CODE.sub("AssertionError", COMMENT.sub("", line.rstrip()))
        if values_known and DIFF_HEAD.fullmatch(plain.strip()):
            break
        if not plain or HINT.fullmatch(plain):
            continue
        if values_known and (LABELLED.fullmatch(plain.strip()) or (compared and not WHERE.match(plain))):
            continue
        asserted = ASSERTED.fullmatch(plain) if values_known else None
        if asserted:
            compared = True
            plain = (asserted["error"] or "") if ABBREVIATED.search(plain) else plain
        if plain:
            found.append(plain)
    said = SAID.fullmatch(lines[-1]) if compared and len(lines) > 1 else None
    found += [said["said"]] if said else []
    if not found:  # the first, without abbreviated values, or as a heading of what is shown elsewhere
        first = next((line.strip() for line in lines if line.strip()), "")
        found = ["AssertionError" if ABBREVIATED.search(first) else first.removesuffix(":")] if first else []
    shown = [
        line if len(line) <= MAX_LINE_LENGTH else line[:MAX_LINE_LENGTH] + "…" for line in found[:MAX_LINES]
    ]
    if len(found) > MAX_LINES:
        shown.append(f"[{len(found) - MAX_LINES} more lines]")
    return tuple(shown)


MAX_LINES = 8
"""Of one failure's message; the first are kept."""
MAX_LINE_LENGTH = 300
MAX_FRAMES = 20
"""Of one failure; the innermost are kept."""
MAX_DESCRIBED = 200
"""Failures of a run that are described with values, statement and frames: the first ones, in order."""
MAX_EXPLAINED = 2_000
"""Failures of a run whose reports are read at all; for the others, only name and place are kept."""

ELSEWHERE = ("site-packages/", "node_modules/", "python/", "node:")


def describe(
    failure: Failure, roots: Sequence[Path], tree: SourceTree, *, with_values: bool = True
) -> tuple[FailingTest, tuple[StackFrame, ...]]:
    """The failure with a normalised message, and its frames; its place is the innermost frame, or else the test itself.
    Without `with_values`, compared values, the statement and the frames are left out of the message.
    """
    detail = normalise(failure.detail, roots)
    message = normalise(failure.message, roots)
    name, path = normalise_name(failure.name, roots), normalise_name(failure.path, roots)
    recorded = (replace(frame, path=normalise_name(frame.path, roots)) for frame in failure.frames)
    frames = _frames_in_tree(recorded, tree.exists) or frames_of(detail, tree.exists)
    place = frames[0] if frames else StackFrame(path=path, line=failure.line)
    words = FailingTest(name=name, path=place.path, line=place.line)
    if not with_values:
        return replace(words, message="\n".join(error_lines(message))), frames
    own = _own_frame(frames, path, name, tree)
    statement = tree.statement(own.path, own.line) if own is not None else ""
    expected, actual = _expected_and_actual(failure, message, statement, roots)
    lines = error_lines(message, values_known=bool(expected or actual))
    expected, actual = cut_pair(expected, actual)
    described = replace(
        words,
        message="\n".join(lines),
        statement=statement,
        expected=expected,
        actual=actual,
        frames=frames[:MAX_FRAMES],
        arguments=tuple((key, normalise(value, roots)) for key, value in sorted(failure.arguments.items())),
    )
    return described, frames


def locate(failure: Failure, roots: Sequence[Path]) -> FailingTest:
    """The failure's name and place, without its report."""
    path = normalise_name(failure.path, roots)
    return FailingTest(name=normalise_name(failure.name, roots), path=path, line=failure.line)


def _expected_and_actual(
    failure: Failure, message: str, statement: str, roots: Sequence[Path]
) -> tuple[str, str]:
    """(expected, actual), normalised: as the runner told them, or else from the message."""
    left, right = normalise(failure.actual, roots), normalise(failure.expected, roots)
    if failure.operator:
        return label(failure.operator, left, right, statement)
    return (right, left) if left or right else values_in(message)


def _own_frame(frames: Sequence[StackFrame], path: str, name: str, tree: SourceTree) -> StackFrame | None:
    """The frame of the test itself: by the name of its function, else the outermost in its file, else the outermost of
    all. If its statement contains functions, as in `cases.forEach(…)`, the innermost of theirs.
    """
    last = re.split(r"::|\.", name.partition("[")[0])[-1]
    named = [frame for frame in frames if frame.function == last and path in {"", frame.path}]
    there = [frame for frame in frames if frame.path == path]
    own = next(iter((*named, *reversed(there), *reversed(frames))), None)
    if own is None:
        return None
    first, end = tree.statement_lines(own.path, own.line)
    return next(frame for frame in frames if frame.path == own.path and first <= frame.line <= end)


def frames_of(text: str, exists: Callable[[str], bool]) -> tuple[StackFrame, ...]:
    """The frames that normalised `text` shows, innermost first, each once; only paths that `exists` knows."""
    return _frames_in_tree(frames_in(text), exists)


def _frames_in_tree(frames: Iterable[StackFrame], exists: Callable[[str], bool]) -> tuple[StackFrame, ...]:
    own = (one for one in frames if not one.path.startswith(("/", "../", "<")))
    return tuple(
        dict.fromkeys(
            one for one in own if not any(part in one.path for part in ELSEWHERE) and exists(one.path)
        )
    )

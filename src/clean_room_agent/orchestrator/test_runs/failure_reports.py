"""Reduces a failure's report to why and where: error lines, values, and frames with their source in the tree."""

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from clean_room_agent import safe_open
from clean_room_agent.artifacts.evidence import FailingTest, StackFrame
from clean_room_agent.artifacts.test_results import Failure
from clean_room_agent.languages.printed_values import values_in
from clean_room_agent.languages.test_runners import frames_in
from clean_room_agent.orchestrator.test_runs.output import cut_pair, label, normalise, normalise_name
from clean_room_agent.syntax import MAX_PARSED_BYTES, statement_spans

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
        lines, spans = self._file(path)
        if not 0 < line <= len(lines):
            return ""
        first, last = spans.get(line, (line, line))
        if last - first >= MAX_STATEMENT_LINES or last > len(lines):
            first = last = line
        text = lines[first - 1].lstrip() if first == last else "\n".join(lines[first - 1 : last])
        return textwrap.dedent(text).strip()[:MAX_STATEMENT]

    def statement_lines(self, path: str, line: int) -> tuple[int, int]:
        """First and last line of the statement at a 1-based line; that line alone if there is none."""
        return self._file(path)[1].get(line, (line, line))

    def _file(self, path: str) -> tuple[list[str], Mapping[int, tuple[int, int]]]:
        if path not in self._read:
            try:
                data = safe_open.read_bytes(self._root, path, max_bytes=MAX_PARSED_BYTES + 1)
            except OSError:
                data = b""
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


def decisive_lines(lines: Sequence[str], *, values_known: bool) -> list[str]:
    """The lines that say what went wrong; with `values_known`, without those that show the values again."""
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
    return found or [_shortest(line) for line in lines if line.strip()][:1]


def _shortest(line: str) -> str:
    """The rest of a line without abbreviated values, or headings of what is shown elsewhere."""
    return "AssertionError" if ABBREVIATED.search(line) else line.strip().removesuffix(":")


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
    frames = _recorded(failure.frames, roots, tree) or frames_of(detail, tree.exists)
    place = frames[0] if frames else StackFrame(path=path, line=failure.line)
    words = FailingTest(name=name, path=place.path, line=place.line)
    if not with_values:
        return replace(words, message="\n".join(error_lines(message))), frames
    own = _own_frame(frames, path, name, tree)
    statement = tree.statement(own.path, own.line) if own is not None else ""
    expected, actual = _values(failure, message, statement, roots)
    lines = error_lines(message, values_known=bool(expected or actual))
    expected, actual = cut_pair(expected, actual)
    described = replace(
        words,
        message="\n".join(lines),
        statement=statement,
        expected=expected,
        actual=actual,
        frames=frames[:MAX_FRAMES],
    )
    return described, frames


def locate(failure: Failure, roots: Sequence[Path]) -> FailingTest:
    """The failure's name and place, without its report."""
    path = normalise_name(failure.path, roots)
    return FailingTest(name=normalise_name(failure.name, roots), path=path, line=failure.line)


def _values(failure: Failure, message: str, statement: str, roots: Sequence[Path]) -> tuple[str, str]:
    """(expected, actual), normalised: as the runner told them, or else from the message."""
    left, right = normalise(failure.actual, roots), normalise(failure.expected, roots)
    if failure.operator:
        return label(failure.operator, left, right, statement)
    return (right, left) if left or right else values_in(message)


def _recorded(
    frames: Iterable[StackFrame], roots: Sequence[Path], tree: SourceTree
) -> tuple[StackFrame, ...]:
    """The recorded frames that are in the tree, with relative paths."""
    own = (replace(frame, path=normalise_name(frame.path, roots)) for frame in frames)
    return once(frame for frame in own if _ours(frame.path) and tree.exists(frame.path))


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
    return once(frame for frame in frames_in(text) if _ours(frame.path) and exists(frame.path))


def once(frames: Iterable[StackFrame]) -> tuple[StackFrame, ...]:
    """`frames` without repetition, in order."""
    return tuple(dict.fromkeys(frames))


def error_lines(message: str, *, values_known: bool = False) -> tuple[str, ...]:
    """The lines of the normalised message that say what went wrong. Hints about the runner's options are left out, and with
    `values_known`, its diffs and abbreviated values. Only the first `MAX_LINES`; the rest is counted.
    """
    lines = decisive_lines(message.split("\n"), values_known=values_known)
    shown = [
        line if len(line) <= MAX_LINE_LENGTH else line[:MAX_LINE_LENGTH] + "…" for line in lines[:MAX_LINES]
    ]
    if len(lines) > MAX_LINES:
        shown.append(f"[{len(lines) - MAX_LINES} more lines]")
    return tuple(shown)


def _ours(path: str) -> bool:
    return not path.startswith(("/", "../", "<")) and not any(part in path for part in ELSEWHERE)

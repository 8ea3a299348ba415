"""A failure's report reduced to what says why and where: error lines, and frames in files of the tree."""

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from clean_room_agent.artifacts.evidence import FailingTest, StackFrame
from clean_room_agent.orchestrator.testing.normalise import normalise, normalise_name
from clean_room_agent.orchestrator.testing.results import Failure

MAX_LINES = 8
"""Of one failure's message; the first are kept."""
MAX_LINE_LENGTH = 300

PYTEST_FRAME = re.compile(
    r"(?P<path>[^\s:<][^:\n]*):(?P<line>\d{1,9}): ?(?:in (?P<function>\S+)|[A-Za-z_][\w.]*)?"
)
TRACEBACK_FRAME = re.compile(
    r'\s*File "(?P<path>[^"\n]+)", line (?P<line>\d{1,9})(?:, in (?P<function>\S+))?'
)
SCRIPT_FRAME = re.compile(
    r"\s+(?:at |❯ )(?:async )?(?:(?P<function>[^\s()]+)(?: \[as \S+\])? )?"  # noqa: RUF001 - vitest's arrow
    r"\(?(?P<path>[^\s():]+):(?P<line>\d{1,9}):\d+\)?"
)
DEFINITION = re.compile(r">?\s*(?:async )?def (\w+)")
NOTE = re.compile(r"\n?\[[^\[\]]*full report in element text\]\Z")
ELSEWHERE = ("site-packages/", "node_modules/", "python/", "node:")


def describe(
    failure: Failure, roots: Sequence[Path], exists: Callable[[str], bool]
) -> tuple[FailingTest, tuple[StackFrame, ...]]:
    """The failure in normalised words, and its frames; its place is the innermost frame, else the test's own."""
    detail = normalise(failure.detail, roots)
    frames = frames_of(detail, exists)
    place = frames[0] if frames else StackFrame(path=normalise_name(failure.path, roots), line=failure.line)
    message = error_lines(detail, normalise(NOTE.sub("", failure.message), roots))
    name = normalise_name(failure.name, roots)
    return FailingTest(name=name, message="\n".join(message), path=place.path, line=place.line), frames


def frames_of(text: str, exists: Callable[[str], bool]) -> tuple[StackFrame, ...]:
    """The frames that normalised `text` shows, innermost first, each once; only paths that `exists` knows.

    Python prints the innermost last, JavaScript first.
    """
    python: list[StackFrame] = []
    script: list[StackFrame] = []
    function = ""
    for line in text.split("\n"):
        definition = DEFINITION.match(line)
        if definition and not function:
            function = definition[1]
        if match := TRACEBACK_FRAME.match(line):
            python.append(_frame(match, ""))
        elif match := PYTEST_FRAME.fullmatch(line):
            python.append(_frame(match, function))
            function = ""
        elif match := SCRIPT_FRAME.fullmatch(line):
            script.append(_frame(match, ""))
    return once(frame for frame in (*reversed(python), *script) if _ours(frame.path) and exists(frame.path))


def once(frames: Iterable[StackFrame]) -> tuple[StackFrame, ...]:
    """`frames` without repetition, in order."""
    return tuple(dict.fromkeys(frames))


def error_lines(detail: str, message: str) -> tuple[str, ...]:
    """The lines of normalised `detail` that say what went wrong: pytest's `E` lines, else `message`, else its end.

    At most `MAX_LINES`, the first; what is left out is counted.
    """
    shown_by_pytest = [line[1:] for line in detail.split("\n") if re.match(r"E(?:\s|\Z)", line)]
    lines = textwrap.dedent("\n".join(shown_by_pytest)).split("\n") if shown_by_pytest else []
    if not lines:
        lines = message.split("\n") if message.strip() else _last_words(detail)
    lines = [line.rstrip() for line in lines if line.strip()]
    shown = [
        line if len(line) <= MAX_LINE_LENGTH else line[:MAX_LINE_LENGTH] + "…" for line in lines[:MAX_LINES]
    ]
    if len(lines) > MAX_LINES:
        shown.append(f"[{len(lines) - MAX_LINES} more lines]")
    return tuple(shown)


def _last_words(detail: str) -> list[str]:
    """What stands after the last Python frame and its source, or before the first JavaScript frame."""
    lines = detail.split("\n")
    frames = [index for index, line in enumerate(lines) if TRACEBACK_FRAME.match(line)]
    if frames:
        rest = lines[frames[-1] + 1 :]
        start = next((index for index, line in enumerate(rest) if line and not line[0].isspace()), 0)
        return rest[start:]
    stop = next((index for index, line in enumerate(lines) if SCRIPT_FRAME.fullmatch(line)), len(lines))
    return [line.strip() for line in lines[:stop]]


def _frame(match: re.Match[str], function: str) -> StackFrame:
    return StackFrame(path=match["path"], line=int(match["line"]), function=match["function"] or function)


def _ours(path: str) -> bool:
    return not path.startswith(("/", "../", "<")) and not any(part in path for part in ELSEWHERE)

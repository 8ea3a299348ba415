"""What an edit broke where tests no longer run because a file cannot be imported: which file, by which error, at which line.

Runners say it each in their own way, most of them in a block about the file of tests that wanted the import:

    pytest     test_a.py: error         NameError: name 'x' is not defined        frames: lib.py:3, test_a.py:1
    pytest     test_a.py: error         File "lib.py", line 67 / SyntaxError: '(' was never closed
    unittest   _FailedTest.test_a       NameError ...
    node       a.test.js: failed        "test failed"; the error is in the output alone
    others     no test at all           the process ended, with a stack trace
"""

import re
from collections.abc import Sequence

from clean_room_agent.artifacts.evidence import FailingTest, StackFrame
from clean_room_agent.artifacts.names import listed, quoted
from clean_room_agent.languages.test_names import files_meant, is_of_file
from clean_room_agent.languages.test_runners import ABSENT
from clean_room_agent.orchestrator.test_runs.results import TestRun

ERROR = re.compile(
    r"^(?:E\s+|\[?\w* ?error\]?:? +)?(?P<error>(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Exit|Warning|Interrupt)(?::.*)?)$",
    re.MULTILINE,
)
"""An error in a line of its own, with its words."""
INLINE = re.compile(
    r"(?P<error>\b(?:Syntax|Indentation|Tab|Name|Import|ModuleNotFound|Attribute|Reference|Type)Error: .*)"
    r"|\.go:\d+:\d+: (?P<compiler>.*)"
)
PLACE = re.compile(
    r'File "(?P<python>[^"\n]+)", line (?P<line>\d+)|(?P<script>[\w@./-]+\.(?:[cm]?[jt]sx?|go)):(?: .*\()?(?P<row>\d+)'
)
"""Where a parser stopped."""
UNPARSED = re.compile(r"\b(?:SyntaxError|IndentationError|TabError)\b")
FOREIGN = re.compile(r"(?:^|/)(?:site-packages|node_modules)/")
MAX_ERROR = 300
MAX_FILES = 3


def broken_import(before: TestRun, after: TestRun, newly_failing: Sequence[str]) -> str:
    """Which import the edits between the two runs broke, in one line; "" if none.

    Args:
        before: the last accepted state.
        after: the state with the edits.
        newly_failing: names in `after`, of tests and of files.
    """
    unloaded = [name for name in newly_failing if is_of_file(name)]
    if unloaded:
        failing = next(
            (test for test in after.failing if test.name in unloaded), FailingTest(name=unloaded[0])
        )
        files = [files_meant(name)[0] for name in unloaded]
        return _in_words(_error(failing.message) or _error(after.end.excerpt), failing, after, files)
    ended = not after.report.whole and not after.report.outcomes and not after.end.timed_out
    if not ended or not before.report.whole:
        return ""
    error = _error(after.report.problem) or _error(after.end.excerpt)
    frame = after.frames[0] if after.frames else StackFrame(path="")
    return (
        _in_words(error, FailingTest(name="", path=frame.path, line=frame.line), after, []) if error else ""
    )


def nothing_loads(run: TestRun) -> tuple[str, str, int]:
    """Of a run in which no test passed or failed by itself, as no file of tests could be imported or each test lacked a module: the
    first error, and its file and line (0: unknown). Empty for any other run.
    """
    outcomes, excerpt = run.report.outcomes, run.end.excerpt
    red = run.red()
    lacking = bool(run.failing) and all(ABSENT.search(test.message) for test in run.failing)
    if (
        red
        and (lacking or all(map(is_of_file, red)))
        and not run.green()
        and (run.report.named or not run.report.passed)
    ):
        failing = next(iter(run.failing), FailingTest(name=min(red)))
        error = _error_or_absence(failing.message) or _error_or_absence(excerpt)
        return error or f"{failing.name} cannot be loaded", *_place(error, failing, run)
    is_broken = not outcomes and not run.end.timed_out and run.end.returncode != 0
    error = _error_or_absence(excerpt) if is_broken else ""
    return (error, *_place(error, FailingTest(name=""), run)) if ABSENT.search(error) else ("", "", 0)


def _error_or_absence(text: str) -> str:
    absent = (line for line in text.split("\n") if ABSENT.search(line))
    return _error(text) or " ".join(next(absent, "").split())[:MAX_ERROR]


def _error(text: str) -> str:
    """The last error that the text names in a line of its own, else the first within a line; "" if there is none."""
    found = list(ERROR.finditer(text))
    if found:
        return " ".join(found[-1]["error"].split())[:MAX_ERROR]
    match = INLINE.search(text)
    said = "" if match is None else match["error"] or match["compiler"]
    return " ".join(said.split())[:MAX_ERROR]


def _in_words(error: str, failing: FailingTest, after: TestRun, files: Sequence[str]) -> str:
    path, line = _place(error, failing, after)
    if not path and not files:
        return ""
    at = f" (line {line})" if line else ""
    text = f"the edit broke the import of {quoted(path or files[0])}: {error or 'it cannot be loaded'}{at}"
    shown = listed(map(quoted, files), MAX_FILES)
    return f"{text}; so no test of {shown} runs" if files else f"{text}; so no test runs"


def _place(error: str, failing: FailingTest, after: TestRun) -> tuple[str, int]:
    """The file that cannot be imported, and the line; of a syntax error, where the parser stopped."""
    if UNPARSED.search(error):
        for text in (failing.message, after.end.excerpt):
            said = UNPARSED.search(text)
            above = text[: said.start()] + text[said.start() :].partition("\n")[0] if said else ""
            own = [place for place in map(_named, PLACE.finditer(above)) if _is_own(place[0])]
            if own:
                return own[-1]
    frame = next(iter(failing.frames or after.frames), StackFrame(path=failing.path, line=failing.line))
    return frame.path, frame.line


def _named(match: re.Match[str]) -> tuple[str, int]:
    return (match["python"] or match["script"]).removeprefix("./"), int(match["line"] or match["row"])


def _is_own(path: str) -> bool:
    """Whether the path may be one of the repository, as it is written."""
    return not path.startswith(("/", "<", "node:", "python/")) and not FOREIGN.search(path)

"""Which of the failing tests a task is about, so that prompts show these and only count the others.

A repository has tests that fail for reasons of their own: a fixture or a package that is not installed, no network, a fault
that somebody else will fix. Shown in full they fill each prompt, and a small model sets out to repair them.

Of a task "chunked(range(10), 3, fill=0) leaves out the last fill":

    test_chunked                    shown: its name, and what it calls, stand in the task
    test_windowed, same file        shown: fails by an assertion, in the file of the one above
    test_bench_chunked              shown: it calls what the task names, whatever it lacks
    test_bench_remap                counted: fixture 'benchmark' not found
    test_urls, another file         counted: fails elsewhere

If the task's words lead to no failing test, all count that fail by themselves.
"""

import builtins
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import PurePosixPath

from clean_room_agent.artifacts.evidence import Evidence, FailingTest
from clean_room_agent.execute.edits.definitions import definitions
from clean_room_agent.languages.test_names import files_meant, group_of
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.test_runs.results import TestRun, evidence_of
from clean_room_agent.paths import is_test_path

Read = Callable[[str], str]
"""The text of a file of the tree; "" if there is none."""
LACKING = re.compile(
    r"fixture ['\"](?P<fixture>\w+)['\"] not found|No module named ['\"](?P<module>[\w.]+)|Cannot find (?:module|package) ['\"](?P<package>[^'\"./][^'\"]*)"
    r"|\b(?:ConnectionRefusedError|gaierror|ENOTFOUND|ECONNREFUSED|EAI_AGAIN)\b|Temporary failure in name resolution"
    r"|Name or service not known|Network is unreachable|command not found"
)
"""What a test lacks that no change of the code gives it."""
NAME = re.compile(r"[A-Za-z_$][\w$]*")
CODE_LIKE = re.compile(r"_|[a-z][A-Z]|\d")
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
MIN_NAME = 3
MIN_WORD = 5
"""Letters of a word of prose that says something."""
STEM = 5
"""Letters by which words are compared."""


def task_evidence(run: Run, tests: TestRun | None) -> Evidence:
    """What the tests show about the run's task; empty without a run of them."""
    if tests is None:
        return Evidence()
    tree = run.commits.tree()

    def read(path: str) -> str:
        return tree.texts((path,))[0].get(path, "")

    return evidence_of(tests, left_out=unrelated_tests(tests.failing, run.task.words, read, tree.paths))


def unrelated_tests(
    failing: Sequence[FailingTest], words: str, read: Read, paths: Collection[str]
) -> frozenset[str]:
    """The names of the failing tests that a task of these words is not about; `paths` are the files of the tree."""
    task = _TaskWords(words)
    code = _CodeOfTests(read)
    lacking = {test.name for test in failing if _lacks_dependency(test, task, paths)}
    related = [test for test in failing if _is_related(test, task, code, lacks=test.name in lacking)]
    files = {frame.path for test in related for frame in test.frames if not is_test_path(frame.path)}
    groups = {group_of(test.name) for test in related}

    def is_elsewhere(test: FailingTest) -> bool:
        return group_of(test.name) not in groups and files.isdisjoint(frame.path for frame in test.frames)

    others = [test for test in failing if test not in related]
    return frozenset(test.name for test in others if test.name in lacking or (related and is_elsewhere(test)))


class _TaskWords:
    """The words of a task."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names = {name for name in NAME.findall(text) if len(name) >= MIN_NAME} - set(dir(builtins))
        self.code = {
            name for name in self.names if CODE_LIKE.search(name) or f"{name}(" in text or f"`{name}`" in text
        }
        self.stems = {part.lower()[:STEM] for part in PART.findall(text) if len(part) >= MIN_WORD}

    def has(self, text: str) -> bool:
        """Whether the text stands there by itself."""
        return text != "" and re.search(rf"(?<![\w$]){re.escape(text)}(?![\w$])", self.text) is not None


class _CodeOfTests:
    """The source of tests, each file read once."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._known: dict[str, tuple[str, dict[str, str]]] = {}

    def of(self, test: FailingTest) -> str:
        """The test's own code, or its file if it is not found there; "" if that is not found either."""
        path = next((path for path in files_meant(test.name) if self._text_and_functions(path)[0]), "")
        text, known = self._text_and_functions(path)
        return known.get(_test_function_name(test.name), text)

    def _text_and_functions(self, path: str) -> tuple[str, dict[str, str]]:
        if path not in self._known:
            text = self._read(path) if path else ""
            spans = definitions(path, text) if text else ()
            inner = {span.symbol.rpartition(".")[2]: text[span.start : span.end] for span in spans}
            self._known[path] = (text, inner)
        return self._known[path]


def _test_function_name(name: str) -> str:
    """The last part of a test's name, without parameters."""
    return re.split(r"::| > |\.", name.partition("[")[0])[-1]


def _lacks_dependency(test: FailingTest, task: _TaskWords, paths: Collection[str]) -> bool:
    """Whether it fails for want of something that is not in the repository and that the task does not name."""
    found = LACKING.search(test.message)
    if found is None:
        return False
    name = found["fixture"] or found["module"] or found["package"] or ""
    if name and (task.has(name) or task.has(name.partition(".")[0])):
        return False
    module = (found["module"] or "").partition(".")[0]
    return not module or not any(f"/{module}/" in f"/{path.removesuffix('.py')}/" for path in paths)


def _is_related(test: FailingTest, task: _TaskWords, code: _CodeOfTests, *, lacks: bool) -> bool:
    function, paths = _test_function_name(test.name), files_meant(test.name)
    if task.has(function) or any(task.has(path) or task.has(PurePosixPath(path).stem) for path in paths):
        return True
    source = code.of(test)
    used = set(NAME.findall(source))
    called = {name for name in task.names & used if re.search(rf"(?<![\w$]){re.escape(name)}\s*\(", source)}
    if task.code & used or called:
        return True
    if lacks:
        return False
    own = [frame for frame in test.frames if not is_test_path(frame.path)]
    if any(frame.function in task.names or task.has(PurePosixPath(frame.path).stem) for frame in own):
        return True
    said = {part.lower()[:STEM] for part in PART.findall(function) if len(part) >= MIN_WORD}
    return not said.isdisjoint(task.stems)

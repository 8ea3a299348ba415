"""Runs calls and new tests at the base: what calls give there, and which of the tests fail as they should.

A call is run by a test that is written for it into the file of tests that new ones are added to, by the repository's own
command: in its Python, with its settings, in the sandbox. The test writes what the calls give to a file among the reports.
"""

import hashlib
import json
import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from clean_room_agent import safe_open
from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.goals import NamedDefinition
from clean_room_agent.artifacts.test_results import RED
from clean_room_agent.execute.goals import script_tests
from clean_room_agent.execute.goals.confirming import Looked, NewTest, Observation, Placed
from clean_room_agent.execute.goals.python_tests import (
    SEEN_FILE,
    is_unittest_style,
    place,
    read_seen,
    with_probe,
)
from clean_room_agent.execute.goals.resolving import SCRIPTS, Known, python_imports
from clean_room_agent.execute.goals.script_tests import Style, import_of, style_of
from clean_room_agent.languages.test_names import files_meant
from clean_room_agent.languages.test_runner import guard_folder
from clean_room_agent.languages.test_runners import runner_named
from clean_room_agent.orchestrator.events import LOOKING
from clean_room_agent.orchestrator.full_tests import note_tests
from clean_room_agent.orchestrator.run import Run
from clean_room_agent.orchestrator.test_runs.output import normalise
from clean_room_agent.orchestrator.test_runs.results import TestRun
from clean_room_agent.paths import is_test_module

MAX_SEEN = 1_000_000
"""Bytes of what a probe wrote."""
MOST_TEST_FILES = 5
"""Of a definition, which are read to see how tests import its module."""
BROKEN = re.compile(r"\bSyntaxError|\bIndentationError|fixture '[^']*' not found")
DOCTEST = re.compile(r"\.py::\w*\.[\w.]*\Z")
"""The name of a module's documentation that pytest runs."""
QUOTED = re.compile(r"""['"](\w[^'"\n]*)['"]""")
INCOMPLETE = re.compile(r"missing \d+ required (?:positional|keyword-only) arguments?: ")
"""The message of a call such as `split()`, by which a report only names the function."""
MISSING = re.compile(
    r"cannot import name '(\w+)'|has no attribute '(\w+)'|No module named '([\w.]+)'|name '(\w+)' is not defined"
    r"|unexpected keyword argument '(\w+)'|takes \d+ positional"
)


class KeptTestRun(Struct, frozen=True, kw_only=True):
    """A run of tests of goals."""

    tests: TestRun
    seen: str
    """What its probe wrote; "" if it had none."""


class Home(Struct, frozen=True, kw_only=True):
    """The file of tests that new ones are added to."""

    path: str
    text: str
    """Its text at the base; "" if it is new."""
    unittest: bool = False
    """Whether its tests are methods of TestCase classes."""
    style: Style | None = None
    """How its tests are written, if they are in JavaScript or TypeScript."""

    def with_probe(self, calls: Sequence[Looked]) -> tuple[str, str]:
        """The file's text with a test that looks at the calls, and the test's name."""
        if self.style is not None:
            return script_tests.with_probe(self.text, calls, self.style), script_tests.PROBE
        return with_probe(self.text, calls, unittest=self.unittest)

    def with_tests(self, tests: Sequence[NewTest]) -> Placed | None:
        """The file with the tests; None if it cannot be parsed."""
        if self.style is not None:
            return script_tests.place(self.text, tests, self.style)
        return place(self.text, tests, unittest=self.unittest)


class Checked(Struct, frozen=True, kw_only=True):
    """New tests that fail at the base as they should, in one file."""

    home: Home
    placed: Placed
    tests: tuple[NewTest, ...]
    names: tuple[str, ...]
    """As their runner names them."""


class GoalRuns:
    """Runs of new tests at the base of one run."""

    def __init__(self, run: Run, baseline: TestRun) -> None:
        self._run = run
        self._baseline = baseline
        self._runner = baseline.report.runner
        self._tree = run.commits.tree(run.commits.base)
        self._ran = _files_run(baseline, self._tree.paths)

    def helper(self, name: str) -> NamedDefinition | None:
        """The function or class of this name in the one Python file of tests that has it."""
        pattern = re.compile(rf"^(async\s+def|def|class)\s+{re.escape(name)}\b", re.MULTILINE)
        found = [
            (path, match)
            for path in sorted(self._ran)
            if path.endswith(".py") and (match := pattern.search(self._file_text(path)))
        ]
        if len(found) != 1:
            return None
        ((path, match),) = found
        kind = "class" if match[1] == "class" else "function"
        line = self._file_text(path)[: match.start()].count("\n") + 1
        return NamedDefinition(name=name, path=path, kind=kind, first_line=line, last_line=line)

    def home(self, definition: NamedDefinition, call: str = "") -> Home:
        """The file of tests that exercises the definition, of several one with most of the texts that `call` has, or has it; else a
        new one where tests are.
        """
        stem, kind = _module_stem(definition.path), _language(definition.path)
        ran = [path for path in sorted(self._ran) if _language(path) == kind]
        used = [path for path in definition.test_files if self._is_run(path) and _language(path) == kind]
        texts = set(QUOTED.findall(call))
        if texts:
            used.sort(key=lambda path: -len(texts.intersection(QUOTED.findall(self._file_text(path)))))
        by_name = [path for path in (*used, *ran) if _tests_stem(path) == stem] or self._without_tests(
            ran, stem
        )
        own = (definition.path,) if definition.path in ran else ()
        found = next(iter((*own, *by_name, *used)), "") or self._new_home(stem, ran, definition.path)
        text = self._file_text(found)
        if kind == "script":
            return Home(
                path=found,
                text=text,
                style=style_of(text or self._file_text(ran[0] if ran else ""), self._runner),
            )
        unittest = self._runner == "unittest" or (bool(text) and is_unittest_style(text))
        return Home(path=found, text=text, unittest=unittest)

    def _without_tests(self, ran: Sequence[str], stem: str) -> list[str]:
        """The Python files beside these that are called like tests of the module and have none (yet)."""
        folders = {posixpath.dirname(path) for path in ran}
        beside = [
            path
            for path in sorted(self._tree.paths - self._ran)
            if path.endswith(".py") and is_test_module(path) and _tests_stem(path) == stem
            if posixpath.dirname(path) in folders
        ]
        return [path for path in beside if not re.search(r"\bdef test|\bclass ", self._file_text(path))]

    def _new_home(self, stem: str, ran: Sequence[str], source: str) -> str:
        """The path of a file of tests that is to be made, in the folder and with the name of others."""
        folders = Counter(posixpath.dirname(path) for path in ran)
        folder = folders.most_common(1)[0][0] if folders else "tests"
        names = (f"test_{stem}.py", f"test_{stem}_goal.py")
        if _language(source) == "script":
            model = posixpath.basename(ran[0]) if ran else "a.test.js"
            ending = model[model.find(".") :] if "." in model[:-3] else posixpath.splitext(model)[1]
            names = (f"{stem}{ending}", f"{stem}-goal{ending}")
        return next(
            path
            for name in (*names, f"goal_{names[0]}")
            if (path := posixpath.join(folder, name)) not in self._tree.paths
        )

    def imports(
        self, known: Known, names: Sequence[str], code: Sequence[str], home: Home, own: NamedDefinition
    ) -> tuple[str, ...]:
        """The statements by which a test in the file imports what the code uses."""
        if home.style is None:
            texts = [self._file_text(path) for path in own.test_files[:MOST_TEST_FILES]]
            elsewhere = {name: one for name, one in known.names.items() if one.path != home.path}
            return python_imports(code, elsewhere, texts)
        found = []
        for name in sorted(names):
            one = known.names[name]
            found.append(import_of(one, home.path, home.text, self._file_text(one.path), home.style))
        return tuple(filter(None, found))

    def look(self, home: Home, calls: Sequence[Looked], *, at: str = "") -> tuple[Observation, ...]:
        """What each of the calls gives at the base, or at another commit; each has a problem if they cannot be run."""
        text, name = home.with_probe(calls)
        commit = self._commit({home.path: text}, "Look at calls", at=at)
        if not commit:
            return tuple(Observation(problem="the file of tests cannot be written") for _ in calls)
        kept = self._run_named(commit, home, (name,), inputs=("look", home.path, text, at))
        tests, seen = kept.tests, read_seen(kept.seen.encode())
        if len(seen) != len(calls):
            problem = tests.failing[0].message if tests.failing else tests.report.problem
            return tuple(Observation(problem=problem or "the calls could not be run") for _ in calls)
        roots = (self._run.tests.root, self._run.tests.tree.repo_top)
        return tuple(_observation(one, call, roots) for one, call in zip(seen, calls, strict=True))

    def statement(self, home: Home, looked: Looked) -> Observation:
        """What comes of a statement at the base: nothing, or what it raises. One in JavaScript is an expression."""
        if home.style is not None:
            return self.look(home, (looked,))[0]
        body = "\n".join(f"    {line}" for line in looked.call.splitlines())
        wrapped = Looked(call="_check()", setup=(f"def _check():\n{body}",), imports=looked.imports)
        (observation,) = self.look(home, (wrapped,))
        return observation

    def checked(
        self, home: Home, tests: Sequence[NewTest], seen: Mapping[str, Observation]
    ) -> Checked | None:
        """Those of the tests that fail at the base, twice and alike, as `seen` (by test name) lets expect; None if none
        does.
        """
        left = list(tests)
        while left:
            placed = home.with_tests(left)
            commit = self._commit({home.path: placed.text}, "Try goal tests") if placed is not None else ""
            if placed is None or not commit:
                return None
            runs = [
                self._run_named(commit, home, placed.names, inputs=(turn, home.path, placed.text)).tests
                for turn in ("first", "again")
            ]
            good: dict[str, NewTest] = {}
            for test, name in zip(left, placed.names, strict=True):
                failures = [
                    found for one in runs if (found := _new_test_failure(one, home.path, name)) is not None
                ]
                if len(failures) == len(runs) and _is_right(failures, seen[test.name]):
                    good[failures[0].name] = test
            if len(good) == len(left):
                return Checked(home=home, placed=placed, tests=tuple(left), names=tuple(good))
            left = list(good.values())
        return None

    def keep(self, texts: Mapping[str, str]) -> str:
        """The commit of the base with these files, which git keeps."""
        return self._commit(
            texts, "Show what the task is about\n\nThese tests fail before the change.", keep_as="goals"
        )

    def _file_text(self, path: str) -> str:
        if path not in self._tree.paths:
            return ""
        return self._tree.texts((path,))[0].get(path, "")

    def _is_run(self, path: str) -> bool:
        return path in self._ran or (not self._baseline.report.named and path in self._tree.paths)

    def _commit(self, texts: Mapping[str, str], message: str, *, keep_as: str = "", at: str = "") -> str:
        commits = self._run.commits
        files = (commits.tree(at) if at else self._tree).encode(texts)
        if not isinstance(files, dict):
            return ""
        return commits.commit(files, message, keep_as=keep_as, parent=at or commits.base)

    def _run_named(
        self, commit: str, home: Home, names: Sequence[str], *, inputs: tuple[str, ...]
    ) -> "KeptTestRun":
        """A run of the tests; of all of them, where the command for some is unknown. A resumed run with the same `inputs` takes
        the run that it had.
        """
        # Kept one by one, and only then recorded: all goals are kept together, much later.
        digest = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()
        entry = self._run.journal.entry(self._run.task.task_id, f"goal tests {digest[:16]}", KeptTestRun)
        kept = entry.value or entry.keep(self._run_anew(commit, home, names))
        note_tests(self._run, kept.tests, "recheck", success=kept.tests.report.whole)
        return kept

    def _run_anew(self, commit: str, home: Home, names: Sequence[str]) -> "KeptTestRun":
        runner = self._run.tests
        runner.checkout(commit)
        known = runner_named(self._runner)
        asked = [known.full_name(home.path, name) for name in names] if known else list(names)
        tests = runner.run_some(self._baseline, asked, LOOKING)
        if tests is None or (
            home.style is not None
            and not any(_is_named(one, home.path, name) for one in tests.report.outcomes for name in names)
        ):
            runner.checkout(commit)
            tests = runner.run_again(self._baseline, LOOKING)
        try:
            seen = safe_open.read_bytes(guard_folder(runner.report), SEEN_FILE, max_bytes=MAX_SEEN)
        except OSError:
            seen = b""
        return KeptTestRun(tests=tests, seen=seen.decode(errors="replace"))


def _files_run(baseline: TestRun, paths: frozenset[str]) -> frozenset[str]:
    """The files of tests of which the run ran some; not those of which it ran the documentation alone."""
    found: set[str] = set()
    modules = [path for path in paths if is_test_module(path) and path.endswith(".py")]
    # Some runners of JavaScript name no files: then those that are called like tests are taken for run.
    scripts = [path for path in paths if is_test_module(path) and _language(path) == "script"]
    for name in baseline.report.outcomes:
        for path in () if DOCTEST.search(name) else files_meant(name):
            if path in paths:
                found.add(path)
                break
            ending = [one for one in modules if one.endswith(f"/{path}")]
            if len(ending) == 1:
                found.add(ending[0])
                break
    if not any(_language(path) for path in found):
        found.update(scripts)
    return frozenset(path for path in found if _language(path))


def _language(path: str) -> str:
    """python, script (JavaScript and TypeScript), or ""."""
    return "python" if path.endswith(".py") else "script" if path.endswith(SCRIPTS) else ""


def _module_stem(path: str) -> str:
    stem = posixpath.splitext(posixpath.basename(path))[0]
    return posixpath.basename(posixpath.dirname(path)) if stem == "__init__" else stem.strip("_")


def _tests_stem(path: str) -> str:
    stem = posixpath.splitext(posixpath.basename(path))[0]
    return re.sub(r"^tests?_?|[_.-]?(?:tests?|spec)$", "", stem).strip("_")


def _observation(seen: Mapping[str, object], call: Looked, roots: Sequence[Path]) -> Observation:
    if seen.get("late"):
        return Observation(problem="it did not end")
    raised, matches, text = seen.get("raised"), seen.get("matches"), seen.get("text")
    if seen.get("importing") and not call.missing:
        return Observation(problem=normalise(str(seen.get("message")), roots))
    named_only = call.call.rstrip().endswith("()") and INCOMPLETE.search(str(seen.get("message", "")))
    if named_only and isinstance(raised, list) and "TypeError" in raised:
        return Observation(problem="it is no whole call: arguments are missing")
    relations = [tuple(map(str, one)) for one in matches] if isinstance(matches, list) else []
    relations += [()] * (len(call.stated) - len(relations))
    return Observation(
        raised=tuple(map(str, raised)) if isinstance(raised, list) else (),
        message=normalise(str(seen.get("message", "")), roots),
        shown=normalise(str(seen.get("shown", "")), roots),
        text=text if isinstance(text, str) else None,
        iterated=bool(seen.get("iterated")),
        awaited=bool(seen.get("awaited")),
        matches=tuple(relations),
    )


def _new_test_failure(tests: TestRun, path: str, name: str) -> FailingTest | None:
    """How the new test failed; None if it did not, or cannot be found."""
    found = [
        one for one, outcome in tests.report.outcomes.items() if outcome in RED and _is_named(one, path, name)
    ]
    if len(found) != 1:
        return None
    return next((one for one in tests.failing if one.name == found[0]), FailingTest(name=found[0]))


def _is_named(full: str, path: str, name: str) -> bool:
    """Whether a runner's name is that of the new test in the file."""
    dotted = name.replace("::", ".")
    return full in {name, dotted} or full.endswith((f"{path}::{name}", f".{dotted}", f" > {name}"))


def _is_right(failures: Sequence[FailingTest], seen: Observation) -> bool:
    """Whether the test failed alike each time, by its assertion or by the error that the call was seen to raise."""
    first = failures[0]
    if first.expected and first.actual and not seen.raised:
        return all(one.message == first.message for one in failures)
    if any(one.message != first.message for one in failures) or BROKEN.search(first.message):
        return False
    said = first.message
    if seen.raised:
        if any(name in said for name in seen.raised) or MISSING.search(said):
            return True
        if "AssertionError" not in seen.raised:
            return False
    failed = re.search(
        r"\bassert\b|Assertion|DID NOT RAISE|not raised|!=|not equal|\bexpected\b|toThrow",
        said,
        re.IGNORECASE,
    )
    return failed is not None

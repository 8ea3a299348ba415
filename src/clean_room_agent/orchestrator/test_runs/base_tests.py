"""The tests of the base where a run of them did not come to its end, or did not come to all of them.

The guard records each test of Python's runners as it is found, begins and ends. A run that died is so known up to the
test or the file in which it did, and the command is run again without these and without what has ended, until one run
comes to its end. For example, `b` ends the process:

    run    left out   found      ended       died in
    1      -          a b c d    a           b
    2      a b        c d        c d         -

`a`, `c` and `d` have their outcomes, `b` counts as an error. Of a file that could not be loaded, the tests are those
that its text has, since what the runner would find is unknown then. Where all this finds nothing, the tests stay unknown (`TestReport.counted`), and no result is complete.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace
from tree_sitter import Node

from clean_room_agent.artifacts.evidence import FailingTest
from clean_room_agent.artifacts.test_results import RED, Outcome, merge
from clean_room_agent.languages.python.test_log import TestLog, read_test_log
from clean_room_agent.languages.test_names import UNLOADED, files_meant, is_of_file
from clean_room_agent.languages.test_runners import has_log
from clean_room_agent.orchestrator.commits import Tree
from clean_room_agent.orchestrator.test_runs.command_runner import CommandRunner
from clean_room_agent.orchestrator.test_runs.output import normalise_name
from clean_room_agent.orchestrator.test_runs.results import TestRun
from clean_room_agent.orchestrator.test_runs.test_commands import merge_watched
from clean_room_agent.paths import is_test_module
from clean_room_agent.syntax import grammar_of, tree_of

MAX_RUNS = 20
"""Runs of one command at the base."""
MAX_FILES = 500
"""Files whose text is searched for tests."""
HOOK = re.compile(r'"before (?:all|each)" hook\b')
"""In the names under which mocha reports what keeps a suite from running."""
INTERNAL = "pytest::internal"
"""The name under which pytest reports that it broke itself."""
DIED = "the process of the tests ended in it"


def completed(
    runner: CommandRunner, first: TestRun, commit: str, tree: Tree, ran: Callable[[TestRun], None]
) -> TestRun:
    """`first`, the newest run, of `commit` (whose files are `tree`), with the tests that it did not come to, and those that files which could not be
    loaded have. Further runs that this took are given to `ran`. The worktree may be at `commit` with remains of them.
    """
    if not has_log(first.report.runner) or first.end.timed_out:
        return _with_written(first, tree) if first.report.whole else first
    log = read_test_log(runner.report)
    if first.is_empty and log.died:  # of workers of pytest-xdist, whose end is no failure
        first = replace(first, report=replace(first.report, whole=False, problem=f"{DIED}: {min(log.died)}"))
    search = _Search(runner=runner, first=first, log=log)
    search.run_rest(commit, ran)
    return _with_written(search.result(tree), tree)


class _Search(Struct, kw_only=True):
    """The runs of one command, and what they found."""

    runner: CommandRunner
    first: TestRun
    log: TestLog
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """By normalised name."""
    more: list[TestRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._merge_run(self.first, self.log)

    def run_rest(self, commit: str, ran: Callable[[TestRun], None]) -> None:
        """Run the command without what is known until it comes to its end, or nothing new is found."""
        newest, left = self.first, self.runner.config.timeout
        while len(self.more) < MAX_RUNS - 1 and left > 0:
            if newest.report.whole and not self.log.missing():
                return
            known = self.log.ended.keys() | self.log.died
            self.runner.checkout(commit)
            newest = self.runner.run_rest(self.first, known)
            log = read_test_log(self.runner.report)
            ran(newest)
            self.more.append(newest)
            left -= newest.end.duration_ms / 1000
            is_new = bool((log.ended.keys() | log.died) - known)
            self._merge_run(newest, log)
            if not is_new:
                return

    def result(self, tree: Tree) -> TestRun:
        """What is known of the tests of the base."""
        first = self.first
        whole = first.report.whole
        if whole and not (self.more or (self.log.missing() and first.report.named)):
            return first
        outcomes = dict(self.outcomes)
        lost = [name for name in sorted(self.log.died) if name not in self.log.found and "::" not in name]
        for name in lost:
            self.log.died.discard(name)
            outcomes[name if first.report.runner == "pytest" else UNLOADED + name] = "error"
        died = sorted(map(self._normalise_test_name, self.log.died))
        errors = self.log.died | self.log.broken
        if not whole or first.report.runner == "unittest":
            errors |= self.log.missing()
        outcomes.update(dict.fromkeys(map(self._normalise_test_name, errors), "error"))
        outcomes.pop(INTERNAL, None)
        unplaced = any(not _files_of(name, tree.paths) for name in lost)
        failing = [FailingTest(name=name, message=DIED) for name in died]
        failing += [one for run in (first, *self.more) for one in run.failing if one.name != INTERNAL]
        told = {one.name for one in failing}
        failing += [
            FailingTest(name=name) for name in sorted(outcomes) if outcomes[name] in RED and name not in told
        ]
        report = replace(
            first.report,
            outcomes=dict(sorted(outcomes.items())),
            collected=sum(not is_of_file(name) for name in outcomes),
            passed=sum(outcome == "passed" for outcome in outcomes.values()),
            named=True,
            counted=self.log.finished and not unplaced,
        )
        return replace(
            first,
            report=report,
            failing=tuple(failing),
            watched=merge_watched(run.watched for run in (first, *self.more)),
        )

    def _merge_run(self, run: TestRun, log: TestLog) -> None:
        self.log.found |= log.found
        self.log.finished = self.log.finished or log.finished
        self.log.ended.update(log.ended)
        self.log.broken |= log.broken
        self.log.died |= log.died
        if not (run.report.whole and run.report.named):
            self.outcomes.update(
                merge((self._normalise_test_name(name), outcome) for name, outcome in log.ended.items())
            )
        if run.report.whole:
            self.outcomes.update(run.report.outcomes)

    def _normalise_test_name(self, name: str) -> str:
        return normalise_name(name, (self.runner.root, self.runner.tree.repo_top))


def _with_written(run: TestRun, tree: Tree) -> TestRun:
    """The run with the tests that are in the text of files which could not be loaded; of an incomplete run of Python's
    runners that found nothing, in that of all test files.
    """
    report = run.report
    is_python = has_log(report.runner)
    red = [name for name in sorted(run.red()) if _is_holder(name, report.outcomes, tree.paths)]
    written: dict[str, bool] = {}
    uncounted: list[str] = []
    for name in red:
        tests = _tests_in_files(_files_of(name, tree.paths), tree, report.runner) if is_python else {}
        written.update(tests)
        if not tests:
            uncounted.append(name)
    counted = report.counted
    if is_python and not report.whole and not counted:
        files = sorted(path for path in tree.paths if path.endswith(".py") and is_test_module(path))
        all_written = _tests_in_files(files, tree, report.runner) if len(files) <= MAX_FILES else {}
        written.update(all_written)
        counted = bool(all_written)
    if not (written or uncounted or counted != report.counted):
        return run
    changed = replace(
        report, written=dict(sorted(written.items())), uncounted=tuple(uncounted), counted=counted
    )
    return replace(run, report=replace(changed, named=changed.named or counted))


def _is_holder(name: str, outcomes: Collection[str], paths: Collection[str]) -> bool:
    """Whether it stands for a file, a folder or a suite that could not be loaded, or some tests of it: only pytest is
    known to name all of them, if any.
    """
    if not (is_of_file(name) or HOOK.search(name) or any(path.startswith(f"{name}/") for path in paths)):
        return False
    return not any(other.startswith(f"{name}::") for other in outcomes)


def _files_of(name: str, paths: Collection[str]) -> tuple[str, ...]:
    """The files that the name of one that could not be loaded stands for, sorted: itself; the only one with such an end;
    or the test modules of a folder.
    """
    for meant in files_meant(name if name.endswith(".py") or name.startswith(UNLOADED) else UNLOADED + name):
        if meant in paths:
            return (meant,)
        ends = [path for path in paths if path.endswith(f"/{meant}")]
        if len(ends) == 1:
            return (ends[0],)
    folders = (f"{name}/", f"{name.removeprefix(UNLOADED).replace('.', '/')}/")
    return tuple(sorted(path for path in paths if path.startswith(folders) and is_test_module(path)))


def _tests_in_files(files: Iterable[str], tree: Tree, runner: str) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for path in files:
        found.update(written_tests(path, tree.data(path) or b"", unittest=runner == "unittest"))
    return found


MAY_SKIP = re.compile(r"skip|xfail|expectedFailure", re.IGNORECASE)
NOT_COLLECTED = re.compile(r"\b__test__\s*=|\bdef __init__\b")
DECLARED = re.compile(r"^\s*(?:it|test|describe|suite|specify|context)\b[.\w]*\(", re.MULTILINE)
DEFINITIONS = frozenset({"function_definition", "class_definition", "decorated_definition"})


def written_tests(path: str, source: bytes, *, unittest: bool) -> dict[str, bool]:
    """Test by name (`path::Class::test`, without parameters) -> whether it runs in any case: nothing in its text, nor
    in that of its class and its module, is about skipping or expected failures. With `unittest`, only what that collects.

    Inherited tests, those in other places than a module or a class of it, and those that the repository's own settings
    name differently are not found. Empty for a file that is not Python or cannot be parsed.
    """
    tree = tree_of(source, path) if grammar_of(path) == "python" else None
    if tree is None:
        return {}
    loose = [
        _node_text(node, source) for node in tree.root_node.named_children if node.type not in DEFINITIONS
    ]
    return {
        "::".join((path, *names)): sure and not MAY_SKIP.search("\n".join(loose))
        for names, sure in _tests_in_module(tree.root_node, source, unittest=unittest)
    }


def declares_tests(path: str, source: bytes) -> bool:
    """Whether the text has tests, whatever the file is called."""
    if grammar_of(path) == "python":
        return bool(written_tests(path, source, unittest=False))
    return grammar_of(path) is not None and DECLARED.search(source.decode("utf-8", "replace")) is not None


def _tests_in_module(root: Node, source: bytes, *, unittest: bool) -> Iterator[tuple[tuple[str, ...], bool]]:
    for node in root.named_children:
        definition = node.child_by_field_name("definition") or node
        name = _node_text(definition.child_by_field_name("name"), source)
        if definition.type == "function_definition" and not unittest and _is_test(node, definition, source):
            yield (name,), not MAY_SKIP.search(_node_text(node, source))
        elif definition.type == "class_definition":
            bases = _node_text(definition.child_by_field_name("superclasses"), source)
            is_case = re.search(r"Case\b", bases) is not None
            if not is_case and (unittest or not name.startswith("Test")):
                continue
            if NOT_COLLECTED.search(_node_text(definition, source)):
                continue
            yield from (((name, *inner), sure) for inner, sure in _test_methods(node, definition, source))


def _test_methods(node: Node, definition: Node, source: bytes) -> Iterator[tuple[tuple[str, ...], bool]]:
    body = definition.child_by_field_name("body")
    members = body.named_children if body is not None else []
    head = source[node.start_byte : definition.start_byte].decode("utf-8", "replace")
    loose = [head, *(_node_text(one, source) for one in members if one.type not in DEFINITIONS)]
    skips = MAY_SKIP.search("\n".join(loose)) is not None
    for member in members:
        method = member.child_by_field_name("definition") or member
        if method.type != "function_definition":
            continue
        text = _node_text(member, source)
        name = _node_text(method.child_by_field_name("name"), source)
        if _is_test(member, method, source):
            yield (name,), not (skips or MAY_SKIP.search(text))
        elif name.startswith(("setUp", "setup")) and MAY_SKIP.search(text):
            skips = True


def _is_test(node: Node, function: Node, source: bytes) -> bool:
    """Whether the name says so, and no decorator makes it a fixture."""
    head = source[node.start_byte : function.start_byte].decode("utf-8", "replace")
    name = _node_text(function.child_by_field_name("name"), source)
    return name.startswith("test") and re.search(r"\bfixture\b", head) is None


def _node_text(node: Node | None, source: bytes) -> str:
    return "" if node is None else source[node.start_byte : node.end_byte].decode("utf-8", "replace")

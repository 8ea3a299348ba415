"""`go test`: the events of `-json`, which its command in the shell is told to write among the reports.

A test is named `path::Test/subtest`, by the file of its package that declares it; a name that no file declares is not counted,
since code under test could print such lines. The files of a package that could not be built are named by their paths.
"""

import posixpath
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct, field

from clean_room_agent import safe_open
from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.artifacts.test_results import Failure, Outcome, Reading, TestReport, merge, unreadable
from clean_room_agent.languages.printed_values import strip_escapes, values_in
from clean_room_agent.languages.repository_files import RepositoryFiles
from clean_room_agent.languages.shell_words import ASSIGNMENT, simple_commands
from clean_room_agent.languages.test_runner import EndedCommand, GuardReader, TestRunner, TooMuchError

MAX_BYTES = 100_000_000
MAX_FILE = 1_000_000
OUTCOMES: Mapping[str, Outcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
DECLARED = re.compile(r"^func ((?:Test|Example|Fuzz)\w*)\(", re.MULTILINE)
MODULE = re.compile(r"^module\s+\"?([^\s\"]+)", re.MULTILINE)
UNBUILT = re.compile(r"^FAIL\t(\S+) \[(?:build|setup) failed\]$", re.MULTILINE)
ENDED = re.compile(r"--- (?P<action>PASS|FAIL|SKIP): (?P<test>\S+) \(")
"""How a test's end is printed: not an event of its own if the test printed half a line before it."""
NOISE = re.compile(r"(?:=== (?:RUN|PAUSE|CONT|NAME)\b.*| *--- (?:PASS|FAIL|SKIP): .*|FAIL|exit status \d+)\Z")
SAID = re.compile(r" *(?P<path>[^\s:/]+\.go):(?P<line>\d{1,9}): (?P<words>.*)")
"""A line of a test's log; the file without its folder."""
STACK = re.compile(r"\t(?P<path>\S+\.go):(?P<line>\d{1,9})(?: \+0x[0-9a-f]+)?")
COMPILER = re.compile(r"(?:vet: )?(?P<path>[^\s:]+\.go):(?P<line>\d{1,9})(?::\d+)?: (?P<words>.*)")
CALLED = re.compile(r".*\.(?P<function>\w+)\(.*\)")
COMPARED = tuple(
    re.compile(pattern, re.DOTALL | re.IGNORECASE)
    for pattern in (
        r"(?:.*\bgot\b|.* =|.* returned)[:=]?\s+(?P<actual>.+?)[,;]\s*(?:but )?(?:want(?:ed|s)?|expected)[:=]?\s+(?P<expected>.+)",
        r".*?\b(?:want(?:ed|s)?|expected)[:=]?\s+(?P<expected>.+?)[,;]?\s+(?:but )?got(?: only)?[:=]?(?:\s+(?P<actual>.*)|)",
    )
)
"""The usual words of a comparison: `Split(4) = 1, want 2`, `got 1; want 2`, `expected 2 but got 1`."""


class _Event(Struct, frozen=True, rename="pascal"):
    action: str = ""
    package: str = ""
    test: str = ""
    output: str = ""


class _Package(Struct):
    """What is known of a package: its tests in order, by their events."""

    outcomes: dict[str, Outcome | None] = field(default_factory=dict)
    """None: begun, and not ended."""
    said: dict[str, list[str]] = field(default_factory=dict)
    """Pieces of output of each test; "" for the package itself."""
    ended: bool = False


class GoTestRunner(TestRunner):
    """See `TestRunner`."""

    name = "go test"
    absent = r"(?:no required module provides package|cannot find (?:package|module providing package)) \"?(?P<go>[\w./-]+)"
    holder = r"^[^:>]*\.go\Z"

    def detect(self, files: RepositoryFiles) -> str:
        if not any(path.endswith("_test.go") for path in files.paths):
            return ""
        folders = [path.rpartition("/")[0] for path in files.nearest("go.mod")[:1]]
        return "".join(f"cd {folder} && go test ./..." if folder else "go test ./..." for folder in folders)

    def asked(self, command: str) -> str:
        """The command, each `go test` in it with its events written to a file; one whose output goes elsewhere is left alone."""
        for number, (start, end) in reversed(tuple(enumerate(_go_test_spans(command)))):
            report = f'> "$CRA_TEST_REPORTS/go-{number}.json"'
            command = f"{command[:start]} -json{command[start:end]} {report}{command[end:]}"
        return command

    def read(self, ended: EndedCommand) -> Reading | None:
        reader = GuardReader(ended.folder, max_bytes=MAX_BYTES)
        try:
            names = reader.names("go-*.json")
            lines = [
                line for name in names for line in reader.read(name).decode("utf-8", "replace").splitlines()
            ]
        except (OSError, TooMuchError):
            return unreadable(self.name, "go test: its report cannot be read")
        if not names:
            return None
        packages, others = _by_package(lines)
        unbuilt = [match[1] for line in others for match in UNBUILT.finditer(line)]
        sources = _Sources(ended.cwd)
        results, failures = _collect_results(packages, sources)
        broken = [failure for package in unbuilt for failure in _build_failures(package, ended.text, sources)]
        is_whole = all(package.ended for package in packages.values()) and (
            bool(packages or unbuilt) or ended.returncode == 0
        )
        last = next(reversed(ended.text.strip().splitlines()), "")
        outcomes = merge([*results, *((failure.name, "error") for failure in broken)])
        report = TestReport(
            runner=self.name,
            outcomes=outcomes,
            named=True,
            collected=len(dict(results)),
            passed=sum(outcome == "passed" for outcome in outcomes.values()),
            whole=is_whole,
            problem=""
            if is_whole
            else f"go test ended before the tests did (exit {ended.returncode}): {last}",
        )
        return Reading(
            report=report, failures=(*broken, *failures), shown=_readable_output(packages, others, ended.text)
        )

    def only(self, command: str, names: Collection[str]) -> str | None:
        """The command for the functions of these names, not answered from Go's cache."""
        started = tuple(_go_test_spans(command))
        if len(started) != 1:
            return None
        functions = sorted({re.split(r"[/#]", name.rpartition("::")[2])[0] for name in names})
        pattern = shlex.quote(f"^({'|'.join(functions)})$")
        return f"{command[: started[0][0]]} -count=1 -run {pattern}{command[started[0][0] :]}"

    def full_name(self, path: str, test: str) -> str:
        return f"{path}::{test}"

    def frames(self, text: str) -> Iterator[StackFrame]:
        function = ""
        for line in text.split("\n"):
            called = CALLED.fullmatch(line)
            match = STACK.fullmatch(line) or COMPILER.fullmatch(line)
            if match:
                yield StackFrame(
                    path=match["path"].removeprefix("./"), line=int(match["line"]), function=function
                )
            function = called["function"] if called else ""


def _go_test_spans(command: str) -> Iterator[tuple[int, int]]:
    """Of each simple command that is `go test`: where its `test` ends, and where it ends itself."""
    for words, is_piped in simple_commands(command):
        at = next((i for i, word in enumerate(words) if not ASSIGNMENT.match(word.text)), len(words))
        is_go = [word.text for word in words[at : at + 2]] == ["go", "test"]
        if (
            is_go
            and not is_piped
            and not any(word.text in {"-json", "-c"} or ">" in word.text for word in words)
        ):
            yield words[at + 1].end, words[-1].end


def _by_package(lines: Sequence[str]) -> tuple[dict[str, _Package], list[str]]:
    """The packages by their events, in order, and the lines that are none."""
    packages: dict[str, _Package] = {}
    others: list[str] = []
    for line in lines:
        try:
            event = msgspec.json.decode(line, type=_Event)
        except (msgspec.DecodeError, RecursionError):
            others.append(line)
            continue
        if not event.package:
            others.append(event.output.rstrip("\n"))  # of the compiler, from Go 1.24 on
            continue
        package = packages.setdefault(event.package, _Package())
        if event.action == "output":
            package.said.setdefault(event.test, []).append(event.output)
            if UNBUILT.search(event.output):
                others.append(event.output.rstrip("\n"))
        elif event.action == "run":
            package.outcomes.setdefault(event.test, None)
        elif event.action in OUTCOMES and event.test:
            package.outcomes[event.test] = OUTCOMES[event.action]
        elif event.action in OUTCOMES:
            package.ended = True
    return packages, others


def _collect_results(
    packages: Mapping[str, _Package], sources: "_Sources"
) -> tuple[list[tuple[str, Outcome]], list[Failure]]:
    results: list[tuple[str, Outcome]] = []
    failures: list[Failure] = []
    for name, package in packages.items():
        printed = "".join(piece for pieces in package.said.values() for piece in pieces)
        ends = {match["test"]: OUTCOMES[match["action"].lower()] for match in ENDED.finditer(printed)}
        for test, outcome in package.outcomes.items():
            path = sources.declaring(name, test.partition("/")[0])
            if not path:
                continue
            result = outcome or ends.get(test, "error")
            results.append((f"{path}::{test}", result))
            inner = [
                other
                for other, found in package.outcomes.items()
                if other.startswith(f"{test}/") and found == "failed"
            ]
            failure = _test_failure(path, test, "".join(package.said.get(test, [])))
            if result in {"failed", "error"} and not (inner and not failure.message):
                failures.append(failure)
    return results, failures


def _test_failure(path: str, test: str, output: str) -> Failure:
    """What a test said: its log, or the panic and its stack."""
    lines = [line for line in strip_escapes(output).split("\n") if not NOISE.match(line)]
    words: list[str] = []
    frames: list[StackFrame] = []
    function = ""
    is_stack = False
    for line in lines:
        is_stack = is_stack or line.startswith("goroutine ")
        logged, stack, called = SAID.fullmatch(line), STACK.fullmatch(line), CALLED.fullmatch(line)
        if is_stack and stack:
            frames.append(StackFrame(path=stack["path"], line=int(stack["line"]), function=function))
        elif logged and not is_stack:
            words.append(logged["words"])
            place = posixpath.join(posixpath.dirname(path), logged["path"])
            frames.append(StackFrame(path=place, line=int(logged["line"]), function=test.partition("/")[0]))
        elif not is_stack:
            words.append(line.strip())
        function = called["function"] if called else ""
    message = "\n".join(words).strip("\n")
    compared = next(filter(None, (pattern.fullmatch(message) for pattern in COMPARED)), None)
    expected, actual = (compared["expected"], compared["actual"] or "''") if compared else values_in(message)
    return Failure(
        name=f"{path}::{test}", detail="\n".join(lines), message=message, path=path, frames=tuple(frames),
        line=next((frame.line for frame in frames if frame.path == path), 0), expected=expected, actual=actual,
    )  # fmt: skip


def _build_failures(package: str, text: str, sources: "_Sources") -> list[Failure]:
    """A failure for each file of tests of a package that could not be built, with the compiler's words."""
    found = re.search(
        rf"^# {re.escape(package)}(?: .*|)\n(?P<said>(?:(?!# |FAIL\b|ok\b|\?).*\n?)*)", text, re.MULTILINE
    )
    said = found["said"].rstrip("\n") if found else ""
    place = next(filter(None, map(COMPILER.fullmatch, said.split("\n"))), None)
    path = place["path"].removeprefix("./") if place else ""
    files = sources.tests(package) or [path or package]
    return [
        Failure(name=name, detail=said, message=said, path=path, line=int(place["line"]) if place else 0)
        for name in files
    ]


def _readable_output(packages: Mapping[str, _Package], others: Sequence[str], text: str) -> str:
    """The output as `go test` prints it: of tests, those that failed."""
    lines = [text, *others]
    for package in packages.values():
        for test, pieces in package.said.items():
            if not test or package.outcomes.get(test) in {None, "failed"}:
                lines += [line for line in "".join(pieces).splitlines() if not line.startswith("=== ")]
    return "\n".join(filter(None, lines))


class _Sources:
    """The files of tests below one folder, by package."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._modules: dict[str, str] = {}
        for place in ("go.mod", "*/go.mod", "*/*/go.mod"):
            for file in sorted(root.glob(place)):
                inner = file.relative_to(root).as_posix()
                if found := MODULE.search(self._file_text(inner)):
                    self._modules.setdefault(found[1], posixpath.dirname(inner))
        self._declared_tests = cache(self._find_declared)

    def declaring(self, package: str, function: str) -> str:
        """The path of the file that declares the function; "" if none does."""
        return self._declared_tests(package).get(function, "")

    def tests(self, package: str) -> list[str]:
        """The paths of the files that declare tests, sorted."""
        return sorted(set(self._declared_tests(package).values()))

    def _find_declared(self, package: str) -> dict[str, str]:
        """The path of the file that declares each function that is a test."""
        found: dict[str, str] = {}
        folder = self._package_folder(package)
        for file in sorted((self._root / folder).glob("*_test.go")) if folder is not None else ():
            inner = file.relative_to(self._root).as_posix()
            found.update(dict.fromkeys(DECLARED.findall(self._file_text(inner)), inner))
        return found

    def _package_folder(self, package: str) -> str | None:
        """The folder of a package, by the longest module path that it begins with; None if it is of none of the modules."""
        modules = [module for module in self._modules if f"{package}/".startswith(f"{module}/")]
        if not modules:
            return None
        module = max(modules, key=len)
        return posixpath.join(self._modules[module], package[len(module) + 1 :])

    def _file_text(self, path: str) -> str:
        try:
            return safe_open.read_bytes(self._root, path, max_bytes=MAX_FILE).decode("utf-8", "replace")
        except OSError:
            return ""

"""What a test command runs in: the Python that runs the tests, its environment, and what the guard in its processes saw.
That Python can also check whether files can be imported.
"""

import contextlib
import itertools
import json
import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from clean_room_agent import safe_open
from clean_room_agent.folders import remove_tree

SEPARATORS = frozenset({"{", "}", "!", "if", "then", "elif", "else", "while", "until", "do"})
"""Words after which a simple command begins."""
NODE_TESTS = re.compile(r"\bnode\b[^&|;\n\"]*\s--test(?![\w-])")
PACKAGE_SCRIPT = re.compile(r"\b(?:npm|yarn|pnpm|bun)\b")
SCRIPTED = re.compile(
    r"\b(?:npm|npx|pnpm|yarn|bunx?|node|deno|jest|vitest|mocha|ava|react-scripts|vue-cli-service|ng|nx|turbo|lerna)\b"
)
"""A program of JavaScript in a command."""
PYTHON_TESTS = re.compile(r"\b(?:py\.test|pytest|tox|nox)\b|-m unittest\b|\bmanage\.py test\b")
SHELL_WORD = re.compile(
    r"(?P<comment>#[^\n]*)|(?P<operator>\n|[;&|()]+)|(?P<space>[^\S\n]+)"
    r"|(?P<word>(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^\s;&|()'\"\\])+)|(?P<unclosed>.)",
    re.DOTALL,
)
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
RUNNERS = frozenset({"pytest", "py.test", "nosetests", "nose2", "trial", "stestr", "green"})
"""Programs that are next to the interpreter that they run in."""
STARTERS = frozenset({"uv", "poetry", "pdm", "pipenv", "hatch", "rye", "pixi"})
"""Programs that start another with `run`."""
ANY_PYTHON = '"$(command -v python || command -v python3)"'
FAULT_CODE = 3
MAX_WORDS = 600


PROGRAM = f"""\
import importlib, importlib.util, os, sys, traceback

def load(file):
    folder, name = os.path.split(os.path.splitext(file)[0])
    parts = [name]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    known = [os.path.realpath(entry or ".") for entry in sys.path]
    roots = [root for root in known if (folder + os.sep).startswith(root.rstrip(os.sep) + os.sep)]
    if roots:
        rest = os.path.relpath(folder, max(roots, key=len))
        parts = [part for part in rest.split(os.sep) if part != "."] + parts
    if parts[-1] == "__init__":
        parts.pop()
    if roots and parts and all(part.isidentifier() for part in parts):
        module = importlib.import_module(".".join(parts))
        found = os.path.realpath(getattr(module, "__file__", None) or "")
        if found != file:
            raise ImportError(".".join(parts) + " is found at another place: " + found)
        return
    spec = importlib.util.spec_from_file_location("scaffold_to_be_proven", file)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))

for path in sys.argv[1:]:
    try:
        load(os.path.realpath(path))
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename == os.path.realpath(path)]
        place = "line %d: " % own[-1].lineno if own else ""
        words = "".join(traceback.format_exception_only(type(error), error)).strip()
        print("cannot import %s: %s%s" % (path, place, words))
        sys.exit({FAULT_CODE})
"""


GUARD = Path(__file__).parent / "guard"
"""The folder of what the processes load, mounted read-only for them."""
FOLDER_VARIABLE = "CRA_TEST_REPORTS"
"""The variable that names the folder for what the guard saw."""
LEFT_OUT = "left-out.json"
TREE_VARIABLE = "CRA_TEST_TREE"
"""The variable that names the tree, if what the tests depend on is to be recorded."""
OBSERVED_VARIABLE = "CRA_TEST_OBSERVED"
"""The variable that says what is recorded of the functions that run (`guard/cra_observe.py`), if anything is."""
MAX_BYTES = 10_000_000
"""Limit for all the guard's files of one command together."""
MAX_FILES = 4_000
"""Files of one kind: one for each process in which a runner started."""
SOURCE_FOLDERS = ("src", "lib")
VENV_FOLDERS = (".venv", "venv")
MAX_PATH_FILES = 200
MAX_PATH_BYTES = 64 * 1024
"""Limit for one `.pth` file."""
DROPPED = ("GIT_", "CRA_TEST_", "PYTEST_XDIST_", "PYTEST_CURRENT_TEST", "PYTEST_VERSION")
"""Prefixes of variables that are dropped: git's own, and those of a pytest that this program may be running under."""
REPORT_OPTIONS = ("-o", "junit_family=xunit1", "-o", "junit_logging=no", "--continue-on-collection-errors")
"""xunit1 names each test's file, and `record_property` warns under xunit2; captured output would swell the report; and
a file that cannot be imported must not hide the results of all others: the run fails in either case.
"""


def runs_node_tests(command: str, package: str) -> bool:
    """Whether the command, or a script of `package` (a package.json's text) that it may run, is Node's own test runner
    with its default reporter.
    """
    texts = (command, package) if PACKAGE_SCRIPT.search(command) else (command,)
    return any(NODE_TESTS.search(text) and "--test-reporter" not in text for text in texts)


def may_watch(command: str, root: Path) -> bool:
    """Whether the command, run in `root`, may start a runner of JavaScript: many of these wait for changes, without an end,
    unless the variable CI is set. Python's runners do not, and with CI some skip tests and print differences in full.
    """
    if SCRIPTED.search(command):
        return True
    packages = (root / "package.json", *root.glob("*/package.json"))
    return not PYTHON_TESTS.search(command) and any(package.is_file() for package in packages)


class ShellWord(Struct, frozen=True, kw_only=True):
    """A word of a shell command, or an operator between simple commands."""

    written: str
    """As it is written, with its quotes."""
    text: str
    """What it says; as written for an operator."""
    separates: bool
    """Whether a new simple command begins behind it."""


def shell_words(command: str) -> tuple[ShellWord, ...]:
    """The words of a shell command, in order, without comments. A quote that is never closed separates two words, so that
    nothing is lost in texts that the shell reads differently, such as those of `<<`.
    """
    found = []
    for match in SHELL_WORD.finditer(command.replace("\\\n", " ")):
        written, kind = match[0], match.lastgroup
        if kind == "operator":
            found.append(ShellWord(written=written, text=written, separates=True))
        elif kind == "word":
            text = "".join(shlex.split(written))
            found.append(ShellWord(written=written, text=text, separates=written in SEPARATORS))
    return tuple(found)


def import_command(test_command: str, paths: Iterable[str]) -> str:
    """A shell command that imports the files (paths relative to the top) with the interpreter that runs the tests."""
    return f"{interpreter_of(test_command)} -c {shlex.quote(PROGRAM)} {shlex.join(paths)}"


def interpreter_of(command: str) -> str:
    """The command that starts the Python of a test command, with the variables that the command sets; otherwise any
    Python.
    """
    for words in _simple_commands(command):
        start = next((at for at, word in enumerate(words) if not ASSIGNMENT.match(word)), len(words))
        settings, rest = words[:start], words[start:]
        if not rest:
            continue
        name = posixpath.basename(rest[0])
        if PYTHON.fullmatch(name):
            program = [rest[0]]
        elif name in RUNNERS and "/" in rest[0]:
            program = [posixpath.join(posixpath.dirname(rest[0]), "python")]
        elif name in STARTERS and rest[1:2] == ["run"]:
            program = [*rest[:2], "python"]
        elif name in RUNNERS:
            return " ".join([*map(_setting, settings), ANY_PYTHON])
        else:
            continue
        return " ".join([*map(_setting, settings), shlex.join(program)])
    return ANY_PYTHON


def import_fault(returncode: int, said: str) -> tuple[str, bool]:
    """Why the files could not be imported, "" if they could; and whether the files are the cause."""
    if returncode == 0:
        return "", False
    if returncode == FAULT_CODE:
        return said.strip()[-MAX_WORDS:], True
    return f"the import could not be tried: exit code {returncode}", False


def program_of(command: str) -> str:
    """The program that the command starts first, as far as its text says; "" if the shell has to find it out."""
    for words in _simple_commands(command):
        program = next((word for word in words if not ASSIGNMENT.match(word)), "")
        if program:
            return "" if set(program) & set("$`~*?[{<>") else program
    return ""


def _simple_commands(command: str) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for word in shell_words(command):
        if word.separates:
            found.append([])
        else:
            found[-1].append(word.text)
    return found


def _setting(word: str) -> str:
    name, _, value = word.partition("=")
    return f"{name}={shlex.quote(value)}"


class Watched(Struct, frozen=True, kw_only=True):
    """What the guard saw of the runners that a command started."""

    ended: bool | None = None
    """Whether each ended by itself; None if none was seen to start."""
    replaced: tuple[tuple[str, str], ...] = ()
    """(function of the runner, file of its replacement), sorted."""


class GuardReader:
    """Reads files in one folder up to a limit of bytes, since code under test can write there as well."""

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        self._folder = folder
        self._left = max_bytes

    def names(self, pattern: str) -> list[str]:
        """The files' names, sorted.

        Raises:
            TooMuchError: there are more than `MAX_FILES`.
        """
        found = list(itertools.islice(self._folder.glob(pattern), MAX_FILES + 1))
        if len(found) > MAX_FILES:
            raise TooMuchError
        return sorted(place.name for place in found)

    def read(self, name: str) -> bytes:
        """The file's bytes.

        Raises:
            OSError: there is none, or it is something else.
            TooMuchError: together with those read before, there are too many bytes.
        """
        data = safe_open.read_bytes(self._folder, name, max_bytes=self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise TooMuchError
        return data


class TooMuchError(Exception):
    """There is more than is read."""


def guard_folder(report: Path) -> Path:
    """The folder for what the guard sees, next to the runner's own report."""
    return report.with_suffix(".guard")


def clear_guard_folder(report: Path, left_out: Collection[str] = ()) -> None:
    """Remove what an earlier command left, and create the folder; `left_out` are tests and files, in the names of
    Python's runners, that the next command does not run.
    """
    folder = guard_folder(report)
    remove_tree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if left_out:
        safe_open.write_bytes(folder, LEFT_OUT, json.dumps(sorted(left_out)).encode())


def read_watched(report: Path) -> Watched:
    """What the guard saw: whether the runners in Python ended by themselves, and what was replaced in them and in Node."""
    reader = GuardReader(guard_folder(report), max_bytes=MAX_BYTES)
    try:
        started = reader.names("python-*.started")
        ends = [_end(reader, f"{name.removesuffix('.started')}.ended") for name in started]
        seen = [_end(reader, name) for name in reader.names("*.replaced")]
    except TooMuchError:
        return Watched(ended=False)
    replaced = {pair for end in (*ends, *seen) if end is not None for pair in end}
    ended = all(end is not None for end in ends) if started else None
    return Watched(ended=ended, replaced=tuple(sorted(replaced)))


def started_runners(report: Path) -> Mapping[str, int]:
    """In how many processes the guard saw pytest and unittest start, of those that it saw."""
    reader = GuardReader(guard_folder(report), max_bytes=MAX_BYTES)
    try:
        found = Counter(
            reader.read(name).decode("utf-8", "replace") for name in reader.names("python-*.started")
        )
    except (OSError, TooMuchError):
        return {}
    return {name: found[name] for name in ("pytest", "unittest") if found[name]}


def pytest_reports(report: Path) -> tuple[str, ...]:
    """The names of the reports, in the guard's folder, of the processes of pytest that the guard saw."""
    reader = GuardReader(guard_folder(report), max_bytes=MAX_BYTES)
    try:
        left = {name.removesuffix(".xml") for name in reader.names("python-*.xml")}
        seen = [name.removesuffix(".started") for name in reader.names("python-*.started")]
    except TooMuchError:
        return ()
    return tuple(f"{name}.xml" for name in seen if name in left)


def merge_watched(seen: Iterable[Watched]) -> Watched:
    """What was seen of several runs of one command."""
    runs = tuple(seen)
    ends = [one.ended for one in runs if one.ended is not None]
    replaced = {pair for one in runs for pair in one.replaced}
    return Watched(ended=all(ends) if ends else None, replaced=tuple(sorted(replaced)))


def newly_replaced(before: Iterable[tuple[str, str]], after: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """What was replaced in `after` but not in `before`, in words, sorted."""
    had = set(before)
    return tuple(f"{name} by {file}" for name, file in sorted(set(after) - had))


def _end(reader: GuardReader, name: str) -> list[tuple[str, str]] | None:
    """What a runner wrote at its end; None if there is nothing readable."""
    try:
        pairs = json.loads(reader.read(name))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(pairs, list):
        return None
    return [(str(pair[0]), str(pair[1])) for pair in pairs if isinstance(pair, list) and len(pair) == 2]


def test_environment(
    inherited: Mapping[str, str],
    worktree: Path,
    repo_top: Path,
    report: Path,
    *,
    node_tests: bool = False,  # noqa: PT028 - no test
    traced: bool = False,  # noqa: PT028
    observed: str = "",  # noqa: PT028
    once: bool = False,  # noqa: PT028
) -> dict[str, str]:
    """The environment for tests in `worktree`, a copy of `repo_top`, made from `inherited`.

    PYTHONPATH has the guard, then the worktree's import roots first; pytest, should the command run it, leaves its results at
    `report`; jest, vitest and mocha leave theirs beside it, and, with `node_tests`, Node's own runner; `traced` has what the tests depend on recorded, `observed` (JSON)
    the functions that they run; PATH and VIRTUAL_ENV that point into the user's tree point into the worktree where the same is there; no
    bytecode is written (a retry within a second could be taken for the attempt before it); hashes of strings are the
    same in each run unless the user set otherwise, so that messages are; with `once`, CI is set likewise, so that no runner
    waits for changes.
    """
    env = {name: value for name, value in inherited.items() if not name.startswith(DROPPED)}
    roots = import_roots(inherited, worktree, repo_top)
    others = [entry for entry in env.get("PYTHONPATH", "").split(":") if entry]
    env["PYTHONPATH"] = ":".join(_once([str(GUARD), *map(str, roots), *others]))
    env[FOLDER_VARIABLE] = str(guard_folder(report))
    if traced:
        env[TREE_VARIABLE] = str(worktree)
    if observed:
        env[OBSERVED_VARIABLE] = observed
    options = shlex.join((f"--junitxml={report}", *REPORT_OPTIONS))
    env["PYTEST_ADDOPTS"] = f"{env.get('PYTEST_ADDOPTS', '')} {options}".strip()
    env["NODE_OPTIONS"] = " ".join(filter(None, (env.get("NODE_OPTIONS", ""), *_node_options(node_tests))))
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env.setdefault("PYTHONHASHSEED", "0")
    if once:
        env.setdefault("CI", "1")
    if "PATH" in env:
        env["PATH"] = ":".join(_moved(entry, worktree, repo_top) for entry in env["PATH"].split(":"))
    if "VIRTUAL_ENV" in env:
        env["VIRTUAL_ENV"] = _moved(env["VIRTUAL_ENV"], worktree, repo_top)
    return env


def _node_options(node_tests: bool) -> tuple[str, ...]:
    quoted = {name: json.dumps(str(GUARD / name)) for name in ("preload.cjs", "node-reporter.cjs")}
    options = [f"--require {quoted['preload.cjs']}"]
    if node_tests:
        options += ["--test-reporter=spec --test-reporter-destination=stdout"]
        options += [f"--test-reporter={quoted['node-reporter.cjs']} --test-reporter-destination=stderr"]
    return tuple(options)


def import_roots(inherited: Mapping[str, str], worktree: Path, repo_top: Path) -> tuple[Path, ...]:
    """The folders of the worktree that imports start from: `src` and `lib` if they contain Python, the top, and
    whatever the user's own PYTHONPATH and editable installs name inside `repo_top`. In that order, without duplicates.
    """
    usual = [worktree / name for name in SOURCE_FOLDERS if _holds_python(worktree / name)]
    named = [
        moved
        for entry in (*inherited.get("PYTHONPATH", "").split(":"), *_editable(inherited, repo_top))
        if entry and (moved := _moved(entry, worktree, repo_top)) != entry
    ]
    return tuple(Path(entry) for entry in _once([*map(str, usual), str(worktree), *named]))


def _editable(inherited: Mapping[str, str], repo_top: Path) -> Iterator[str]:
    """The folders that `.pth` files of the active or an in-tree virtual environment add, in the order of the files."""
    active = inherited.get("VIRTUAL_ENV", "")
    homes = [Path(active)] if active else []
    homes.extend(repo_top / name for name in VENV_FOLDERS)
    for home in homes:
        for file in sorted(home.glob("lib/python3*/site-packages/*.pth"))[:MAX_PATH_FILES]:
            # A repository can bring such a folder, and a link to a device in it.
            with contextlib.suppress(OSError):
                text = safe_open.read_bytes(file.parent, file.name, max_bytes=MAX_PATH_BYTES)
                for line in text.decode("utf-8", "replace").splitlines():
                    if line.startswith("/"):
                        yield line.rstrip()


def _moved(entry: str, worktree: Path, repo_top: Path) -> str:
    """The same place in the worktree, if `entry` is in the user's tree and exists in the worktree; else `entry`."""
    for top in (repo_top, repo_top.resolve()):
        if Path(entry).is_relative_to(top):
            moved = worktree / Path(entry).relative_to(top)
            return str(moved) if moved.exists() else entry
    return entry


def _holds_python(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    return any(folder.glob("*.py")) or any(folder.glob("*/__init__.py")) or any(folder.glob("*/*.py"))


def _once(entries: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(entries))

"""Why tests cannot be imported.

At the base: generated files that git ignores, and packages that are not installed. A generated file (`_version.py`, a parser, a client) stands in the user's tree, and is not in a worktree unless
`.worktreeinclude` names it. No edit can make good what is missing in this way.

After an edit: which file it broke, by which error, at which line. Runners say it each in their own way, most of them in a block about the
file of tests that wanted the import:

    pytest     test_a.py: error         NameError: name 'x' is not defined        frames: lib.py:3, test_a.py:1
    pytest     test_a.py: error         File "lib.py", line 67 / SyntaxError: '(' was never closed
    unittest   _FailedTest.test_a       NameError ...
    node       a.test.js: failed        "test failed"; the error is in the output alone
    others     no test at all           the process ended, with a stack trace
"""

import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from clean_room_agent import safe_open
from clean_room_agent.artifacts.evidence import FailingTest, StackFrame
from clean_room_agent.artifacts.names import listed, quoted
from clean_room_agent.errors import ConfigError
from clean_room_agent.git.repository import list_files, list_ignored
from clean_room_agent.git.worktree import INCLUDE_FILE
from clean_room_agent.languages.test_names import files_meant, is_of_file
from clean_room_agent.languages.test_runners import ABSENT
from clean_room_agent.orchestrator.test_runs.results import TestRun
from clean_room_agent.paths import is_secret_name, is_test_path

PYTHON = (".py", ".so")
SCRIPTS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".json", ".node")
FROM = re.compile(
    r"^[ \t]*from[ \t]+(?P<dots>\.*)(?P<module>[\w.]*)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n#;]+)",
    re.MULTILINE,
)
IMPORT = re.compile(r"^[ \t]*import[ \t]+(?P<modules>[\w.]+(?:[ \t]*(?:,|as)[ \t]*[\w.]+)*)", re.MULTILINE)
RELATIVE = re.compile(
    r"""(?:\bfrom|\bimport|\brequire|\bimport[ ]?\(|\brequire[ ]?\()[ ]*\(?["'](\.{1,2}/[^"'\n]+)["']"""
)
DECLARED_IN = ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "package.json", "go.mod")
MAX_BYTES = 1 << 20
MAX_READ = 5_000
"""Files of code that are read."""
SHOWN = 5
"""The most lines of `.worktreeinclude` that are named."""


class MissingModules(Struct, frozen=True, kw_only=True):
    """Why no test can be imported."""

    text: str
    """The first error, with its file and line."""
    remedy: str
    is_outside: bool
    """Whether no edit can make it good: what is missing is ignored by git, or not installed."""


def ignored_imports(top: Path) -> tuple[str, ...]:
    """The ignored files below `top` that code which git does not ignore imports, and that `.worktreeinclude` does not name;
    sorted, and none that may hold secrets.
    """
    listed = list_ignored(top, (*PYTHON, *SCRIPTS), besides=INCLUDE_FILE)
    ignored = {path for path in listed if not is_secret_name(path)}
    if not ignored:
        return ()
    stems = re.compile("|".join(sorted({re.escape(module_name(path)) for path in ignored})))
    paths = list_files(top)
    code = [path for path in paths if path.endswith((*PYTHON, *SCRIPTS)) and not path.endswith(".json")]
    modules = {_module_path(path) for path in paths if path.endswith(PYTHON)}
    by_module = {_module_path(path): path for path in ignored}
    found: set[str] = set()
    for path in code[:MAX_READ]:
        text = _read_text(top, path)
        if stems.search(text):
            wanted = _python_modules(path, text) if path.endswith(PYTHON) else _script_modules(path, text)
            found.update(_ignored_module_files(set(wanted), by_module, modules))
    return tuple(sorted(found))


def missing_modules(run: TestRun, top: Path, task: str = "") -> MissingModules | None:
    """Why no test of the run, one at the base, could be imported; None if one could."""
    error, path, line = nothing_loads(run)
    if not error:
        return None
    place = f" ({path}, line {line})" if path and line else f" ({path})" if path else ""
    text = f"nothing can be imported: {error}{place}"
    missing = ABSENT.search(error)
    ignored = ignored_imports(top) if missing is not None else ()
    words = set(re.findall(r"\w+", missing[0])) if missing is not None else set()
    if any(module_name(one) in words for one in ignored):
        return MissingModules(text=text, remedy=include_remedy(ignored), is_outside=True)
    package = package_of(missing) if missing is not None else ""
    if package and package not in own_names(top):
        used = bool(path) and not is_test_path(path)
        texts = (_read_text(top, name).casefold() for name in _dependency_files(top))
        declared = any(package.casefold() in text for text in texts)
        if (used or declared) and not re.search(rf"\b{re.escape(package)}\b", task):
            remedy = (
                f"install {package} where the command finds it, or link the environment with [worktree] link"
            )
            return MissingModules(text=text, remedy=remedy, is_outside=True)
    remedy = "fix that first, or make it the task; nothing else can be judged before"
    return MissingModules(text=text, remedy=remedy, is_outside=False)


def require_imports(run: TestRun, top: Path, key: str, task: str) -> None:
    """Check that tests of the base can be imported, as far as no edit could fix that.

    Raises:
        ConfigError: none can, for want of a file that git ignores or of a package; the message has the first error and its
            place, the hint what to do.
    """
    missing = missing_modules(run, top, task)
    if missing is not None and missing.is_outside:
        raise ConfigError(f"[testing] {key}: before any change, {missing.text}", hint=missing.remedy)


def include_remedy(ignored: Collection[str]) -> str:
    """What to write into `.worktreeinclude` for these ignored files."""
    lines = ", ".join(list(ignored)[:SHOWN]) + (
        f" and {len(ignored) - SHOWN} more" if len(ignored) > SHOWN else ""
    )
    return f"git ignores what code here imports, so it is not in the copy that is tested; put into {INCLUDE_FILE}, a line each: {lines}"


def own_names(top: Path) -> set[str]:
    """The names of Python's modules and packages that the repository has, without those around them."""
    return {
        part
        for path in list_files(top)
        if path.endswith(PYTHON)
        for part in _module_path(path).split("/")
        if part
    }


def package_of(missing: re.Match[str]) -> str:
    """The package that is not installed; "" if a file is meant."""
    if missing["go"]:
        return missing["go"]
    name = missing["module"] or missing["script"] or ""
    if name.startswith((".", "/")):
        return ""
    parts = name.split("/")
    return "/".join(parts[:2]) if name.startswith("@") else parts[0].partition(".")[0]


def _dependency_files(top: Path) -> Iterator[str]:
    yield from DECLARED_IN
    for folder in ("", "requirements/"):
        yield from sorted(f"{folder}{path.name}" for path in (top / folder).glob("*.txt"))


def _ignored_module_files(
    wanted: set[str], ignored: dict[str, str], modules: Collection[str]
) -> Iterator[str]:
    """The ignored files that are one of the wanted modules (paths without a suffix; with `*/` before one that may begin in any
    folder), unless the repository has such a module.
    """
    for name in wanted:
        anywhere = name.removeprefix("*/")
        if anywhere == name:
            if name in ignored:
                yield ignored[name]
        elif not any(f"/{module}".endswith(f"/{anywhere}") for module in modules):
            yield from (path for module, path in ignored.items() if f"/{module}".endswith(f"/{anywhere}"))


def _python_modules(path: str, text: str) -> Iterator[str]:
    for found in FROM.finditer(text):
        base = found["module"].replace(".", "/")
        if found["dots"]:
            above = [".."] * (len(found["dots"]) - 1)
            base = posixpath.normpath(posixpath.join(posixpath.dirname(path), *above, base))
        else:
            base = f"*/{base}"
        yield base
        for name in re.findall(r"(\w+)(?:[ \t]+as[ \t]+\w+)?", found["names"]):
            yield f"{base}/{name}".removeprefix("./")
    for found in IMPORT.finditer(text):
        for part in found["modules"].split(","):
            yield "*/" + part.split()[0].replace(".", "/")


def _script_modules(path: str, text: str) -> Iterator[str]:
    for specifier in RELATIVE.findall(text):
        yield _module_path(posixpath.normpath(posixpath.join(posixpath.dirname(path), specifier)))


def _module_path(path: str) -> str:
    """The path without suffix, and without what names the file of a whole folder."""
    folder, slash, name = path.rpartition("/")
    stem = name.partition(".")[0] if name.endswith((*PYTHON, *SCRIPTS)) else name
    return folder if stem in {"__init__", "index"} and folder else f"{folder}{slash}{stem}"


def module_name(path: str) -> str:
    """The last part of the name by which code imports the file."""
    return posixpath.basename(_module_path(path))


def _read_text(top: Path, path: str) -> str:
    """The beginning of the regular file; "" if there is none."""
    return (safe_open.read_or_none(top, path, max_bytes=MAX_BYTES) or b"").decode("utf-8", "replace")


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
    """Which import the edits between the two runs broke, in one line; "" if none. `newly_failing` are names in `after`, of tests
    and of files.
    """
    unloaded = [name for name in newly_failing if is_of_file(name)]
    if unloaded:
        named = (test for test in after.failing if test.name in unloaded)
        failing = next(named, FailingTest(name=unloaded[0]))
        error = _find_error(failing.message) or _find_error(after.end.excerpt)
        return _describe_broken_import(error, failing, after, [files_meant(name)[0] for name in unloaded])
    ended = not after.report.whole and not after.report.outcomes and not after.end.timed_out
    if not ended or not before.report.whole:
        return ""
    error = _find_error(after.report.problem) or _find_error(after.end.excerpt)
    frame = after.frames[0] if after.frames else StackFrame(path="")
    failing = FailingTest(name="", path=frame.path, line=frame.line)
    return _describe_broken_import(error, failing, after, []) if error else ""


def nothing_loads(run: TestRun) -> tuple[str, str, int]:
    """Of a run in which no test passed or failed by itself, as no file of tests could be imported or each test lacked a module: the
    first error, and its file and line (0: unknown). Empty for any other run.
    """
    outcomes, excerpt = run.report.outcomes, run.end.excerpt
    red = run.red()
    lacking = bool(run.failing) and all(ABSENT.search(test.message) for test in run.failing)
    unloaded = bool(red) and (lacking or all(map(is_of_file, red)))
    if unloaded and not run.green() and (run.report.named or not run.report.passed):
        failing = next(iter(run.failing), FailingTest(name=min(red)))
        error = _error_or_absence(failing.message) or _error_or_absence(excerpt)
        return error or f"{failing.name} cannot be loaded", *_error_location(error, failing, run)
    is_broken = not outcomes and not run.end.timed_out and run.end.returncode != 0
    error = _error_or_absence(excerpt) if is_broken else ""
    if not ABSENT.search(error):
        return "", "", 0
    return error, *_error_location(error, FailingTest(name=""), run)


def _error_or_absence(text: str) -> str:
    absent = (line for line in text.split("\n") if ABSENT.search(line))
    return _find_error(text) or " ".join(next(absent, "").split())[:MAX_ERROR]


def _find_error(text: str) -> str:
    """The last error that the text names in a line of its own, else the first within a line; "" if there is none."""
    found = list(ERROR.finditer(text))
    if found:
        return " ".join(found[-1]["error"].split())[:MAX_ERROR]
    match = INLINE.search(text)
    said = "" if match is None else match["error"] or match["compiler"]
    return " ".join(said.split())[:MAX_ERROR]


def _describe_broken_import(error: str, failing: FailingTest, after: TestRun, files: Sequence[str]) -> str:
    path, line = _error_location(error, failing, after)
    if not path and not files:
        return ""
    at = f" (line {line})" if line else ""
    text = f"the edit broke the import of {quoted(path or files[0])}: {error or 'it cannot be loaded'}{at}"
    shown = listed(map(quoted, files), MAX_FILES)
    return f"{text}; so no test of {shown} runs" if files else f"{text}; so no test runs"


def _error_location(error: str, failing: FailingTest, after: TestRun) -> tuple[str, int]:
    """The file that cannot be imported, and the line; of a syntax error, where the parser stopped."""
    if UNPARSED.search(error):
        for text in (failing.message, after.end.excerpt):
            said = UNPARSED.search(text)
            above = text[: said.start()] + text[said.start() :].partition("\n")[0] if said else ""
            own = [place for place in map(_place_in, PLACE.finditer(above)) if _is_own(place[0])]
            if own:
                return own[-1]
    frame = next(iter(failing.frames or after.frames), StackFrame(path=failing.path, line=failing.line))
    return frame.path, frame.line


def _place_in(match: re.Match[str]) -> tuple[str, int]:
    return (match["python"] or match["script"]).removeprefix("./"), int(match["line"] or match["row"])


def _is_own(path: str) -> bool:
    """Whether the path may be one of the repository, as it is written."""
    return not path.startswith(("/", "<", "node:", "python/")) and not FOREIGN.search(path)

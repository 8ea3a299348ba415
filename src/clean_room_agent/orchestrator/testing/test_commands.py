"""What a test command runs: the repository's scripts that decide what is tested, and the Python that runs the tests.

That Python can tell whether files can be imported.
"""

import posixpath
import re
import shlex
from collections.abc import Collection, Iterable

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "source", ".", "exec", "env", "time", "command"})
INTERPRETERS = re.compile(r"(?:python|pypy)[\d.]*|node|bun|deno|ruby|perl|tsx|ts-node|npx|uv|poetry|run")
BUILD_FILES = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "gmake": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    "invoke": ("tasks.py",),
    "inv": ("tasks.py",),
    "nox": ("noxfile.py",),
    "tox": ("tox.ini", "tox.toml", "setup.cfg"),
}
SEPARATORS = frozenset({"&&", "||", ";", "|", "&", "(", ")", "{", "}", "!", "if", "then", "else", "do"})
NODE_TESTS = re.compile(r"\bnode\b[^&|;\n\"]*\s--test(?![\w-])")
PACKAGE_SCRIPT = re.compile(r"\b(?:npm|yarn|pnpm|bun)\b")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def scripts_of(commands: Iterable[str], files: Collection[str]) -> tuple[str, ...]:
    """Those of `files` (relative paths) that the shell `commands` run: scripts, and build files of make and its like.

    What stands among the arguments, as a test's or a module's path does, is not run. Sorted.
    """
    found: set[str] = set()
    for command in commands:
        for program in _programs(command):
            plain = posixpath.normpath(program)
            found.update({plain} & set(files))
            found.update(set(BUILD_FILES.get(posixpath.basename(plain), ())) & set(files))
    return tuple(sorted(found))


def runs_node_tests(command: str, package: str) -> bool:
    """Whether the command, or a script of `package` (a package.json's text) that it may run, is Node's own test runner
    with the reporter that it has by itself.
    """
    texts = (command, package) if PACKAGE_SCRIPT.search(command) else (command,)
    return any(NODE_TESTS.search(text) and "--test-reporter" not in text for text in texts)


def _programs(command: str) -> list[str]:
    """The words that are run: the first of each simple command, and the first that a shell or an interpreter is given."""
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        words = command.split()
    found: list[str] = []
    expected = True
    for word in words:
        if word in SEPARATORS or set(word) <= set("&|;()\n"):
            expected = True
        elif expected and not ASSIGNMENT.match(word) and not word.startswith("-"):
            found.append(word)
            name = posixpath.basename(word)
            expected = name in SHELLS or INTERPRETERS.fullmatch(name) is not None
        elif expected and word in {"-c", "-m", "-e"}:
            expected = False
    return found


PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
RUNNERS = frozenset({"pytest", "py.test", "nosetests", "nose2", "trial", "stestr", "green"})
"""Programs that stand beside the interpreter which they run in."""
STARTERS = frozenset({"uv", "poetry", "pdm", "pipenv", "hatch", "rye"})
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


def import_command(test_command: str, paths: Iterable[str]) -> str:
    """A shell command that imports the files by the interpreter that runs the tests; relative paths, from the top."""
    return f"{interpreter_of(test_command)} -c {shlex.quote(PROGRAM)} {shlex.join(paths)}"


def interpreter_of(command: str) -> str:
    """How the Python that a test command runs is started, with the variables that the command sets; else any."""
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
    """What kept the files from being imported, "" for nothing; and whether that lies in the files."""
    if returncode == 0:
        return "", False
    if returncode == FAULT_CODE:
        return said.strip()[-MAX_WORDS:], True
    return f"the import could not be tried: exit code {returncode}", False


def _simple_commands(command: str) -> list[list[str]]:
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return []
    found: list[list[str]] = [[]]
    for word in words:
        if word in SEPARATORS or set(word) <= set("&|;()\n"):
            found.append([])
        else:
            found[-1].append(word)
    return found


def _setting(word: str) -> str:
    name, _, value = word.partition("=")
    return f"{name}={shlex.quote(value)}"

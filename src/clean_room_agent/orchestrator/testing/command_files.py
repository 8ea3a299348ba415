"""What a test command runs beside the runner itself: files of the repository that decide what is tested."""

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

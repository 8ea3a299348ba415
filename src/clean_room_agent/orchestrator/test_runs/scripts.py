"""The repository's scripts that decide what a test command tests: those that it runs, and those that these run, one level
after another, as far as their text shows.

    command     make check
    Makefile    check: ; @sh ci/check.sh        (other targets' recipes are not read)
    ci/check.sh . ci/lib.sh; npm run verify
    package.json's "verify"   node tools/verify.js

decides by `Makefile`, `ci/check.sh`, `ci/lib.sh` and `tools/verify.js`. A shell script, a part of a Makefile, data or a file that an
option names may stand anywhere in a line; code counts only where a program, or the script of an interpreter, stands: product
code is named elsewhere in such texts, too. What programs compute is found by the trace of the baseline (`deciding.py`).
"""

import json
import posixpath
import re
import shlex
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from msgspec import Struct, field

from clean_room_agent.languages.ecmascript.script_runner import PACKAGE_SCRIPT
from clean_room_agent.languages.jsonc import as_object
from clean_room_agent.languages.shell_words import ASSIGNMENT, SEPARATORS
from clean_room_agent.paths import compile_globs, is_code

SHELLS = frozenset(
    {
        *("sh", "bash", "dash", "zsh", "ksh", "source", ".", "exec", "env", "time", "command"),
        *("coverage", "cross-env", "nyc", "c8", "dotenv", "nohup", "nice", "sudo", "xvfb-run", "eval"),
    }
)
"""Programs whose first argument is run, too."""
INTERPRETERS = re.compile(r"(?:python|pypy)[\d.]*|node|bun|deno|ruby|perl|tsx|ts-node|npx|uv|poetry|run|\$.*")
"""The same for interpreters; a variable may name one."""
MAKERS = frozenset({"make", "gmake"})
BUILD_FILES: Mapping[str, tuple[str, ...]] = {
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    "invoke": ("tasks.py",),
    "inv": ("tasks.py",),
    "nox": ("noxfile.py",),
    "tox": ("tox.ini", "tox.toml", "setup.cfg"),
}
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
RUN_SEVERAL = re.compile(r"\b(?:run-[sp]|npm-run-all|concurrently|lerna|nx|turbo)\b")
RUN_TASKS = re.compile(r"\b(?:hatch|pdm|poe|task|rye|pixi|poetry|uv)\b")
TASK_TABLES = frozenset({"scripts", "tasks"})
VALUED = re.compile(
    r"-(?:r|c|f|p)|--(?:require|import|loader|config|file|makefile|justfile|setupFiles\w*|rcfile)"
)
"""Options whose value is a file that decides."""
SHELL_NAME = re.compile(r"(?:.*\.(?:sh|bash|zsh|ksh|mk|mak|make)|GNUmakefile|[Mm]akefile|\.?[Jj]ustfile)\Z")
SHEBANG = re.compile(r"#!.*\b(?:sh|bash|dash|zsh|ksh|make|just)\b")
VARIABLE = re.compile(r"\$\{[^}]*\}|\$\([^()]*\)|`[^`]*`|\$\w+|\$")
RULE = re.compile(r"(?P<targets>[^\s#:=][^:=#]*?)\s*::?(?!=)(?P<needs>[^;=]*)(?:;(?P<recipe>.*))?\Z")
SETTING = re.compile(r"(?:export\s+|override\s+)?(?P<name>[\w.-]+)\s*[:?+!]{0,2}=\s*(?P<value>.*)\Z")
INCLUDE = re.compile(r"\s*[-s]?include\s+(?P<files>.*)\Z")
PROGRAMS = (".py", ".js", ".cjs", ".mjs", ".ts")
IMPORTED = re.compile(r"(?:\b(?:from|import|require)\b\s*\(?\s*[\"']?)(\.{0,2}/|)([\w./-]+)")
STARTS_RUNNER = re.compile(
    r"\b(?:(?:pytest|unittest|node:test|mocha|jest|vitest)\b|(?:spawn|exec(?:File)?)(?:Sync)?\s*\()"
)
PROSE = (".md", ".rst", ".adoc")
MAX_FILES = 200
MAX_TEXT = 200_000
MAX_PACKAGES = 50
MAX_EXPANSIONS = 5

Read = Callable[[str], str]
"""The text of a file by its path; "" if there is none."""


def scripts_of(commands: Iterable[str], files: Collection[str], read: Read) -> tuple[str, ...]:
    """Those of `files` (relative paths) that the shell `commands` run, or that scripts among these run: see the module.

    Other arguments, such as the path of a test or a module, are not run. Sorted.
    """
    walk = _Walk(files=frozenset(files), read=read)
    for command in commands:
        walk.follow(command, "")
    return tuple(sorted(walk.found))


class _Walk(Struct, kw_only=True):
    """The scripts found so far."""

    files: frozenset[str]
    read: Read
    found: set[str] = field(default_factory=set)
    _followed: set[tuple[str, str]] = field(default_factory=set)

    def follow(self, text: str, folder: str) -> None:
        """Find what a shell script in `folder`, or a command that is run there, runs."""
        if (text, folder) in self._followed or len(self.found) > MAX_FILES:
            return
        self._followed.add((text, folder))
        for line in _logical_lines(text[:MAX_TEXT]):
            words = _shell_words(line)
            for base in dict.fromkeys(("", folder, *_changed_folders(words, folder))):
                self._follow_in(base, line, words)
            if PACKAGE_SCRIPT.search(line) or RUN_SEVERAL.search(line):
                self._follow_packages(words)
            if RUN_TASKS.search(line):
                for task in _pyproject_commands(self.read("pyproject.toml")):
                    self.follow(task, "")

    def _follow_in(self, base: str, line: str, words: list[str]) -> None:
        """Find what the line runs, if its paths begin at the folder `base`."""
        for program in _invoked_programs(words):
            for name in (program, *BUILD_FILES.get(posixpath.basename(program), ())):
                self._add_script(name, base)
        for word in words if not line.lstrip().startswith("#") else ():
            self._add_shell(word, base)
            self._add_data(word, base)
        for option, value in _options_with_values(words):
            self._add_script(value, base)
            if option in {"-m", "-p"}:
                self._add_module(value, base)
        if MAKERS.intersection(map(posixpath.basename, words)) or "MAKE" in line:
            self._follow_make(words, base)

    def _add_script(self, word: str, base: str) -> None:
        path = _join_path(base, word)
        if path not in self.files or path in self.found:
            return
        self.found.add(path)
        text = self.read(path)
        name = posixpath.basename(path)
        builds = any(name in names for names in BUILD_FILES.values())
        if name in MAKEFILES or name.endswith(".mk"):
            self._read_makefile(path, ())
        elif SHELL_NAME.match(name) or SHEBANG.match(text):
            self.follow(text, posixpath.dirname(path))
        elif name.endswith(PROGRAMS) and not builds:
            self._add_imported(path, text)
        elif builds and name.endswith(".py"):
            self.follow("\n".join(re.findall(r"[\"']([^\"'\n]+)[\"']", text)), posixpath.dirname(path))
        elif builds:
            self.follow(re.sub(r"(?m)^\s*(?:[\w.-]+\s*[:=]|-)\s*", "", text), posixpath.dirname(path))

    def _add_imported(self, path: str, text: str) -> None:
        """Add the modules that a program imports and that start a runner."""
        folder = posixpath.dirname(path)
        for dots, name in IMPORTED.findall(text):
            inner = dots + name if "/" in name or dots else name.replace(".", "/")
            for base in dict.fromkeys((folder, "")):
                for end in ("", *PROGRAMS):
                    found = _join_path(base, inner + end)
                    if found in self.files and STARTS_RUNNER.search(self.read(found)):
                        self._add_script(found, "")

    def _add_shell(self, word: str, base: str) -> None:
        """Add the shell scripts and parts of Makefiles that the word names, even if only by a pattern."""
        name = word.rpartition("=")[2]
        if not SHELL_NAME.match(name):
            return
        if not VARIABLE.search(name) and "*" not in name and not name.startswith("/"):
            self._add_script(name, base)
            return
        pattern = VARIABLE.sub("*", re.sub(rf"^(?:{VARIABLE.pattern}|)/", "**/", name))
        for path in sorted(self.files):
            if SHELL_NAME.match(path) and compile_globs((pattern.removeprefix("./"),)).match(path):
                self._add_script(path, "")

    def _add_data(self, word: str, base: str) -> None:
        """Add the file that the word names, unless it is code or prose."""
        path = _join_path(base, word.rpartition("=")[2])
        if path in self.files and not is_code(path) and not path.lower().endswith(PROSE):
            self._add_script(path, "")

    def _add_module(self, name: str, base: str) -> None:
        for top in ("", "src/", "lib/"):
            for end in (".py", "/__main__.py"):
                self._add_script(f"{top}{name.replace('.', '/')}{end}", base)

    def _follow_make(self, words: list[str], base: str) -> None:
        """Follow the recipes of the targets that a call of make names."""
        given = dict(_options_with_values(words))
        folder = _join_path(base, given.get("-C", given.get("--directory", "")))
        named = [given[option] for option in ("-f", "--file", "--makefile") if option in given]
        others = (word for word in words if word not in given.values())
        targets = tuple(word for word in others if re.fullmatch(r"[\w./%][\w./%-]*", word))
        for name in named or MAKEFILES:
            path = _join_path(folder, name)
            if path in self.files:
                self.found.add(path)
                self._read_makefile(path, targets)
                if not named:
                    return

    def _read_makefile(self, path: str, targets: tuple[str, ...]) -> None:
        folder = posixpath.dirname(path)
        made = _Makefile()
        made.read(self.read(path))
        for file in made.included():
            for base in dict.fromkeys(("", folder)):
                inner = _join_path(base, file)
                for found in [inner] if inner in self.files else _files_matching(inner, self.files):
                    self.found.add(found)
                    made.read(self.read(found))
        for line in made.recipes(targets):
            self.follow(line, folder)

    def _follow_packages(self, words: list[str]) -> None:
        wanted = {word.removeprefix("npm:") for word in words}
        wanted |= {"test"} if wanted & {"t", "tst", "it", "cit"} else set()
        named = (path for path in self.files if posixpath.basename(path) == "package.json")
        packages = sorted(path for path in named if "node_modules/" not in path)
        for path in packages[:MAX_PACKAGES]:
            for name, script in _package_scripts(self.read(path)):
                plain = re.sub(r"^(?:pre|post)(?=.)", "", name)
                if any(one in {name, plain} or _is_pattern_of(one, name) for one in wanted):
                    self.follow(script, posixpath.dirname(path))


class _Makefile(Struct, kw_only=True):
    """Rules and variables of a Makefile and what it includes."""

    variables: dict[str, str] = field(default_factory=dict)
    rules: dict[str, list[str]] = field(default_factory=dict)
    """Target -> its recipe's lines."""
    needs: dict[str, list[str]] = field(default_factory=dict)
    _included: list[str] = field(default_factory=list)

    def read(self, text: str) -> None:
        """Add the rules of a file."""
        current: list[str] = []
        for line in _logical_lines(text[:MAX_TEXT]):
            if line.startswith("\t"):
                for target in current:
                    self.rules[target].append(line.strip().lstrip("@-+ "))
                continue
            setting, rule, include = (pattern.match(line.strip()) for pattern in (SETTING, RULE, INCLUDE))
            if include is not None:
                self._included += include["files"].split()
            elif setting is not None:
                self.variables[setting["name"]] = setting["value"]
            elif rule is not None:
                current = self._expand_variables(rule["targets"]).split()
                for target in current:
                    self.rules.setdefault(target, [])
                    self.rules[target] += [rule["recipe"].strip()] if rule["recipe"] else []
                    self.needs.setdefault(target, []).extend(self._expand_variables(rule["needs"]).split())

    def included(self) -> Iterator[str]:
        """The files that it includes, also those that these include, as they are read."""
        at = 0
        while at < min(len(self._included), MAX_FILES):
            yield self._expand_variables(self._included[at])
            at += 1

    def recipes(self, targets: Iterable[str]) -> list[str]:
        """The lines that make runs for these targets, variables expanded; for none that is known, the first target's."""
        pending = [target for target in targets if target in self.rules]
        pending = pending or [target for target in self.rules if not target.startswith(".")][:1]
        seen: set[str] = set()
        found: list[str] = []
        while pending:
            target = pending.pop()
            if target in seen:
                continue
            seen.add(target)
            found += self.rules.get(target, [])
            pending += [need for need in self.needs.get(target, []) if need in self.rules]
        patterns = [target for target in self.rules if "%" in target or target == ".DEFAULT"]
        found += [line for target in patterns for line in self.rules[target]]
        shell = [value for value in self.variables.values() if "$(shell" in value]
        return [self._expand_variables(line) for line in (*found, *shell)]

    def _expand_variables(self, text: str) -> str:
        for _ in range(MAX_EXPANSIONS):
            new = re.sub(
                r"\$[({]([\w.-]+)[)}]", lambda found: self.variables.get(found[1], f"${found[1]}"), text
            )
            if new == text or len(new) > MAX_TEXT:
                break
            text = new
        return text.replace("$(shell ", "(").replace("$$", "$")


def _logical_lines(text: str) -> Iterator[str]:
    yield from re.sub(r"\\\r?\n[ \t]*", " ", text).splitlines()


def _shell_words(line: str) -> list[str]:
    try:
        lexer = shlex.shlex(line.lstrip("@"), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = ""
        return list(lexer)
    except ValueError:
        return re.split(r"[\s\"'`;|&()]+", line)


def _invoked_programs(words: list[str]) -> list[str]:
    """The words that are run: the first of each simple command, and the first argument of a shell or an interpreter."""
    found: list[str] = []
    expected = True
    for word in words:
        if word in SEPARATORS or set(word) <= set("&|;()\n`"):
            expected = True
        elif expected and not ASSIGNMENT.match(word) and not word.startswith("-"):
            found.append(word)
            name = posixpath.basename(word)
            expected = name in SHELLS or INTERPRETERS.fullmatch(name) is not None
        elif expected and word in {"-c", "-m", "-e"}:
            expected = False
    return found


def _options_with_values(words: list[str]) -> Iterator[tuple[str, str]]:
    """(option, value) of each option whose value decides, and of `-m`, `-C`."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if word.startswith("@"):  # pytest's own: a file with more arguments
            yield "@", word[1:]
        if VALUED.fullmatch(option) or option in {"-m", "-C", "--directory"}:
            yield option, value if equals else following


def _changed_folders(words: list[str], folder: str) -> list[str]:
    places = [words[at + 1] for at, word in enumerate(words[:-1]) if word in {"cd", "pushd"}]
    return [_join_path(base, place) for place in places for base in ("", folder)]


def _join_path(base: str, path: str) -> str:
    joined = posixpath.normpath(posixpath.join(base, path))
    return "" if joined == "." else joined


def _files_matching(pattern: str, files: Iterable[str]) -> list[str]:
    """The files that a pattern of Make matches."""
    matching = compile_globs((VARIABLE.sub("*", pattern),))
    return sorted(path for path in files if matching.match(path)) if "*" in pattern or "$" in pattern else []


def _package_scripts(text: str) -> list[tuple[str, str]]:
    try:
        scripts = as_object(as_object(json.loads(text)).get("scripts"))
    except (ValueError, RecursionError):
        return []
    return [(name, script) for name, script in scripts.items() if isinstance(script, str)]


def _is_pattern_of(word: str, name: str) -> bool:
    return "*" in word and re.fullmatch(re.escape(word).replace(r"\*", ".*"), name) is not None


def _pyproject_commands(text: str) -> list[str]:
    """The commands that the tools of a pyproject.toml name."""
    try:
        pending: list[tuple[object, bool]] = [(tomllib.loads(text).get("tool"), False)]
    except (ValueError, RecursionError):
        return []
    found: list[str] = []
    while pending:
        value, inside = pending.pop()
        if isinstance(value, dict):
            pending += [(one, inside or key in TASK_TABLES) for key, one in value.items()]
        elif isinstance(value, list):
            pending += [(one, inside) for one in value]
        elif isinstance(value, str) and inside:
            found.append(value)
    return sorted(found)

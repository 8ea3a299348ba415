"""Modules that tests cannot import at the base: generated files that git ignores, and packages that are not installed.

A generated file (`_version.py`, a parser, a client) stands in the user's tree, and is not in a worktree unless
`.worktreeinclude` names it. No edit can make good what is missing in this way.
"""

import posixpath
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec import Struct

from clean_room_agent import safe_open
from clean_room_agent.errors import ConfigError
from clean_room_agent.git.repository import list_files, list_ignored
from clean_room_agent.git.worktree import INCLUDE_FILE
from clean_room_agent.languages.test_runners import ABSENT
from clean_room_agent.orchestrator.test_runs.broken_imports import nothing_loads
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
    modules = {_module(path) for path in paths if path.endswith(PYTHON)}
    by_module = {_module(path): path for path in ignored}
    found: set[str] = set()
    for path in code[:MAX_READ]:
        text = _text(top, path)
        if stems.search(text):
            wanted = _python_modules(path, text) if path.endswith(PYTHON) else _script_modules(path, text)
            found.update(_providers(set(wanted), by_module, modules))
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
        declared = any(package.casefold() in _text(top, name).casefold() for name in _declarations(top))
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
        part for path in list_files(top) if path.endswith(PYTHON) for part in _module(path).split("/") if part
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


def _declarations(top: Path) -> Iterator[str]:
    yield from DECLARED_IN
    for folder in ("", "requirements/"):
        yield from sorted(f"{folder}{path.name}" for path in (top / folder).glob("*.txt"))


def _providers(wanted: set[str], ignored: dict[str, str], modules: Collection[str]) -> Iterator[str]:
    """The ignored files that are one of the wanted modules (paths without a suffix; with `*/` before one that may begin in any
    folder), unless the repository has such a module.
    """
    for name in wanted:
        anywhere = name.removeprefix("*/")
        if anywhere == name:
            if name in ignored:
                yield ignored[name]
        elif not any(module == anywhere or module.endswith(f"/{anywhere}") for module in modules):
            yield from (
                path
                for module, path in ignored.items()
                if module == anywhere or module.endswith(f"/{anywhere}")
            )


def _python_modules(path: str, text: str) -> Iterator[str]:
    for found in FROM.finditer(text):
        base = found["module"].replace(".", "/")
        if found["dots"]:
            folder = posixpath.normpath(
                posixpath.join(posixpath.dirname(path), *[".."] * (len(found["dots"]) - 1))
            )
            base = posixpath.normpath(posixpath.join(folder, base))
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
        yield _module(posixpath.normpath(posixpath.join(posixpath.dirname(path), specifier)))


def _module(path: str) -> str:
    """The path without suffix, and without what names the file of a whole folder."""
    folder, slash, name = path.rpartition("/")
    stem = name.partition(".")[0] if name.endswith((*PYTHON, *SCRIPTS)) else name
    return folder if stem in {"__init__", "index"} and folder else f"{folder}{slash}{stem}"


def module_name(path: str) -> str:
    """The last part of the name by which code imports the file."""
    return posixpath.basename(_module(path))


def _text(top: Path, path: str) -> str:
    """The beginning of the regular file; "" if there is none."""
    try:
        return safe_open.read_bytes(top, path, max_bytes=MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""

"""Records, at the baseline, what the tests of a Python process depend on: the files below the tree that are opened for
reading and which code opens them, the script that runs, where modules are imported from, and files that define parts of
tests (plugins, fixtures, classes of tests). One JSON list a line, in the folder of the test command; the program judges them
(`deciding.py`).

Loaded by `sitecustomize`, into any version of Python 3 that has audit hooks. Nothing here may disturb the process.
PYTEST_DONT_REWRITE
"""

import atexit
import contextlib
import json
import os
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INSIDE = "CRA_TEST_INSIDE"
RUNNERS = frozenset({"_pytest.runner", "unittest.case"})
MAX_READS = 1000
MAX_NAMES = 3000
MAX_FRAMES = 200
MAX_CHAIN = 6
"""Files of the tree on the way to an open call."""
COMPILED = (".pyc", ".pyi", ".so", ".pyd")
SHOWING = frozenset({"linecache.py", "tokenize.py", "inspect.py", "runpy.py", "traceback.py"})
"""Of Python's modules, those that open a Python file as code."""
FOREIGN = frozenset({"site-packages", "node_modules", ".git"})

_place: "list[str]" = []
"""The file of this process."""
_trees: "list[str]" = []
"""The tree, with a slash at its end, as it is named and as it resolves."""
_sources: "set[str]" = set()
_tried: "set[str]" = set()
"""The names of modules that were to be imported."""
_seen: "set[tuple[str, ...]]" = set()


def begin(folder: str, tree: str, *, script: bool) -> None:
    """Start recording; `script`: this process stands between the test command and the runner, so its script decides, too."""
    process, started_in = os.getpid(), os.getcwd()
    _place.append(os.path.join(folder, "python-%d.trace" % process))
    _trees.extend(dict.fromkeys(os.path.join(name, "") for name in (tree, os.path.realpath(tree))))
    sys.addaudithook(_audit_hook)

    def end() -> None:
        if os.getpid() == process:
            with contextlib.suppress(Exception):
                _append_records(_at_end(started_in, script=script))

    atexit.register(end)


def note_plugins(plugins: "list[Any]") -> None:
    """Record the modules that are plugins of pytest."""
    if _place:
        files = [below(getattr(plugin, "__file__", None)) for plugin in plugins]
        _append_records([["part", file] for file in files if file])


def below(file: "Any") -> str:
    """The path relative to the tree; "" if it is not in it, or in packages that are installed there."""
    if not isinstance(file, str):
        return ""
    file = os.path.abspath(file)
    for tree in _trees:
        if file.startswith(tree):
            inner = file[len(tree) :]
            return "" if FOREIGN.intersection(inner.split(os.sep)) else inner
    return ""


def _audit_hook(event: str, args: "Any") -> None:
    if event == "import":
        if args[0] in RUNNERS:
            os.environ[INSIDE] = "1"
        if len(_tried) < MAX_NAMES:
            _tried.add(args[0])
    if event != "open" or len(_seen) >= MAX_READS:
        return
    try:
        path, flags = args[0], args[2]
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str) or path.endswith(COMPILED) or flags & (os.O_WRONLY | os.O_CREAT):
            return
        inner = below(path)
        if not inner or os.path.isdir(path):
            return
        if inner.endswith(".py") and not _is_read_as_text():
            _sources.add(inner)
            return
        record = (inner, *_running_files())
        if len(record) == 1 and "_pytest" not in sys.modules and "unittest.case" not in sys.modules:
            return
        if record not in _seen:
            _seen.add(record)
            _append_records([["read", *record]])
    except Exception:
        return


def _running_files() -> "list[str]":
    """The files of the tree whose code is running, the innermost first."""
    found: "list[str]" = []
    frame: "types.FrameType | None" = sys._getframe(2)
    left = MAX_FRAMES
    while frame is not None and left and len(found) < MAX_CHAIN:
        file = below(frame.f_code.co_filename) if not frame.f_code.co_filename.startswith("<") else ""
        if file and file not in found:
            found.append(file)
        frame, left = frame.f_back, left - 1
    return found


def _is_read_as_text() -> bool:
    """Whether code of the tree opens a Python file, and not to import or to show it."""
    frame: "types.FrameType | None" = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib") or os.path.basename(file) in SHOWING:
            return False
        if "_pytest" in file.split(os.sep):
            return False
        if not file.startswith("<") and below(file):
            return True
        frame = frame.f_back
    return False


def _append_records(records: "list[list[str]]") -> None:
    text = "".join(json.dumps(record) + "\n" for record in records)
    place = os.open(_place[0], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(place, text.encode())
    finally:
        os.close(place)


def _at_end(started_in: str, *, script: bool) -> "list[list[str]]":
    judges = "_pytest.runner" in sys.modules or "unittest.case" in sys.modules
    found: "list[list[str]]" = []
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    if script and isinstance(main, str):
        found.append(["script", below(os.path.join(started_in, main))])
    for entry in sys.path:
        inside = below(os.path.join(entry or started_in, "x"))
        if inside:
            found.append(["root", os.path.dirname(inside)])
    loaded = "loaded" if judges else "tool"
    found += [[loaded, file] for file in sorted(_sources)[:MAX_NAMES]]
    if judges:
        found += [["missing", name] for name in sorted(_tried) if name not in sys.modules]
    for name, module in list(sys.modules.items())[:MAX_NAMES]:
        if not isinstance(module, types.ModuleType) or name == "__main__":
            continue
        file = below(vars(module).get("__file__"))
        if file:
            found.append([loaded, file])
            if judges and _defines_tests(module):
                found.append(["part", file])
        elif "." not in name and judges and not any(map(below, list(vars(module).get("__path__", ())))):
            found.append(["module", name])
    return [record for record in found if record[1] or record[0] == "root"]


def _defines_tests(module: types.ModuleType) -> bool:
    """Whether the module defines classes of tests or fixtures."""
    case = getattr(sys.modules.get("unittest.case"), "TestCase", None)
    for value in list(vars(module).values()):
        if isinstance(value, type):
            if case is not None and value.__module__ == module.__name__ and issubclass(value, case):
                return True
        elif isinstance(value, types.FunctionType):
            if "_pytestfixturefunction" in vars(value) and value.__module__ == module.__name__:
                return True
        elif type(value).__name__ == "FixtureFunctionDefinition":
            inner = vars(value).get("_fixture_function")
            if getattr(inner, "__module__", None) == module.__name__:
                return True
    return False

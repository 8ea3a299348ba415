"""Loaded by each Python process of a test command, from PYTHONPATH: whether the runner came to its end by itself, and
which parts of it the code under test replaced, stand in the folder that CRA_TEST_REPORTS names afterwards.

Nothing here may disturb the process: it is foreign, of any version of Python 3, and has its own `sitecustomize`.
"""

import atexit
import importlib.machinery
import importlib.util
import json
import os
import sys
import types

FOLDER = "CRA_TEST_REPORTS"
MARK = "CRA_TEST_RUNNER"
RUNNERS = frozenset({"pytest", "py.test", "unittest", "nose2", "trial", "runtests.py", "manage.py"})
JUDGES = ("unittest.", "_pytest.", "pluggy.")
"""Modules whose functions decide what counts as a pass."""
LIBRARY = os.path.dirname(os.path.abspath(os.__file__))


def chain() -> None:
    """Run the `sitecustomize` that would have been loaded without this one."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def is_runner() -> bool:
    """Whether this process was started as a test runner."""
    return any(os.path.basename(word) in RUNNERS for word in sys.orig_argv[1:12])


def foreign() -> "list[tuple[str, str]]":
    """(name, file) of each function of the runner that other code of the project stands in for, sorted."""
    found = set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or not (name + ".").startswith(JUDGES):
            continue
        home = os.path.dirname(os.path.abspath(file))
        for attribute, value in list(vars(module).items()):
            found.update(_replaced(name + "." + attribute, value, home))
            if isinstance(value, type) and value.__module__ == name:
                for inner, part in list(vars(value).items()):
                    found.update(_replaced(name + "." + attribute + "." + inner, part, home))
    for attribute, value in list(vars(sys.modules["builtins"]).items()):
        found.update(_replaced("builtins." + attribute, value, LIBRARY))
    return sorted(found)


def _replaced(name: str, value: object, home: str) -> "list[tuple[str, str]]":
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    if not isinstance(value, types.FunctionType):
        return []
    file = value.__code__.co_filename
    last = name.rpartition(".")[2]
    made = file.startswith("<") and last.startswith("__") and last != "__call__"
    if made or file.startswith("<frozen "):
        return []  # the methods of data classes and named tuples, and parts of Python itself
    file = os.path.abspath(file)
    packaged = "site-packages" in file.split(os.sep) or file.startswith((home + os.sep, LIBRARY + os.sep))
    return [] if packaged else [(name, file)]


def begin(folder: str) -> None:
    """The folder knows that a runner started; it will know how it ended."""
    process = os.getpid()
    os.environ[MARK] = str(process)
    place = os.path.join(folder, "python-%d" % process)
    with open(place + ".started", "w") as file:
        file.write("")

    def end() -> None:
        if os.getpid() == process:
            with open(place + ".ended", "w") as file:
                json.dump(foreign(), file)

    atexit.register(end)


def look_at_end(folder: str) -> None:
    """If this process, started by a runner, judges tests too (as a worker of pytest-xdist does), the folder will know
    which functions of the runner were replaced in it.
    """
    process = os.getpid()

    def end() -> None:
        if os.getpid() == process and ("_pytest.runner" in sys.modules or "unittest.case" in sys.modules):
            found = foreign()
            if found:
                with open(os.path.join(folder, "python-%d.replaced" % process), "w") as file:
                    json.dump(found, file)

    atexit.register(end)


try:
    if os.environ.get(FOLDER):
        if MARK in os.environ:
            look_at_end(os.environ[FOLDER])
        elif is_runner():
            begin(os.environ[FOLDER])
except Exception:
    pass
chain()

"""Loaded by each Python process of a test command, from PYTHONPATH. It records in the folder that CRA_TEST_REPORTS
names whether the runner ended by itself, and which of its parts the code under test replaced. pytest and unittest also
get `cra_failures`, which records what failing tests compared. Nothing here may disturb the process, which is not ours,
may be any version of Python 3, and may have its own `sitecustomize`.
"""

import atexit
import importlib.machinery
import importlib.util
import os
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:  # without `typing`, which every process would pay for
    from typing import Any, Callable

FOLDER = "CRA_TEST_REPORTS"
MARK = "CRA_TEST_RUNNER"
RUNNERS = frozenset({"pytest", "py.test", "unittest", "nose2", "trial", "runtests.py", "manage.py"})
PYTESTS = frozenset({"pytest", "py.test"})
WORKER = "exec(eval(sys.stdin.readline()))"
"""The command of a worker of pytest-xdist."""
PLUGIN = "cra_failures"
HERE = os.path.dirname(os.path.abspath(__file__))
IDENTITY = "cra_identity"
TRACE = "cra_trace"
TREE = "CRA_TEST_TREE"
"""The variable that names the tree, if what tests depend on is to be recorded."""
OBSERVE = "cra_observe"
OBSERVED = "CRA_TEST_OBSERVED"
"""The variable that says what is recorded of the functions that run, if anything is."""
COMMAND = '"command"'
"""In its value, if all processes of the command are meant, not only tests and what they start."""
INSIDE = "CRA_TEST_INSIDE"
"""Set in processes that were started by one that has loaded a runner, whatever it is called."""
JUDGES = ("unittest.", "_pytest.", "pluggy.")
"""Modules whose parts decide what counts as a pass."""
LIBRARY = os.path.dirname(os.path.abspath(os.__file__))


def chain() -> None:
    """Run the `sitecustomize` that would have been loaded without this one."""
    path = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def is_runner() -> bool:
    """Whether this process was started as a test runner, or with a file of tests, which may run these itself."""
    if any(os.path.basename(word) in RUNNERS for word in sys.orig_argv[1:12]):
        return True
    script = next((word for word in sys.orig_argv[1:] if word in ("-c", "-m") or word[:1] != "-"), "")
    name = os.path.basename(script)
    return name.endswith(".py") and (name.startswith("test_") or name.endswith(("_test.py", "tests.py")))


def foreign() -> "list[tuple[str, str]]":
    """(name, file) of each part of the runner that was replaced, sorted."""
    found = sys.modules[IDENTITY].changed() if IDENTITY in sys.modules else set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or not (name + ".").startswith(JUDGES):
            continue
        home = os.path.dirname(os.path.abspath(file))
        for attribute, value in list(vars(module).items()):
            found.update(_replaced_functions(name + "." + attribute, value, home))
            if isinstance(value, type) and value.__module__ == name:
                for inner, part in list(vars(value).items()):
                    found.update(_replaced_functions(name + "." + attribute + "." + inner, part, home))
    for attribute, value in list(vars(sys.modules["builtins"]).items()):
        found.update(_replaced_functions("builtins." + attribute, value, LIBRARY))
    return sorted(found)


def _replaced_functions(name: str, value: object, home: str) -> "list[tuple[str, str]]":
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
    known = (home + os.sep, LIBRARY + os.sep, os.path.join(HERE, "cra_"))
    packaged = "site-packages" in file.split(os.sep) or file.startswith(known)
    return [] if packaged else [(name, file)]


def begin(folder: str) -> None:
    """Record that a runner started, and at its exit how it ended."""
    import json  # here, as the processes that tests start do without it

    process = os.getpid()
    os.environ[MARK] = str(process)
    place = os.path.join(folder, "python-%d" % process)
    words = [os.path.basename(word) for word in sys.orig_argv[1:12]]
    with open(place + ".started", "w") as file:
        is_unittest = "unittest" in words[1:] and words[words.index("unittest") - 1] == "-m"
        file.write("pytest" if PYTESTS.intersection(words) else "unittest" if is_unittest else "")

    def end() -> None:
        if os.getpid() == process:
            with open(place + ".ended", "w") as file:
                json.dump(foreign(), file)

    atexit.register(end)


def look_at_end(folder: str) -> None:
    """If this process, started by a runner, judges tests, too (as a worker of pytest-xdist does), record at its exit
    which functions of the runner were replaced in it.
    """
    process = os.getpid()

    def end() -> None:
        if os.getpid() == process and ("_pytest.runner" in sys.modules or "unittest.case" in sys.modules):
            found = foreign()
            if found:
                import json

                with open(os.path.join(folder, "python-%d.replaced" % process), "w") as file:
                    json.dump(found, file)

    atexit.register(end)


def ask_for_failures() -> "Callable[[types.ModuleType], object]":
    """Make pytest load the plugin that records failures; the returned function makes unittest's results be recorded,
    when called with their module.
    """
    words = [os.path.basename(word) for word in sys.orig_argv[1:12]]
    if PYTESTS.intersection(words) or WORKER in sys.orig_argv[-1]:
        ours = [PLUGIN] + [OBSERVE] * (OBSERVED in os.environ)
        named = os.environ.get("PYTEST_PLUGINS", "").split(",")
        os.environ["PYTEST_PLUGINS"] = ",".join(ours + [name for name in named if name and name not in ours])
    elif is_runner():
        return tell_results
    return lambda _: None


def tell_results(module: "Any") -> None:
    """Make unittest's tests and failures be recorded."""
    if module.__name__ == "unittest.result":
        importlib.import_module(PLUGIN).tell_results(module.TestResult)
        importlib.import_module(PLUGIN).tell_tests(module.TestResult)
        if OBSERVED in os.environ:
            importlib.import_module(OBSERVE).tell_results(module.TestResult)
    elif module.__name__ == "unittest.runner":
        importlib.import_module(PLUGIN).tell_found(module.TextTestRunner)
        importlib.import_module(PLUGIN).describe_fully(module.TextTestResult)
    elif module.__name__ == "unittest.loader":
        importlib.import_module(PLUGIN).tell_loaded(module.TestLoader)
        if OBSERVED in os.environ:
            importlib.import_module(OBSERVE).tell_loaded(module)


try:
    if os.environ.get(FOLDER):
        inside = MARK in os.environ or INSIDE in os.environ
        if os.environ.get(TREE) and (not inside or WORKER in sys.orig_argv[-1]):
            importlib.import_module(TRACE).begin(os.environ[FOLDER], os.environ[TREE], script=not inside)
        if MARK in os.environ:
            look_at_end(os.environ[FOLDER])
            if WORKER in sys.orig_argv[-1]:
                importlib.import_module(IDENTITY).begin(ask_for_failures())
            elif OBSERVED in os.environ:
                importlib.import_module(OBSERVE).begin_whole()
        elif is_runner():
            begin(os.environ[FOLDER])
            importlib.import_module(IDENTITY).begin(ask_for_failures())
        elif COMMAND in os.environ.get(OBSERVED, ""):
            importlib.import_module(OBSERVE).begin_whole()
except Exception:
    pass
chain()

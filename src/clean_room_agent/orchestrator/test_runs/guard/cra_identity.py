"""Remembers the parts of Python's test runners as they were loaded, and finds those that were replaced since.

Loaded by `sitecustomize`, in any version of Python 3, before the code under test. A part is a function, a class, a
descriptor or a module: as an attribute of a module of the runner's, of one of its classes, or of an object that such a
module holds. It counts as replaced if it is no longer the very same object, or if the code, the defaults or the
functions behind it are not. The replacement may come from anywhere, even from a builtin or the runner itself.
PYTEST_DONT_REWRITE
"""

import contextlib
import importlib.machinery
import os
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

__unittest = True
"""unittest hides frames of modules with this name."""
JUDGES = ("unittest.", "_pytest.", "pytest.", "pluggy.")
"""Modules whose parts decide what counts as a pass."""
HELPERS = ("builtins", "contextlib", "functools", "sys", "traceback")
"""Modules that they use for it."""
CORE = (
    ("unittest.case", "TestCase"),
    ("unittest.case", "_Outcome"),
    ("unittest.result", "TestResult"),
    ("unittest.runner", "TextTestResult"),
    ("_pytest.unittest", "TestCaseFunction"),
    ("_pytest.runner", "CallInfo"),
    ("_pytest.reports", "TestReport"),
)
"""Parts that decide about each single test."""
BOOKKEEPING = frozenset(
    {
        *("__abstractmethods__", "_abc_impl", "__doc__", "__dict__", "__weakref__"),
        *("__annotate__", "__annotate_func__"),
    }
)
OUTCOME_KEEPS = ("result", "errors", "result_supports_subtests")
"""Attributes that must be the same before and after a part of a test."""
JUDGING = (
    *("assert", "fail", "add", "run", "debug", "skipTest", "subTest", "doCleanups"),
    *("_call", "_get", "_base"),
)
"""Prefixes of a test case's own names that decide about it."""
OURS = (
    os.path.dirname(os.path.abspath(os.__file__)) + os.sep,
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "cra_"),
)
SEVERAL = frozenset({"conftest", "sitecustomize", "usercustomize"})
"""Names of modules of which there may be several that are loaded."""
FREE = frozenset({"warnings", "logging", "__main__", "__mp_main__"})
"""Modules in which programs replace functions to be told of something."""
TESTS = frozenset({"test", "tests", "testing", "__tests__", "spec", "specs"})
MISSING = object()
PARTS = (staticmethod, classmethod, property, types.ModuleType)

_known: "dict[tuple[str, str], tuple[Any, dict[str, tuple[Any, ...]]]]" = {}
"""(module, its attribute; "" for itself) -> what holds attributes, and of each of them the part and what is behind it."""
_noted: "set[tuple[str, str]]" = set()
_path: "list[str]" = []
"""Where modules were looked for when the first part of a runner was loaded."""


def remember(module: types.ModuleType) -> None:
    """Remember the parts of the module as the runner's own, unless they were remembered before."""
    name = module.__name__
    if (name, "") in _known:
        return
    holders: "dict[str, Any]" = {"": module}
    if (name + ".").startswith(JUDGES):
        for attribute, value in list(vars(module).items()):
            kind = value if isinstance(value, type) else type(value)
            own = kind is not value or kind.__module__ == name
            has_parts = hasattr(value, "__dict__") and not isinstance(value, types.FunctionType)
            if own and has_parts and kind.__module__.startswith(JUDGES):
                holders[attribute] = value
    elif name == "contextlib":
        holders["_GeneratorContextManager"] = getattr(module, "_GeneratorContextManager", module)
    for inner, holder in holders.items():
        held = list(vars(holder).items())
        _known[name, inner] = (holder, {part: (value, *_underlying_parts(value)) for part, value in held})


def remember_loaded() -> None:
    """Remember the parts of all loaded modules that judge."""
    for name, module in list(sys.modules.items()):
        if (name + ".").startswith(JUDGES) and isinstance(module, types.ModuleType):
            remember(module)


def accept_plugins() -> None:
    """Accept what installed plugins of the runner have replaced so far."""
    for (module, _), (holder, parts) in list(_known.items()):
        for attribute, there in list(_replaced_parts(module + ".", parts, holder)):
            if "site-packages" in origin(there).split(os.sep):
                parts[attribute] = (there, *_underlying_parts(there))


def changed() -> "set[tuple[str, str]]":
    """(name, replacement) of each part that was replaced, and of other tampering that was seen."""
    for (module, inner), (holder, parts) in list(_known.items()):
        _note_replaced_parts(module, inner, parts, holder)
    _note_tracing()
    look_at_modules()
    return set(_noted)


def look_at_modules() -> None:
    """Note what stands in the place of other modules and functions now, since it may be restored by the end."""
    _noted.update(displaced())
    _noted.update(patched())


def displaced() -> "set[tuple[str, str]]":
    """(name, file) of each module that is not the one which Python found by that name when the runner started."""
    found: "set[tuple[str, str]]" = set()
    specs: "dict[str, Any]" = {}
    for name, module in list(sys.modules.items()):
        last = name.rpartition(".")[2]
        if module is None or not _path or last in SEVERAL or last.startswith(("__", "test_")):
            continue
        with contextlib.suppress(Exception):
            held = vars(module) if hasattr(type(module), "__dict__") else {}
            file = held.get("__file__")
            spec = held.get("__spec__")
            if spec is None:
                file = None  # nothing was loaded from there
            if file is None and ("__path__" in held or getattr(spec, "origin", "") in ("built-in", "frozen")):
                continue
            if type(module).__module__ == name or _is_packaged(name, file):
                continue
            origin_of = getattr(_spec_of(name, specs), "origin", None)
            if origin_of and os.path.isfile(origin_of) and not (file and os.path.samefile(file, origin_of)):
                found.add(("the module " + name, os.path.abspath(file) if file else "nothing"))
    return found


def patched() -> "set[tuple[str, str]]":
    """(name, replacement) of each function in a module of Python's or of the tests that the code under test replaced."""
    found: "set[tuple[str, str]]" = set()
    for name, module in list(sys.modules.items()):
        if (name + ".").startswith(JUDGES) or name in HELPERS or name in FREE:
            continue
        with contextlib.suppress(Exception):
            file = vars(module).get("__file__")
            is_pythons = name in sys.builtin_module_names or (
                isinstance(file, str)
                and file.startswith(OURS[0])
                and "site-packages" not in file.split(os.sep)
            )
            if is_pythons:
                found.update(_foreign_parts(name, vars(module)))
            elif isinstance(file, str) and _is_tests(file):
                found.update(_lost_functions(name, module, file))
    return found


def _foreign_parts(name: str, held: "Any") -> "Iterator[tuple[str, str]]":
    """The parts of a module of Python's that the code under test made, or put there in place of another."""
    in_c = not str(held.get("__file__", "")).endswith(".py")
    for attribute, value in list(held.items()):
        if (_is_foreign(value) and not attribute.endswith("hook")) or _is_misnamed(
            name, attribute, value, in_c=in_c
        ):
            yield name + "." + attribute, origin(value)
        if isinstance(value, type) and value.__module__ == name:
            for inner, part in list(vars(value).items()):
                if _is_foreign(part):
                    yield name + "." + attribute + "." + inner, origin(part)


def _is_misnamed(module: str, attribute: str, value: "Any", *, in_c: bool) -> bool:
    """Whether it is a builtin under another name, as `math.isclose = max` makes one. Modules in C have no such names;
    those in Python have them for functions of modules in C, and for classes.
    """
    if isinstance(value, type):
        is_builtin = in_c and value.__module__ == "builtins" and not issubclass(value, BaseException)
        return is_builtin and value.__name__ != attribute
    home = getattr(value, "__self__", None) if isinstance(value, types.BuiltinFunctionType) else None
    if not isinstance(home, types.ModuleType) or home.__name__ == module:
        return False
    return (in_c or home.__name__ == "builtins") and value.__name__.strip("_") != attribute.strip("_")


def _is_foreign(value: "Any") -> bool:
    """Whether it is a function of the code under test, or is called as one and of a class of it."""
    if isinstance(value, types.FunctionType):
        code = value.__code__.co_filename
        file = "" if code.startswith("<") else os.path.abspath(code)
    else:
        kind = type(value)
        if isinstance(value, (type, *PARTS)) or not callable(value):
            return False
        file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    known = "site-packages" in file.split(os.sep) or file.startswith(OURS)
    return file != "" and not known and not _is_tests(file)


def _lost_functions(name: str, module: "Any", file: str) -> "Iterator[tuple[str, str]]":
    """The functions in the text of a module of the tests that it or its classes no longer have."""
    with open(file, encoding="utf-8", errors="replace") as source:
        lines = source.read().splitlines()
    holders = {
        kind: value
        for kind, value in list(vars(module).items())
        if isinstance(value, type) and value.__module__ == name
    }
    within = ""
    for at, line in enumerate(lines):
        words = line.split("(")[0].split(":")[0].split()
        if line.startswith("class "):
            within = words[1]
        if words[:1] == ["async"]:
            words = words[1:]
        if len(words) != 2 or words[0] != "def" or (at and lines[at - 1].lstrip().startswith(("@", ")"))):
            continue
        place = line[: len(line) - len(line.lstrip())]
        if place and (place != "    " or within not in holders):
            continue
        held = vars(holders[within]) if place else vars(module)
        there = held.get(words[1], MISSING)
        if isinstance(there, (staticmethod, classmethod)):
            there = there.__func__
        ours = isinstance(there, types.FunctionType) and (
            _is_tests(there.__code__.co_filename) or hasattr(there, "__wrapped__")
        )
        # In modules of Python's, tests themselves leave mocks behind; in their own helpers they have no reason to.
        is_mock = type(there).__module__ == "unittest.mock"
        if there is not MISSING and not ours and (is_mock or _is_foreign(there) or not place):
            yield name + "." + (within + "." if place else "") + words[1], origin(there)


def _is_tests(file: "Any") -> bool:
    if not isinstance(file, str):
        return False
    folder, name = os.path.split(file.replace("\\", "/"))
    named = name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py")
    return named or not TESTS.isdisjoint(folder.split("/"))


def _is_packaged(name: str, file: "Any") -> bool:
    """Whether the module has its own place in Python or in what is installed, or is made by a package there."""
    inside = os.sep + name.replace(".", os.sep)
    if isinstance(file, str) and (inside + "." in file or inside + os.sep + "__init__." in file):
        return "site-packages" in file.split(os.sep) or file.startswith(OURS)
    root = getattr(sys.modules.get(name.partition(".")[0]), "__file__", None)
    return isinstance(root, str) and "." in name and "site-packages" in root.split(os.sep)


def _spec_of(name: str, specs: "dict[str, Any]") -> "Any":
    """Where Python would have found the module when the runner started; None if nowhere."""
    if name not in specs:
        parent = name.rpartition(".")[0]
        path: "Any" = _path
        if parent:
            places = getattr(_spec_of(parent, specs), "submodule_search_locations", None)
            path = list(getattr(places, "_path", places) or ())  # without a look at what sys.path is now
        specs[name] = importlib.machinery.PathFinder.find_spec(name, path) if path else None
    return specs[name]


def _note_tracing() -> None:
    """Note a function of the code under test that is called for each line or call of the tests."""
    for name, value in (("sys.settrace", sys.gettrace()), ("sys.setprofile", sys.getprofile())):
        there = getattr(value, "__func__", value)
        if isinstance(there, types.FunctionType):
            file = origin(there)
            if "site-packages" not in file.split(os.sep) and not file.startswith(OURS):
                _noted.add((name, file))


def look() -> None:
    """Check what decides about single tests now, since it may be restored by the end."""
    _note_tracing()
    for module, inner in CORE:
        if (module, inner) not in _known:
            continue
        holder, parts = _known[module, inner]
        now = vars(holder)
        if len(now) != len(parts) or any(_is_other(now.get(name), known) for name, known in parts.items()):
            _note_replaced_parts(module, inner, parts, holder)


def _is_other(there: "Any", known: "tuple[Any, ...]") -> bool:
    """Whether it is a different part, or a function with different code, by a quick check."""
    if there is not known[0]:
        return True
    return isinstance(there, types.FunctionType) and there.__code__ is not known[1]


def _note_replaced_parts(module: str, inner: str, parts: "dict[str, tuple[Any, ...]]", holder: "Any") -> None:
    place = module + "." + inner + "." if inner else module + "."
    for attribute, there in _replaced_parts(place, parts, holder):
        _noted.add((place + attribute, origin(there)))


def _replaced_parts(
    place: str, parts: "dict[str, tuple[Any, ...]]", holder: "Any"
) -> "Iterator[tuple[str, Any]]":
    now = vars(holder)
    for attribute, known in parts.items():
        there = now.get(attribute, MISSING)
        if there is known[0] and (len(known) == 1 or _are_identical(known[1:], _underlying_parts(there))):
            continue
        if _is_part(known[0]) and attribute not in BOOKKEEPING and not attribute.endswith("hook"):
            yield attribute, there
    if len(now) > len(parts) and (isinstance(holder, type) or place.startswith(JUDGES)):
        for attribute in [name for name in list(now) if name not in parts and name not in BOOKKEEPING]:
            new = now[attribute]
            shadows = isinstance(holder, types.ModuleType) and hasattr(sys.modules["builtins"], attribute)
            if _is_part(new) and (shadows or isinstance(holder, type)):
                yield attribute, new


def _is_part(value: "Any") -> bool:
    return callable(value) or isinstance(value, PARTS) or hasattr(type(value), "__get__")


def _underlying_parts(value: "Any") -> "tuple[Any, ...]":
    """What is behind a part that can be replaced without replacing the part itself."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    elif isinstance(value, property):
        return (value.fget, *_underlying_parts(value.fget))
    elif isinstance(value, type):
        return value.__bases__
    if not isinstance(value, types.FunctionType):
        return ()
    inner = []
    for cell in value.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty one
            if isinstance(cell.cell_contents, types.FunctionType):
                inner.append(cell.cell_contents)
    return (value.__code__, value.__defaults__, *(value.__kwdefaults__ or {}).values(), *inner)


def _are_identical(before: "tuple[Any, ...]", now: "tuple[Any, ...]") -> bool:
    return len(before) == len(now) and all(one is other for one, other in zip(before, now))  # noqa: B905 - of any version of Python 3


def origin(value: "Any") -> str:
    """The file of a function's code; for anything else a description that is the same in each run."""
    if value is MISSING:
        return "nothing"
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    if isinstance(value, types.FunctionType):
        return os.path.abspath(value.__code__.co_filename)
    named = value if isinstance(getattr(value, "__qualname__", None), str) else type(value)
    return "%s.%s" % (getattr(named, "__module__", None) or "builtins", named.__qualname__)


class Watch:
    """An import hook that remembers modules that judge as soon as they are loaded."""

    def __init__(self, then: "Callable[[types.ModuleType], None]") -> None:
        """`then` is called with each such module before it is remembered."""
        self.then = then

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        """The module's own spec, with a loader that also remembers it."""
        if not (name + ".").startswith(JUDGES):
            return None
        if not _path:
            _path.extend(entry or os.getcwd() for entry in sys.path)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                run(module)
                with contextlib.suppress(Exception):
                    if name == "unittest.case":
                        watch_outcomes(module)
                    self.then(module)
                    remember(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def watch_outcomes(case: "Any") -> None:
    """Note tests that end by unittest's own stop exception if other code raised it."""
    outcome, stop, own = case._Outcome, case._ShouldStop, case.__file__
    execute = outcome.testPartExecutor

    @contextlib.contextmanager
    def part_executor(self: "Any", *args: "Any", **kwargs: "Any") -> "Iterator[None]":
        held = {name: vars(self)[name] for name in OUTCOME_KEEPS if name in vars(self)}
        with execute(self, *args, **kwargs):
            try:
                yield
            except stop as exc:
                step = exc.__traceback__
                while step is not None and step.tb_next is not None:
                    step = step.tb_next
                file = step.tb_frame.f_code.co_filename if step is not None else own
                if os.path.abspath(file) != os.path.abspath(own):
                    _noted.add(("unittest.case." + stop.__name__, os.path.abspath(file)))
                raise
            finally:
                with contextlib.suppress(Exception):
                    look_at_test(case, self, held, args[0])
                if ("_pytest.unittest", "") not in _known:  # whose plugin looks
                    look()

    outcome.testPartExecutor = part_executor


def look_at_test(case: "Any", outcome: "Any", held: "dict[str, Any]", test: "Any") -> None:
    """Note what a test that just ran has replaced in its class or its result."""
    for name, was in held.items():
        there = vars(outcome).get(name, MISSING)
        if there is not was:
            _noted.add(("unittest.case._Outcome." + name, origin(there)))
    for name, there in list(vars(outcome.result).items()):
        if callable(there) and callable(getattr(type(outcome.result), name, None)):
            _noted.add(("unittest.result.TestResult." + name, origin(there)))
    for name, there in list(vars(test).items()):
        usual = getattr(type(test), name, MISSING)
        judges = name.startswith(JUDGING) and hasattr(case.TestCase, name)
        if judges and callable(there) and there is not usual:
            _noted.add(("unittest.case.TestCase." + name, origin(there)))
    modules = [sys.modules.get(kind.__module__) for kind in type(test).__mro__]
    own = [os.path.abspath(getattr(module, "__file__", None) or "") for module in modules]
    for kind, there in list(vars(test).get("_type_equality_funcs", {}).items()):
        file = origin(there)
        if kind.__module__ == "builtins" and os.path.isabs(file) and file not in own:
            _noted.add(("unittest.case.TestCase.assertEqual of " + kind.__name__, file))


def named_plugins(manager: "Any") -> "list[Any]":
    """The modules that pytest was told to load as plugins: by name, or because they are installed as such."""
    installed = [plugin for plugin, _ in manager.list_plugin_distinfo()]
    named = [
        plugin for name, plugin in manager.list_name_plugin() if getattr(plugin, "__name__", None) == name
    ]
    return [plugin for plugin in installed + named if isinstance(plugin, types.ModuleType)]


def look_at_plugins(manager: "Any", known: "list[Any]") -> None:
    """Note hooks of pytest that the code under test implements: outside of `known` plugins, `conftest.py` files and
    packages.
    """
    own = os.path.dirname(os.path.abspath(sys.modules["_pytest"].__file__ or "")) + os.sep
    for name, caller in list(vars(manager.hook).items()):
        for answer in caller.get_hookimpls() if hasattr(caller, "get_hookimpls") else ():
            file = origin(answer.function)
            packaged = "site-packages" in file.split(os.sep) or file.startswith((*OURS, own))
            if not os.path.isabs(file) or packaged or os.path.basename(file) == "conftest.py":
                continue
            if not any(answer.plugin is plugin for plugin in known):
                _noted.add(("_pytest.config.PytestPluginManager." + name, file))


def look_at_code(test: str, collected: "Any", now: "Any") -> None:
    """Note a test whose code differs from when it was collected."""
    if now is not collected:
        _noted.add((test, os.path.abspath(now.co_filename) if now is not None else "nothing"))


def begin(then: "Callable[[types.ModuleType], None]") -> None:
    """Start remembering modules that judge as they are loaded."""
    for name in HELPERS:
        remember(sys.modules[name] if name in sys.modules else __import__(name))
    remember_loaded()
    sys.meta_path.insert(0, Watch(then))

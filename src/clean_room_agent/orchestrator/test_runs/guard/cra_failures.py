"""Records what a failing test compared, and where it failed, and each test as it is found, begins and ends: a pytest
plugin, and hooks into unittest.

A run that dies leaves no report, but its record says which tests there were and where it died. Tests and files that
the file `LEFT_OUT` names are not run, so that the others can be.

Loaded by `sitecustomize`, only into a runner, of any version of Python 3. Nothing here may disturb a test: values are
only shown (`repr`, as the runners do), and what cannot be shown is left out. PYTEST_DONT_REWRITE
"""

import contextlib
import importlib
import json
import os
import reprlib
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:  # without `typing`, which every runner would pay for
    from typing import Any, Iterator

cra_identity: "Any" = importlib.import_module("cra_identity")

FOLDER = "CRA_TEST_REPORTS"
TOP = "CRA_TEST_TOP"
LEFT_OUT = "left-out.json"
TRACE = "cra_trace"
PROPERTY = "cra_failure"
MAX_RECORDS = 500
"""Failures of one process that are recorded; later ones only have the runner's own message."""
MAX_VALUE = 20000
"""Characters of a shown value; the beginning and the end are kept."""
MAX_ITEMS = 1000
CONTAINERS = (list, tuple, dict, set, frozenset)
PLAIN = (bool, int, float, complex, str, bytes, *CONTAINERS, type(None))
MAX_PARTS, MAX_ARGUMENT = 200, 500
"""Elements, and characters, of what a test was parametrized with: more is not shown."""
MAX_FRAMES = 40
"""Innermost frames of one exception."""
MAX_CAUSES = 3
METHODS = {
    "assertEqual": ("==", "first", "second"),
    "assertNotEqual": ("!=", "first", "second"),
    "assertAlmostEqual": ("==", "first", "second"),
    "assertNotAlmostEqual": ("!=", "first", "second"),
    "assertSequenceEqual": ("==", "seq1", "seq2"),
    "assertListEqual": ("==", "list1", "list2"),
    "assertTupleEqual": ("==", "tuple1", "tuple2"),
    "assertSetEqual": ("==", "set1", "set2"),
    "assertDictEqual": ("==", "d1", "d2"),
    "assertCountEqual": ("==", "first", "second"),
    "assertMultiLineEqual": ("==", "first", "second"),
    "assertIs": ("is", "expr1", "expr2"),
    "assertIsNot": ("is not", "expr1", "expr2"),
    "assertIsNone": ("is None", "obj", ""),
    "assertIsNotNone": ("is not None", "obj", ""),
    "assertTrue": ("a true value", "expr", ""),
    "assertFalse": ("a false value", "expr", ""),
    "assertIn": ("in", "member", "container"),
    "assertNotIn": ("not in", "member", "container"),
    "assertLess": ("<", "a", "b"),
    "assertLessEqual": ("<=", "a", "b"),
    "assertGreater": (">", "a", "b"),
    "assertGreaterEqual": (">=", "a", "b"),
    "assertIsInstance": ("an instance of", "obj", "cls"),
    "assertNotIsInstance": ("not an instance of", "obj", "cls"),
    "assertRegex": ("matches", "text", "expected_regex"),
    "assertNotRegex": ("does not match", "text", "unexpected_regex"),
}
"""unittest's methods: the operator, and the names of their arguments left and right of it."""
OUTCOMES = ("Skipped", "XFailed", "Exit", "SkipTest", "KeyboardInterrupt")
"""Exceptions by which a test is skipped or a run ends."""
PAIRS = (("actual", "desired"), ("left", "right"))
"""Arguments of the functions whose names begin with `assert` in numpy.testing and pandas.testing."""

_compared: "list[tuple[tuple[types.CodeType, int], tuple[str, str, str]]]" = []
"""The last failed comparison: its code and line, and (operator, left, right)."""
_collected: "dict[str, Any]" = {}
"""Test id -> its code."""
_plugins: "list[Any]" = []
_records: "list[None]" = []
"""One entry per record made."""
_folder = os.environ.get(FOLDER, "")
_copied: "list[tuple[str, str]]" = []
"""The report that the user asked for, if any, and where its copy goes."""
_below: "list[str]" = []
"""The folder that pytest's names begin at, with a slash, if that is not the tree's top."""
_above: "dict[str, str]" = {}
"""Module of unittest's tests -> the folders of the tree above where its name begins, with dots."""
_log: "list[int]" = []
"""The descriptor of this process's record of tests, once it is open."""
_arguments: "dict[str, str]" = {}
"""Name -> repr of what the test under way was parametrized with."""
_outcomes: "dict[str, list[str]]" = {}
"""Test id -> what its phases came to, of the tests under way."""


def shown(value: object) -> str:
    """`repr(value)`; of a long one, the beginning and the end."""
    try:
        if isinstance(value, (str, bytes)) and len(value) > MAX_VALUE:
            return cut(repr(value[:MAX_VALUE]), repr(value[-MAX_VALUE:]), len(value) - 2 * MAX_VALUE)
        is_long = isinstance(value, CONTAINERS) and len(value) > MAX_ITEMS
        text = _bounded_repr().repr(value) if is_long else repr(value)
    except Exception as exc:
        return "<%s instance whose repr raises %s>" % (type(value).__name__, type(exc).__name__)
    return cut(text, text, len(text)) if len(text) > MAX_VALUE else text


def cut(head: str, tail: str, length: int) -> str:
    """The first and the last characters of a text, and how many of `length` are left out."""
    half = MAX_VALUE // 2
    return "%s[... %d characters left out ...]%s" % (head[:half], max(0, length - 2 * half), tail[-half:])


def _bounded_repr() -> reprlib.Repr:
    short = reprlib.Repr()
    short.maxlevel = 10
    for name in ("maxlist", "maxtuple", "maxdict", "maxset", "maxfrozenset"):
        setattr(short, name, MAX_ITEMS)
    short.maxstring = short.maxother = short.maxlong = MAX_VALUE
    return short


def record(exc: BaseException, compared: "tuple[str, str, str] | None" = None) -> "dict[str, object] | None":
    """What is known about the exception that failed a test; None once there are enough records."""
    if len(_records) >= MAX_RECORDS:
        return None
    _records.append(None)
    operator, left, right = compared or _by_locals(exc) or ("", "", "")
    return {"operator": operator, "left": left, "right": right, "frames": frames(exc)}


def frames(exc: "BaseException | None") -> "list[tuple[str, int, str]]":
    """(file, line, function) of each frame, innermost first; then those of the exception's cause."""
    found: "list[tuple[str, int, str]]" = []
    seen: "list[BaseException]" = []
    while exc is not None and len(seen) < MAX_CAUSES and not any(exc is one for one in seen):
        seen.append(exc)
        own = [(code.co_filename, line, code.co_name) for code, line, _ in steps(exc)]
        found.extend(own[: -MAX_FRAMES - 1 : -1])
        exc = exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__)
    return found


def steps(exc: BaseException) -> "list[tuple[types.CodeType, int, types.FrameType]]":
    """(code, line, frame) of each frame that the exception came through, innermost last."""
    found, step = [], exc.__traceback__
    while step is not None:
        found.append((step.tb_frame.f_code, step.tb_lineno or 0, step.tb_frame))
        step = step.tb_next
    return found


def _by_locals(exc: BaseException) -> "tuple[str, str, str] | None":
    """The arguments of the outermost assertion function of unittest, numpy or pandas; None if none was called."""
    for code, _, frame in steps(exc):
        names = code.co_varnames[: code.co_argcount]
        if code.co_filename.replace("\\", "/").endswith("unittest/case.py") and code.co_name in METHODS:
            operator, left, right = METHODS[code.co_name]
        elif code.co_name.startswith("assert") and "site-packages" in code.co_filename and names[:2] in PAIRS:
            operator, (left, right) = "==", names[:2]
        else:
            continue
        if left in frame.f_locals and (not right or right in frame.f_locals):
            return operator, shown(frame.f_locals[left]), shown(frame.f_locals[right]) if right else ""
    return None


def tell(*words: str) -> None:
    """Append a line to this process's record of tests, which a process that dies leaves behind."""
    with contextlib.suppress(Exception):
        if not _log:
            place = os.path.join(_folder, "python-%d.tests" % os.getpid())
            _log.append(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        os.write(_log[0], (json.dumps(words) + "\n").encode())


def read_left_out() -> "frozenset[str]":
    """The tests and files that are not run."""
    try:
        with open(os.path.join(_folder, LEFT_OUT)) as file:
            return frozenset(json.load(file))
    except (OSError, ValueError):
        return frozenset()


_left_out = read_left_out()
_found: "list[None]" = []
"""One entry once unittest has found the tests."""


# For pytest.


def full(nodeid: str) -> str:
    """The name of a test or a file of pytest from the top of the tree on: two packages may have files of one name."""
    return "".join(_below) + nodeid


def note_root(root: str) -> None:
    """Note the folder that pytest's names begin at."""
    below = os.path.relpath(os.path.realpath(root), os.path.realpath(os.environ[TOP]))
    if below != os.curdir and not below.startswith(os.pardir):
        _below[:] = [below.replace(os.sep, "/") + "/"]
        tell("root", *_below)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> None:
    """Note the comparison; how it is shown does not change."""
    frame: "types.FrameType | None" = sys._getframe(1)
    while frame is not None and _is_pytests(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is not None:
        _compared[:] = [((frame.f_code, frame.f_lineno), (op, shown(left), shown(right)))]


def pytest_configure(config: "Any") -> None:
    """Let all tests run: what comes after the first failures is judged as well. The report is this process's own, since a command
    may start pytest several times; the user's own one is copied.
    """
    config.option.maxfail = 0
    with contextlib.suppress(Exception):
        note_root(str(getattr(config, "rootpath", None) or config.rootdir))
    place = getattr(config.option, "xmlpath", None)
    if place and _folder and not hasattr(config, "workerinput"):
        own = os.path.join(_folder, "python-%d.xml" % os.getpid())
        if os.path.splitext(place)[0] == os.path.splitext(_folder)[0]:
            config.option.xmlpath = own
        else:
            _copied.append((os.path.abspath(os.path.expanduser(os.path.expandvars(place))), own))


def pytest_make_collect_report(collector: "Any") -> "Any":
    """Note which file is loaded; one that is left out has no tests."""
    pytest = sys.modules["pytest"]
    tell("load", full(collector.nodeid))
    if full(collector.nodeid) in _left_out and isinstance(collector, pytest.File):
        return pytest.CollectReport(collector.nodeid, "passed", None, [])
    return None


def pytest_collectreport(report: "Any") -> None:
    """Note that a file is loaded."""
    tell("loaded", full(report.nodeid), report.outcome)


def pytest_collection_modifyitems(items: "list[Any]") -> None:
    """Leave tests out."""
    if _left_out:
        items[:] = [item for item in items if full(item.nodeid) not in _left_out]


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note that a test begins, and forget the comparisons of earlier ones."""
    tell("start", full(nodeid))
    del _compared[:]


def pytest_runtest_setup(item: "Any") -> None:
    """Note what the test is parametrized with, before it can change that."""
    _arguments.clear()
    with contextlib.suppress(Exception):
        for name, value in item.callspec.params.items():
            if _is_plain(value, [None] * MAX_PARTS):
                text = repr(value)
                if len(text) <= MAX_ARGUMENT:
                    _arguments[name] = text


def _is_plain(value: object, left: "list[None]") -> bool:
    """Whether showing the value runs no code of the project, and it has no more parts than are `left`."""
    if type(value) not in PLAIN or not left:
        return False
    left.pop()
    if isinstance(value, (str, bytes)):
        return len(value) <= MAX_ARGUMENT
    if isinstance(value, dict):
        return all(_is_plain(each, left) for pair in value.items() for each in pair)
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(_is_plain(each, left) for each in value)
    return True


def pytest_runtest_logreport(report: "Any") -> None:
    """Note what a phase of a test came to and, after the last one, that it ended."""
    told = _outcomes.setdefault(report.nodeid, [])
    if report.outcome == "skipped":
        told.append("xfailed" if hasattr(report, "wasxfail") else "skipped")
    elif report.outcome == "failed":
        told.append("failed" if report.when == "call" else "error")
    elif report.when == "call":
        told.append("passed")
    if report.when == "teardown":
        tell("end", full(report.nodeid), *_outcomes.pop(report.nodeid))


def pytest_runtest_makereport(item: "Any", call: "Any") -> "Iterator[None]":
    """Check the runner for tampering. A failure's record goes into the report with the test's properties, even from a
    worker of pytest-xdist.
    """
    if call.when == "call":
        cra_identity.look()
        with contextlib.suppress(Exception):
            if item.nodeid in _collected:
                cra_identity.look_at_code(item.nodeid, _collected[item.nodeid], _code_of(item))
    yield
    if call.excinfo is None or type(call.excinfo.value).__name__ in OUTCOMES:
        return
    with contextlib.suppress(Exception):  # the report has pytest's own words
        if item.get_closest_marker("xfail"):
            return
        exc = call.excinfo.value
        last = steps(exc)[-1][:2]
        compared = [
            values for place, values in _compared if isinstance(exc, AssertionError) and place == last
        ]
        told = record(exc, compared[0] if compared else None)
        if told is not None:
            told["when"] = call.when
            told["arguments"] = dict(_arguments)
            item.user_properties.append((PROPERTY, json.dumps(told)))


if "pytest" in sys.modules:
    _hookimpl = sys.modules["pytest"].hookimpl
    pytest_runtest_makereport = _hookimpl(hookwrapper=True)(pytest_runtest_makereport)
    pytest_make_collect_report = _hookimpl(tryfirst=True)(pytest_make_collect_report)
    pytest_collection_modifyitems = _hookimpl(trylast=True)(pytest_collection_modifyitems)
    pytest_configure = _hookimpl(tryfirst=True)(pytest_configure)
    pytest_runtest_setup = _hookimpl(tryfirst=True)(pytest_runtest_setup)


def pytest_sessionstart(session: "Any") -> None:
    """Note the plugins that pytest was told to load, before the first test module is loaded."""
    with contextlib.suppress(Exception):
        _plugins.extend(cra_identity.named_plugins(session.config.pluginmanager))


def pytest_collection_finish(session: "Any") -> None:
    """Note the tests that were found, and the code of each as it was collected."""
    if sys.exc_info()[0] is not None:
        return  # pytest calls this even if a file ended the search, by sys.exit() for example
    tell("found", *(full(item.nodeid) for item in session.items))
    with contextlib.suppress(Exception):
        _collected.update((item.nodeid, _code_of(item)) for item in session.items)


def pytest_sessionfinish(session: "Any") -> None:
    """Check which plugins answered pytest's hooks."""
    with contextlib.suppress(Exception):
        cra_identity.look_at_plugins(session.config.pluginmanager, _plugins)
    with contextlib.suppress(Exception):
        cra_identity.look_at_modules()
    with contextlib.suppress(Exception):
        if TRACE in sys.modules:
            sys.modules[TRACE].note_plugins(list(session.config.pluginmanager.get_plugins()))


def pytest_unconfigure() -> None:
    """Copy the report that the user asked for."""
    for source, target in _copied:
        with contextlib.suppress(OSError), open(source, "rb") as file:
            data = file.read()
            with open(target, "wb") as copy:
                copy.write(data)


def _code_of(item: "Any") -> "Any":
    return getattr(getattr(item, "function", None), "__code__", None)


def _is_pytests(file: str) -> bool:
    parts = file.replace("\\", "/").split("/")
    return "_pytest" in parts or "pluggy" in parts


def withdraw() -> None:
    """Keep processes that tests start from loading this module."""
    named = os.environ.pop("PYTEST_PLUGINS", "").split(",")
    others = ",".join(name for name in named if name and name != __name__)
    if others:
        os.environ["PYTEST_PLUGINS"] = others


withdraw()
if "pytest" in sys.modules:
    cra_identity.accept_plugins()
    cra_identity.remember_loaded()


# For unittest.

SKIPPED_MODULE = "unittest.loader.ModuleSkipped."
UNLOADED = "unittest.loader._FailedTest."
MAIN = "__main__."
"""Begins the names of tests in a file that is run as a script; in its place comes where the file is."""
ADDED = {
    "addSuccess": "passed",
    "addFailure": "failed",
    "addError": "error",
    "addSkip": "skipped",
    "addExpectedFailure": "xfailed",
    "addUnexpectedSuccess": "failed",
}


def dotted(name: str) -> str:
    """The name of a test or a module of unittest from the top of the tree on: two folders may have modules of one name."""
    for marked in (UNLOADED, SKIPPED_MODULE):
        if name.startswith(marked):
            return marked + dotted(name[len(marked) :])
    head, bracket, inside = name.partition(" (")
    if bracket and "." not in head:  # a class or module that could not be set up
        return head + bracket + dotted(inside[:-1]) + inside[-1:]
    parts = head.split(".")
    for end in range(len(parts), 0, -1):
        module = ".".join(parts[:end])
        if module not in _above and module in sys.modules:
            _note_above(module, getattr(sys.modules[module], "__file__", None))
        if module in _above:
            return _above[module] + name.replace(MAIN, "", 1)
    return name


def _note_above(module: str, file: "str | None") -> None:
    if not file:
        return
    below = os.path.relpath(os.path.realpath(file), os.path.realpath(os.environ[TOP]))
    parts, own = os.path.splitext(below)[0].split(os.sep), [] if module == "__main__" else module.split(".")
    if parts[-1] == "__init__":
        parts.pop()
    above = parts[: len(parts) - len(own)]
    if parts[len(above) :] == own and all(part.replace("-", "_").isidentifier() for part in above):
        _above[module] = "".join(part + "." for part in above)


def describe_fully(result_class: "Any") -> None:
    """Print the names of tests from the top of the tree on."""
    describe = result_class.getDescription

    def described(self: "Any", test: "Any") -> str:
        words: str = describe(self, test)
        with contextlib.suppress(Exception):
            head, bracket, inside = words.partition(" (")
            name, closing, rest = inside.partition(")")
            return head + bracket + dotted(name) + closing + rest
        return words

    result_class.getDescription = described


def tell_tests(result_class: "Any") -> None:
    """Note the tests that begin and end, and what they come to."""
    start, stop, add_sub = result_class.startTest, result_class.stopTest, result_class.addSubTest

    def start_test(self: "Any", test: "Any") -> "Any":
        with contextlib.suppress(Exception):  # tests may call a result themselves, with anything
            _outcomes[test.id()] = []
            tell("start", dotted(test.id()))
        return start(self, test)

    def stop_test(self: "Any", test: "Any") -> "Any":
        with contextlib.suppress(Exception):
            tell("end", dotted(test.id()), *_outcomes.pop(test.id(), ()))
        return stop(self, test)

    def add_sub_test(self: "Any", test: "Any", subtest: "Any", err: "Any") -> "Any":
        with contextlib.suppress(Exception):
            if err is not None:
                _outcomes.setdefault(test.id(), []).append("failed")
        return add_sub(self, test, subtest, err)

    def told(add: "Any", outcome: str) -> "Any":
        def added(self: "Any", test: "Any", *args: "Any") -> "Any":
            with contextlib.suppress(Exception):
                if test.id() in _outcomes:
                    _outcomes[test.id()].append(outcome)
                else:
                    tell("end", dotted(test.id()), outcome)  # a class or module that could not be set up
            return add(self, test, *args)

        return added

    result_class.startTest, result_class.stopTest = start_test, stop_test
    result_class.addSubTest = add_sub_test
    for name, outcome in ADDED.items():
        setattr(result_class, name, told(getattr(result_class, name), outcome))


def tell_found(runner_class: "Any") -> None:
    """Note the tests that were found; those that are left out are not run, and all others are, whatever fails first."""
    run = runner_class.run

    def run_found(self: "Any", test: "Any") -> "Any":
        with contextlib.suppress(Exception):
            if not _found:  # a test may run tests itself
                _found.append(None)
                self.failfast = False
                _leave_out(test)
                tell("found", *_test_ids(test))
        result = run(self, test)
        with contextlib.suppress(Exception):
            cra_identity.look_at_modules()
        return result

    runner_class.run = run_found


def _test_ids(suite: "Any") -> "Iterator[str]":
    for test in suite:
        if hasattr(test, "__iter__"):
            yield from _test_ids(test)
        else:
            yield dotted(test.id())


def _leave_out(suite: "Any") -> None:
    if not _left_out:
        return
    for test in suite:
        if hasattr(test, "__iter__"):
            _leave_out(test)
    suite._tests = [
        test
        for test in suite
        if hasattr(test, "__iter__") or dotted(test.id()).replace(SKIPPED_MODULE, "") not in _left_out
    ]


def tell_loaded(loader_class: "Any") -> None:
    """Note which module is loaded; one that is left out has no tests."""
    get, load = loader_class._get_module_from_name, loader_class.loadTestsFromName

    def get_module(self: "Any", name: str) -> "Any":
        _note_place(self, name)
        if dotted(name) in _left_out:
            raise sys.modules["unittest.case"].SkipTest("left out")
        tell("load", dotted(name))
        module = get(self, name)
        tell("loaded", dotted(name))
        return module

    def load_tests_from_name(self: "Any", name: str, module: "Any" = None) -> "Any":
        _note_place(self, name)
        if dotted(name) in _left_out:
            return self.suiteClass()
        tell("load", dotted(name))
        found = load(self, name, module)
        tell("loaded", dotted(name))
        return found

    loader_class._get_module_from_name = get_module
    loader_class.loadTestsFromName = load_tests_from_name


def _note_place(loader: "Any", name: str) -> None:
    """Note where a module is that may fail to load."""
    with contextlib.suppress(Exception):
        for folder in (getattr(loader, "_top_level_dir", None), os.getcwd()):
            file = os.path.join(folder or os.curdir, *name.split(".")) + ".py"
            if name not in _above and os.path.isfile(file):
                _note_above(name, file)


def tell_results(result_class: "Any") -> None:
    """Record each failure that unittest formats, in the folder of the test command."""
    in_words = result_class._exc_info_to_string

    def _exc_info_to_string(self: "Any", err: "Any", test: "Any") -> "Any":
        with contextlib.suppress(Exception):  # the output has unittest's own words
            note(err[1], test)
        return in_words(self, err, test)

    result_class._exc_info_to_string = _exc_info_to_string


def note(exc: BaseException, test: "Any") -> None:
    """Append the record of a failing test, or of one of its subtests, to the process's file."""
    told = record(exc)
    if told is None:
        return
    test = getattr(test, "test_case", test)
    told["name"] = dotted(test.id())
    told["when"] = "FAIL" if isinstance(exc, getattr(test, "failureException", AssertionError)) else "ERROR"
    with open(os.path.join(os.environ[FOLDER], "python-%d.failures" % os.getpid()), "a") as file:
        file.write(json.dumps(told) + "\n")

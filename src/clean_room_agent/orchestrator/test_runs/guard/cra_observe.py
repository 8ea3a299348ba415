"""Records which functions of the tree run under each test, their lines and, for tests that fail, the values of their last
calls and the way to the failure. One JSON object a test, a line each, in the folder of the test command.

Nothing is recorded of a function's lines and values once it was called often, nor of anything once the time for it is over.
Loaded by `sitecustomize`, only for a run that asks for it; nothing here may disturb a test. PYTEST_DONT_REWRITE
"""

import atexit
import contextlib
import importlib
import json
import os
import re
import sys
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

calls: "Any" = importlib.import_module("cra_calls")
shown, state, current, suspended = calls.shown, calls.state, calls.current, calls.suspended
known, arguments_of, values_of = calls.known, calls.arguments_of, calls.values_of
resume, pause = calls.resume, calls.pause

FOLDER = "CRA_TEST_REPORTS"
OBSERVED = "CRA_TEST_OBSERVED"
"""The variable with what is asked for: `tree`, `tests` (a pattern of paths), `plain` (tests without values), `seconds` (of the
processor, in each process)."""
NOW = "CRA_TEST_NOW"
"""The variable that names the test under way, for the processes that it starts."""
MAX_TESTS = 300
MAX_FUNCTIONS = 300
MAX_SHOWN = 60
"""Functions whose values are told: those on the way to the failure, and those that ran last."""
MAX_BYTES = 8_000_000
"""Of the records of one process, after which there are no more values."""
FRAMES = 25
"""Innermost frames of an exception whose functions are told."""
CAUSES = 3
OUTCOMES = ("Skipped", "XFailed", "Exit", "SkipTest", "KeyboardInterrupt", "_ShouldStop")
"""Exceptions that are no failures."""


def begin(folder: str) -> None:
    """Get ready; nothing is recorded before the first test begins. Processes that a test starts don't load the plugin."""
    asked = json.loads(os.environ[OBSERVED])
    tree = asked["tree"]
    state.update(
        tree=list(dict.fromkeys(os.path.join(name, "") for name in (tree, os.path.realpath(tree)))),
        tests=re.compile(asked["tests"]),
        plain=frozenset(asked["plain"]),
        seconds=float(asked["seconds"]),
        ends=0.0,
        process=os.getpid(),
        place=os.path.join(folder, "python-%d.observed" % os.getpid()),
    )
    named = os.environ.pop("PYTEST_PLUGINS", "").split(",")
    others = ",".join(name for name in named if name and name != __name__)
    if others:
        os.environ["PYTEST_PLUGINS"] = others


def begin_whole() -> None:
    """Record all that this process does, for the test that started it or, without one, for the command itself."""
    open_test(os.environ.get(NOW, ""))
    current[0].whole = True
    before = sys.excepthook

    def hook(kind: "Any", exc: BaseException, trace: "Any") -> None:
        with contextlib.suppress(Exception):
            fail(exc)
        before(kind, exc, trace)

    def end() -> None:
        with contextlib.suppress(Exception):
            pause()
            close_test()

    sys.excepthook = hook
    atexit.register(end)
    resume()


# Tests.


def open_test(name: str) -> None:
    """A test begins; what runs is recorded from `resume` to `pause`."""
    now = calls.CLOCK[0]()
    if not state["ends"]:
        state["ends"] = now + state["seconds"]
    current[:] = [calls.TestUnderWay(name, values=name not in state["plain"])]
    suspended.clear()
    if state["told"] >= MAX_TESTS or now > state["ends"]:
        current[0].problem = "the time for tracing was over" if now > state["ends"] else "too many tests"


def close_test() -> None:
    """The test has ended; its record is written."""
    if not current:
        return
    test = current.pop()
    suspended.clear()
    if os.getpid() != state["process"]:
        return  # a process that the test forked
    ran = sorted(test.ran.values(), key=lambda one: one.order)
    way = {place[:3] for place in test.failure}
    told = [one for one in ran if (one.place.path, one.place.first, one.place.name) in way] + ran[-MAX_SHOWN:]
    values = (test.failed or test.whole) and state["bytes"] < MAX_BYTES
    shown_ids = {id(one) for one in told} if values else set()
    functions = [
        (
            *(one.place.path, one.place.first, one.place.name, one.calls, sorted(one.lines)),
            *(one.depth, one.order, one.origin, list(one.last) if id(one) in shown_ids else []),
        )
        for one in ran[-MAX_FUNCTIONS:]
    ]
    state["told"] += 1
    _append_record(
        {
            "test": test.name,
            "failed": test.failed,
            "functions": functions,
            "failure": test.failure,
            "lines": test.lines,
            "problem": test.problem,
        }
    )


def fail(exc: BaseException) -> None:
    """The test under way failed."""
    if not current or type(exc).__name__ in OUTCOMES:
        return
    test = current[0]
    test.failed = True
    test.failure, test.lines = [], []
    told: "set[int]" = set()
    seen: "list[BaseException]" = []
    at: "BaseException | None" = exc
    while at is not None and len(seen) < CAUSES and not any(at is one for one in seen):
        seen.append(at)
        for frame, line in _traceback_frames(at):
            place = known(frame.f_code)
            if place is None or len(test.failure) >= FRAMES:
                continue
            if place.tested:
                test.lines.append((place.path, line))
                continue
            test.failure.append((place.path, place.first, place.name, line))
            if id(place.code) not in told:
                told.add(id(place.code))
                _add_failing(test, place, frame, line, at)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)


def _add_failing(test: "Any", place: "Any", frame: "Any", line: int, exc: BaseException) -> None:
    """What a frame holds through which the exception came is the last call of its function."""
    ran = test.ran.get(id(place.code))
    if ran is None:
        ran = test.ran[id(place.code)] = calls.Ran(place)
        ran.calls, ran.order = 1, next(calls.serial)
    ran.lines.add(line)
    if not test.values:
        return
    names = arguments_of(place.code)
    held = values_of(frame)
    entry = {
        "arguments": [pair for pair in held if pair[0] in names],
        "result": "raises " + shown(exc),
        "values": [pair for pair in held if pair[0] not in names],
    }
    told = [one for one in ran.last if (one["values"], one["result"]) == (entry["values"], entry["result"])]
    if told:
        entry["arguments"] = told[-1]["arguments"]
    others = [one for one in ran.last if one not in told]
    ran.last.clear()
    ran.last.extend([*others, entry])


def _traceback_frames(exc: BaseException) -> "list[tuple[Any, int]]":
    """(frame, line) of each frame that the exception came through, innermost first."""
    found: "deque[tuple[Any, int]]" = deque(maxlen=2000)
    step = exc.__traceback__
    while step is not None:
        found.append((step.tb_frame, step.tb_lineno or 0))
        step = step.tb_next
    return list(found)[::-1]


def _append_record(record: "dict[str, Any]") -> None:
    place = os.open(state["place"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        state["bytes"] += os.write(
            place, (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        )
    finally:
        os.close(place)


# pytest.


def failures() -> "Any":
    """The plugin that knows where the runners' names begin."""
    return importlib.import_module("cra_failures")


def pytest_load_initial_conftests(early_config: "Any") -> None:
    """Nobody reads the coverage of this run, and its tool would take the trace function."""
    with contextlib.suppress(Exception):
        early_config.known_args_namespace.no_cov = True


def pytest_runtest_protocol(item: "Any") -> "Iterator[None]":
    """A test runs."""
    with _ignore_errors():
        os.environ[NOW] = failures().full(item.nodeid)
        open_test(failures().full(item.nodeid))
    yield
    with _ignore_errors():
        os.environ.pop(NOW, None)
        close_test()


def pytest_runtest_setup() -> "Iterator[None]":
    """Fixtures count as parts of the test, which is recorded likewise."""
    with _ignore_errors():
        resume()
    yield
    with _ignore_errors():
        pause()


def pytest_runtest_makereport(call: "Any") -> "Iterator[None]":
    """How it ended; only now does the call of a unittest hold its error."""
    yield
    if call.excinfo is not None:
        with _ignore_errors():
            fail(call.excinfo.value)


def pytest_make_collect_report(collector: "Any") -> "Any":
    """A file that cannot be loaded counts as a test that failed."""
    outcome = yield
    with _ignore_errors():
        excinfo = getattr(getattr(outcome.get_result(), "call", None), "excinfo", None)
        if excinfo is not None:
            tell_unloaded(failures().full(collector.nodeid), excinfo.value)


def tell_unloaded(name: str, exc: BaseException) -> None:
    """What cannot be loaded is told as a test that failed."""
    held = list(current)
    current[:] = [calls.TestUnderWay(name, values=True)]
    fail(exc)
    if current[0].failed:
        close_test()
    current[:] = held


def _ignore_errors() -> "Any":
    return contextlib.suppress(Exception)


if "pytest" in sys.modules:
    _hookimpl: "Any" = sys.modules["pytest"].hookimpl
    _wraps = _hookimpl(hookwrapper=True)
    pytest_load_initial_conftests = _hookimpl(tryfirst=True)(pytest_load_initial_conftests)
    pytest_runtest_protocol = _wraps(pytest_runtest_protocol)
    pytest_runtest_setup = pytest_runtest_call = _wraps(pytest_runtest_setup)
    pytest_make_collect_report = _wraps(pytest_make_collect_report)
    pytest_runtest_makereport = _wraps(pytest_runtest_makereport)


# unittest.


def tell_results(result_class: "Any") -> None:
    """Record what runs between the start and the stop of each test."""
    start, stop = result_class.startTest, result_class.stopTest

    def start_test(self: "Any", test: "Any") -> "Any":
        found = start(self, test)
        with _ignore_errors():
            os.environ[NOW] = failures().dotted(test.id())
            open_test(failures().dotted(test.id()))
            resume()
        return found

    def stop_test(self: "Any", test: "Any") -> "Any":
        with _ignore_errors():
            pause()
            os.environ.pop(NOW, None)
            close_test()
        return stop(self, test)

    def told(add: "Any", at: int) -> "Any":
        def added(self: "Any", test: "Any", *args: "Any") -> "Any":
            with _ignore_errors():
                error = args[at] if len(args) > at else None
                if error is not None:
                    if current:
                        fail(error[1])
                    else:
                        tell_unloaded(
                            failures().dotted(test.id()), error[1]
                        )  # a class or module that could not be set up
            return add(self, test, *args)

        return added

    result_class.startTest, result_class.stopTest = start_test, stop_test
    for name, at in (("addFailure", 0), ("addError", 0), ("addSubTest", 1)):
        setattr(result_class, name, told(getattr(result_class, name), at))


def tell_loaded(module: "Any") -> None:
    """Record why a module of tests cannot be loaded: unittest keeps the words of the error alone."""
    make = module._make_failed_import_test

    def made(name: "Any", *args: "Any") -> "Any":
        with _ignore_errors():
            error = sys.exc_info()[1]
            if error is not None:
                tell_unloaded(failures().dotted(str(name)), error)
        return make(name, *args)

    module._make_failed_import_test = made
    load = module.TestLoader.loadTestsFromName

    def load_tests_from_name(self: "Any", name: str, module: "Any" = None) -> "Any":
        try:
            return load(self, name, module)
        except Exception as exc:
            with _ignore_errors():
                tell_unloaded(failures().dotted(name), exc)
            raise

    module.TestLoader.loadTestsFromName = load_tests_from_name


begin(os.environ[FOLDER])

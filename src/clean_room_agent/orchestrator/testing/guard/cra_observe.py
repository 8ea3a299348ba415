"""Records which functions of the tree run under each test, their lines and, for tests that fail, the values of their last
calls and the way to the failure. One JSON object a test, a line each, in the folder of the test command.

Python 3.12 and newer are asked by `sys.monitoring`, older ones by `sys.settrace`, only while a test runs; a tool that has the
slot of `settrace` gets it back after each test. Nothing is recorded of a function's lines and values once it was called often,
nor of anything once the time for it is over. Loaded by `sitecustomize`, only for a run that asks for it; nothing here may
disturb a test. PYTEST_DONT_REWRITE
"""

import atexit
import contextlib
import importlib
import itertools
import json
import os
import re
import sys
import threading
import time
import types
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

shown: "Callable[[Any], str]" = importlib.import_module("cra_values").shown

FOLDER = "CRA_TEST_REPORTS"
OBSERVED = "CRA_TEST_OBSERVED"
"""The variable with what is asked for: `tree`, `tests` (a pattern of paths), `plain` (tests without values), `seconds` (of the
processor, in each process)."""
NOW = "CRA_TEST_NOW"
"""The variable that names the test under way, for the processes that it starts."""
MAX_CALLS = 500
"""Calls of one function under one test, after which only their number is recorded."""
MAX_LINES = 50_000
"""Lines that one call runs, after which the others are not recorded (settrace)."""
ALL_LINES = 300_000
"""The same of a test; calls that begin later have few left."""
FEW_LINES = 200
MAX_KNOWN = 20_000
"""Code objects that are known."""
MAX_TESTS = 300
MAX_FUNCTIONS = 300
MAX_VALUES = 12
"""Names of one call."""
LAST = 3
"""Calls of a function whose values are kept."""
YIELDED = 4
GRACE = 0.1
SHARE = 0.5
"""Values may take this many seconds of a test, and this part of its time."""
FRAMES = 25
"""Innermost frames of an exception whose functions are told."""
CAUSES = 3
OUTCOMES = ("Skipped", "XFailed", "Exit", "SkipTest", "KeyboardInterrupt", "_ShouldStop")
"""Exceptions that are no failures."""
FOREIGN = frozenset({"site-packages", "node_modules", ".git"})
OPTIMIZED = 0x01
"""The flag of the code of functions, but not of modules and classes."""
GENERATOR = 0x20
SUSPENDS = GENERATOR | 0x80 | 0x200
"""Flags of the code of generators, coroutines and asynchronous generators."""


class Place:
    """A function of the tree, by its code."""

    __slots__ = ("code", "endings", "first", "ignored", "name", "path", "suspends", "tested", "yields")

    def __init__(self, code: types.CodeType, path: str, tested: bool) -> None:
        self.code = code
        self.path = path
        self.first = code.co_firstlineno
        self.name = code.co_name
        self.tested = tested
        self.ignored = tested or not code.co_flags & OPTIMIZED
        """Whether it counts only if an error comes through it."""
        self.suspends = bool(code.co_flags & SUSPENDS)
        self.yields = bool(code.co_flags & GENERATOR)
        self.endings: "bytes | None" = None


class Ran:
    """What a function did under one test."""

    __slots__ = ("calls", "depth", "last", "lines", "open", "order", "origin", "place")

    def __init__(self, place: Place) -> None:
        self.place = place
        self.calls = 0
        self.open = 0
        """Calls under way whose end is waited for."""
        self.lines: "set[int]" = set()
        self.depth = 10_000
        self.order = 0
        self.origin = 0
        self.last: "deque[dict[str, Any]]" = deque(maxlen=LAST)


class Test:
    """The test under way."""

    def __init__(self, name: str, values: bool) -> None:
        self.name = name
        self.values = values
        self.began = time.perf_counter()
        self.spent = 0.0
        self.left = ALL_LINES
        self.ran: "dict[int, Ran]" = {}
        self.whole = False
        """Whether it is a process of its own, whose end does not say how the test ends."""
        self.failed = False
        self.failure: "list[tuple[str, int, str, int]]" = []
        self.lines: "list[tuple[str, int]]" = []
        """(file, line) of the frames of tests on the way to the failure."""
        self.problem = ""


class Call:
    """A call under way."""

    __slots__ = (
        "arguments",
        "error",
        "left",
        "most",
        "raised_at",
        "ran",
        "stacked",
        "test",
        "values",
        "yielded",
    )

    def __init__(self, ran: Ran, test: Test) -> None:
        self.ran = ran
        self.test = test
        self.arguments: "list[list[str]] | None" = None
        self.values: "list[list[str]]" = []
        self.yielded: "list[str]" = []
        self.error = ""
        self.raised_at = -1
        """The instruction at which an error was seen, unless a line ran after it."""
        self.most = self.left = MAX_LINES if test.left > 0 else FEW_LINES
        self.stacked = False

    def on(self, frame: "Any", event: str, arg: "Any") -> "Any":
        """The local function of `settrace`."""
        if event == "line":
            self.ran.lines.add(frame.f_lineno)
            self.raised_at = -1
            self.left -= 1
            if self.left <= 0 or (not self.left & 1023 and time.process_time() > _state["ends"]):
                frame.f_trace_lines = False
        elif event == "return":
            try:
                _ended(self, frame, arg)
            except RecursionError:  # of the test itself, which is at its limit
                pass
        elif event == "exception":
            self.raised_at = frame.f_lasti
            self.ran.lines.add(frame.f_lineno)
            try:
                self.error = shown(arg[1]) if self.arguments is not None else ""
            except RecursionError:
                pass
        return self.on


_places: "dict[int, Place | None]" = {}
"""By the id of a code object; None if it is not of the tree."""
_kept: "list[types.CodeType]" = []
"""The codes of `_places`, so that their ids stay theirs."""
_now: "list[Test]" = []
_suspended: "dict[int, Call]" = {}
"""By the id of a frame: calls of generators and coroutines between two steps; with monitoring, all calls."""
_threads = threading.local()
_order = itertools.count(1)
_ticks = itertools.count(1)
_state: "dict[str, Any]" = {
    "tree": [],
    "tests": None,
    "plain": frozenset(),
    "ends": 0.0,
    "told": 0,
    "place": "",
    "process": 0,
}
_before: "list[Any]" = []
"""The trace functions that a test found in place: this thread's, and that of new ones."""


def begin(folder: str) -> None:
    """Get ready; nothing is recorded before the first test begins. Processes that a test starts don't load the plugin."""
    asked = json.loads(os.environ[OBSERVED])
    tree = asked["tree"]
    _state.update(
        tree=list(dict.fromkeys(os.path.join(name, "") for name in (tree, os.path.realpath(tree)))),
        tests=re.compile(asked["tests"]),
        plain=frozenset(asked["plain"]),
        seconds=float(asked["seconds"]),
        ends=0.0,
        process=os.getpid(),
        place=os.path.join(folder, "python-%d.observed" % os.getpid()),
    )
    named = [name for name in os.environ.get("PYTEST_PLUGINS", "").split(",") if name and name != __name__]
    os.environ.pop("PYTEST_PLUGINS", None)
    if named:
        os.environ["PYTEST_PLUGINS"] = ",".join(named)


def begin_whole() -> None:
    """Record all that this process does, for the test that started it or, without one, for the command itself."""
    open_test(os.environ.get(NOW, ""))
    _now[0].whole = True
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
    now = time.process_time()
    if not _state["ends"]:
        _state["ends"] = now + _state["seconds"]
    _now[:] = [Test(name, values=name not in _state["plain"])]
    _suspended.clear()
    if _state["told"] >= MAX_TESTS or now > _state["ends"]:
        _now[0].problem = "the time for tracing was over" if now > _state["ends"] else "too many tests"


def close_test() -> None:
    """The test has ended; its record is written."""
    if not _now:
        return
    test = _now.pop()
    _suspended.clear()
    if os.getpid() != _state["process"]:
        return  # a process that the test forked
    ran = sorted(test.ran.values(), key=lambda one: one.order)
    functions = [
        (
            *(one.place.path, one.place.first, one.place.name, one.calls, sorted(one.lines)),
            *(one.depth, one.order, one.origin, list(one.last) if test.failed or test.whole else []),
        )
        for one in ran[-MAX_FUNCTIONS:]
    ]
    _state["told"] += 1
    _write(
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
    if not _now or type(exc).__name__ in OUTCOMES:
        return
    test = _now[0]
    test.failed = True
    test.failure, test.lines = [], []
    told: "set[int]" = set()
    seen: "list[BaseException]" = []
    at: "BaseException | None" = exc
    while at is not None and len(seen) < CAUSES and not any(at is one for one in seen):
        seen.append(at)
        for frame, line in _steps(at):
            place = _known(frame.f_code)
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


def _add_failing(test: Test, place: Place, frame: "Any", line: int, exc: BaseException) -> None:
    """What a frame holds through which the exception came is the last call of its function."""
    ran = test.ran.get(id(place.code))
    if ran is None:
        ran = test.ran[id(place.code)] = Ran(place)
        ran.calls, ran.order = 1, next(_order)
    ran.lines.add(line)
    if not test.values:
        return
    names = _arguments(place.code)
    held = _values(frame)
    entry = {
        "arguments": [pair for pair in held if pair[0] in names],
        "result": "raises " + shown(exc),
        "values": [pair for pair in held if pair[0] not in names],
    }
    known = [one for one in ran.last if one["values"] != entry["values"] or one["result"] != entry["result"]]
    begun = [
        one["arguments"]
        for one in ran.last
        if one["values"] == entry["values"] and one["result"] == entry["result"]
    ]
    if begun:
        entry["arguments"] = begun[-1]
    ran.last.clear()
    ran.last.extend([*known, entry])


def _steps(exc: BaseException) -> "list[tuple[Any, int]]":
    """(frame, line) of each frame that the exception came through, innermost first."""
    found: "deque[tuple[Any, int]]" = deque(maxlen=2000)
    step = exc.__traceback__
    while step is not None:
        found.append((step.tb_frame, step.tb_lineno or 0))
        step = step.tb_next
    return list(found)[::-1]


def _write(record: "dict[str, Any]") -> None:
    place = os.open(_state["place"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(place, (json.dumps(record) + "\n").encode())
    finally:
        os.close(place)


# What runs.


def _known(code: types.CodeType) -> "Place | None":
    """The place of the code; None if it is not of the tree."""
    try:
        return _places[id(code)]
    except KeyError:
        pass
    if len(_kept) >= MAX_KNOWN:
        return None
    place = None
    file = code.co_filename
    if not file.startswith("<"):
        path = _below(file)
        if path:
            place = Place(code, path, tested=_state["tests"].search(path.lower()) is not None)
    _kept.append(code)
    _places[id(code)] = place
    return place


def _below(file: str) -> str:
    """The path relative to the tree; "" if it is not in it, or in packages that are installed there."""
    file = os.path.abspath(file)
    for tree in _state["tree"]:
        if file.startswith(tree):
            inner = file[len(tree) :]
            return "" if FOREIGN.intersection(inner.split(os.sep)) else inner
    return ""


def _is_late() -> bool:
    """Whether the time for tracing is over, as far as it is looked at now and then."""
    if next(_ticks) & 255:
        return False
    if time.process_time() < _state["ends"]:
        return False
    if _now:
        _now[0].problem = "the time for tracing was over"
    return True


def _stack() -> "list[Call]":
    try:
        found: "list[Call]" = _threads.stack
    except AttributeError:
        found = _threads.stack = []
    return found


def _started(place: Place, frame: "Any", test: Test) -> "Call | None":
    """A call begins; None if its function was called so often that only the number is recorded."""
    ran = test.ran.get(id(place.code))
    if ran is None:
        ran = test.ran[id(place.code)] = Ran(place)
    ran.calls += 1
    if ran.calls > MAX_CALLS:
        return None
    ran.order = next(_order)
    ran.open += 1
    call = Call(ran, test)
    stack = _stack()
    if not stack:
        ran.origin = _line_of_test(frame.f_back)
    else:
        ran.origin = stack[0].ran.origin
    ran.depth = min(ran.depth, len(stack) + 1)
    _push(call, stack)
    if test.values and _has_time(test):
        now = time.perf_counter()
        call.arguments = _values(frame, _arguments(place.code))
        test.spent += time.perf_counter() - now
    return call


def _push(call: Call, stack: "list[Call]") -> None:
    stack.append(call)
    call.stacked = True


def _pop(call: Call) -> None:
    if call.stacked:
        call.stacked = False
        stack = _stack()
        while stack and stack.pop() is not call:
            pass


def _line_of_test(frame: "Any") -> int:
    """The line of a test that is running; 0 if none is among the next frames."""
    for _ in range(50):
        if frame is None:
            break
        place = _known(frame.f_code)
        if place is not None and place.tested:
            return int(frame.f_lineno or 0)
        frame = frame.f_back
    return 0


def _has_time(test: Test) -> bool:
    return test.spent < GRACE + SHARE * (time.perf_counter() - test.began)


def _arguments(code: types.CodeType) -> "tuple[str, ...]":
    count = (
        code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    )
    return code.co_varnames[:count]


def _values(frame: "Any", names: "tuple[str, ...] | None" = None) -> "list[list[str]]":
    """(name, value in words) of the local variables."""
    held = frame.f_locals
    if names is None:
        is_module = frame.f_code.co_name == "<module>"
        first = [name for name in _arguments(frame.f_code) if name in held]
        names = tuple(first) + tuple(
            name
            for name in held
            if name not in first
            and not name.startswith(("@", "."))
            and not (
                is_module
                and (
                    name.startswith("__") or callable(held[name]) or isinstance(held[name], types.ModuleType)
                )
            )
        )
        names = names[: len(first)] + names[len(first) :][-MAX_VALUES:]
    return [[name, shown(held[name])] for name in names[: 2 * MAX_VALUES] if name in held]


def _paused(call: Call, frame: "Any", value: "Any") -> None:
    """A generator or coroutine gave a value, and may go on."""
    _pop(call)
    test = call.test
    if not call.ran.place.yields or call.arguments is None or not _has_time(test):
        return
    now = time.perf_counter()
    call.yielded = [*call.yielded, shown(value)][-YIELDED:]
    call.values = _rest(call, frame)
    _tell(call, "", again=True)
    test.spent += time.perf_counter() - now


def _finished(call: Call, frame: "Any", value: "Any", error: str) -> None:
    """A call ended: with a value or, if there are words for it, an error."""
    call.ran.open -= 1
    _pop(call)
    test = call.test
    if call.arguments is None or not test.values or (call.yielded and error.startswith("GeneratorExit(")):
        return
    now = time.perf_counter()
    call.values = _rest(call, frame)
    _tell(call, "raises " + error if error else "" if call.ran.place.yields else shown(value), again=True)
    test.spent += time.perf_counter() - now


def _rest(call: Call, frame: "Any") -> "list[list[str]]":
    """The local variables that are not arguments as they were passed."""
    begun = [tuple(pair) for pair in call.arguments or ()]
    return [pair for pair in _values(frame) if tuple(pair) not in begun]


def _tell(call: Call, result: str, *, again: bool) -> None:
    """The call is the last one of its function; `again`: in place of what was told of it before."""
    if not result and call.yielded:
        result = "yields " + ", ".join(call.yielded)
    entry = {"arguments": call.arguments, "result": result, "values": call.values}
    last = call.ran.last
    if again and last and last[-1]["arguments"] is call.arguments:
        last.pop()
    last.append(entry)


# `sys.settrace`.


def _traced(frame: "Any", _event: str, _arg: "Any") -> "Any":
    """The global function."""
    try:
        try:
            place = _places[id(frame.f_code)]
        except KeyError:
            place = _known(frame.f_code)
        if _is_late():
            sys.settrace(None)
            return None
        if place is None or place.ignored or not _now:
            return None
        if place.suspends:
            call = _suspended.pop(id(frame), None)
            if call is not None and call.ran.place is place:
                _push(call, _stack())
                return call.on
        call = _started(place, frame, _now[0])
    except RecursionError:  # of the test itself, which is at its limit
        return None
    return None if call is None else call.on


def _ended(call: Call, frame: "Any", value: "Any") -> None:
    """The local function's end: a return, a yield, or an exception."""
    place = call.ran.place
    if place.endings is None:
        place.endings = place.code.co_code
    call.ran.lines.add(frame.f_lineno)
    call.test.left -= call.most - call.left
    call.most = call.left
    at = frame.f_lasti
    op = place.endings[at] if 0 <= at < len(place.endings) else -1
    if place.endings[at + 2 : at + 3] in DELEGATES:  # Python 3.10 will run it once more
        op = place.endings[at + 2]
    if op in YIELDS and call.raised_at != at:
        _suspended[id(frame)] = call
        _paused(call, frame, value)
    elif op in RETURNS and call.raised_at != at:
        _finished(call, frame, value, "")
    else:
        _finished(call, frame, None, call.error or "an error")


def _ops(*names: str) -> "frozenset[int]":
    opmap = importlib.import_module("opcode").opmap
    return frozenset(opmap[name] for name in names if name in opmap)


YIELDS = _ops("YIELD_VALUE", "YIELD_FROM")
RETURNS = _ops("RETURN_VALUE", "RETURN_CONST")
DELEGATES = frozenset(bytes((op,)) for op in _ops("YIELD_FROM"))


# `sys.monitoring`.


class Monitor:
    """The tool of this process, where there is a free one."""

    def __init__(self, monitoring: "Any", tool: int) -> None:
        self.monitoring = monitoring
        self.tool = tool
        events = monitoring.events
        self.inside = events.LINE | events.PY_RETURN | events.PY_YIELD | events.PY_RESUME
        self.everywhere = events.PY_START | events.PY_UNWIND | events.PY_THROW
        self.local: "dict[int, types.CodeType]" = {}
        """Codes whose own events are on."""
        for event, heard in (
            (events.PY_START, self.start),
            (events.PY_RESUME, self.resume),
            (events.PY_THROW, self.throw),
            (events.PY_RETURN, self.end),
            (events.PY_YIELD, self.pause),
            (events.PY_UNWIND, self.unwind),
            (events.LINE, self.line),
        ):
            monitoring.register_callback(tool, event, heard)

    def turn(self, *, on: bool) -> None:
        """All events are on or off."""
        for code in self.local.values():
            self.monitoring.set_local_events(self.tool, code, 0)
        self.local.clear()
        self.monitoring.set_events(self.tool, self.everywhere if on else 0)
        if on:
            self.monitoring.restart_events()

    def start(self, code: types.CodeType, _offset: int) -> "Any":
        """PY_START."""
        try:
            place = _known(code)
            if place is None or place.ignored or not _now:
                return self.monitoring.DISABLE
            if _is_late():
                self.turn(on=False)
                return None
            frame = sys._getframe(1)
            test = _now[0]
            call = _started(place, frame, test)
            if call is None:
                ends = self.monitoring.events.PY_RETURN if test.ran[id(code)].open else 0
                self.monitoring.set_local_events(self.tool, code, ends)
                return self.monitoring.DISABLE
            if id(code) not in self.local:
                self.local[id(code)] = code
                self.monitoring.set_local_events(self.tool, code, self.inside)
            _suspended[id(frame)] = call
        except RecursionError:
            return None
        return None

    def line(self, code: types.CodeType, line: int) -> "Any":
        """LINE: each is told once in a test."""
        ran = _now[0].ran.get(id(code)) if _now else None
        if ran is not None:
            ran.lines.add(line)
        return self.monitoring.DISABLE

    def resume(self, _code: types.CodeType, _offset: int) -> None:
        """PY_RESUME."""
        call = _suspended.get(id(sys._getframe(1)))
        if call is not None:
            _push(call, _stack())

    def throw(self, code: types.CodeType, _offset: int, _exc: BaseException) -> None:
        """PY_THROW."""
        if _places.get(id(code)) is not None:
            call = _suspended.get(id(sys._getframe(1)))
            if call is not None:
                _push(call, _stack())

    def pause(self, _code: types.CodeType, _offset: int, value: "Any") -> None:
        """PY_YIELD."""
        frame = sys._getframe(1)
        call = _suspended.get(id(frame))
        if call is not None:
            try:
                _paused(call, frame, value)
            except RecursionError:
                pass

    def end(self, code: types.CodeType, _offset: int, value: "Any") -> None:
        """PY_RETURN."""
        frame = sys._getframe(1)
        call = _suspended.pop(id(frame), None)
        if call is not None:
            try:
                _finished(call, frame, value, "")
            except RecursionError:
                pass
            if call.ran.calls > MAX_CALLS and not call.ran.open:
                self.monitoring.set_local_events(self.tool, code, 0)

    def unwind(self, code: types.CodeType, _offset: int, exc: BaseException) -> None:
        """PY_UNWIND."""
        if _places.get(id(code)) is None:
            return
        frame = sys._getframe(1)
        call = _suspended.pop(id(frame), None)
        if call is not None:
            try:
                _finished(call, frame, None, shown(exc))
            except RecursionError:
                pass


def _free_monitor() -> "Monitor | None":
    """A tool of `sys.monitoring`; None if this Python has none, or none is free."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None:
        return None
    for tool in (4, 3, 5, 2, 1, 0):
        if monitoring.get_tool(tool) is None:
            with contextlib.suppress(ValueError):
                monitoring.use_tool_id(tool, "cra")
                return Monitor(monitoring, tool)
    return None


_monitors: "list[Monitor | None]" = []


def resume() -> None:
    """What runs from here on is recorded."""
    if not _now or _now[0].problem:
        return
    if not _monitors:
        _monitors.append(_free_monitor())
    del _stack()[:]
    if _monitors[0] is not None:
        _monitors[0].turn(on=True)
        return
    _before[:] = [sys.gettrace(), getattr(threading, "_trace_hook", None)]
    threading.settrace(_traced)
    sys.settrace(_traced)


def pause() -> None:
    """Nothing more is recorded."""
    if not _monitors:
        return
    if _monitors[0] is not None:
        _monitors[0].turn(on=False)
        return
    if _before:
        found = sys.gettrace()
        if _now and not _now[0].problem and found is not _traced:
            _now[0].problem = "something else took Python's trace function, or a call went too deep for it"
        if found in (None, _traced):
            sys.settrace(_before[0])
            threading.settrace(_before[1])
        del _before[:]


# pytest.


def pytest_load_initial_conftests(early_config: "Any") -> None:
    """Nobody reads the coverage of this run, and its tool would take the trace function."""
    with contextlib.suppress(Exception):
        early_config.known_args_namespace.no_cov = True


def pytest_runtest_protocol(item: "Any") -> "Iterator[None]":
    """A test runs."""
    with _quietly():
        os.environ[NOW] = item.nodeid
        open_test(item.nodeid)
    yield
    with _quietly():
        os.environ.pop(NOW, None)
        close_test()


def pytest_runtest_setup() -> "Iterator[None]":
    """Fixtures count as parts of the test."""
    with _quietly():
        resume()
    yield
    with _quietly():
        pause()


def pytest_runtest_call() -> "Iterator[None]":
    """The test itself."""
    with _quietly():
        resume()
    yield
    with _quietly():
        pause()


def pytest_runtest_makereport(call: "Any") -> "Iterator[None]":
    """How it ended; only now does the call of a unittest hold its error."""
    yield
    if call.excinfo is not None:
        with _quietly():
            fail(call.excinfo.value)


def pytest_make_collect_report(collector: "Any") -> "Any":
    """A file that cannot be loaded counts as a test that failed."""
    outcome = yield
    with _quietly():
        excinfo = getattr(getattr(outcome.get_result(), "call", None), "excinfo", None)
        if excinfo is not None:
            tell_unloaded(collector.nodeid, excinfo.value)


def tell_unloaded(name: str, exc: BaseException) -> None:
    """What cannot be loaded is told as a test that failed."""
    held = list(_now)
    _now[:] = [Test(name, values=True)]
    fail(exc)
    if _now[0].failed:
        close_test()
    _now[:] = held


def _quietly() -> "Any":
    return contextlib.suppress(Exception)


if "pytest" in sys.modules:
    _hookimpl: "Any" = sys.modules["pytest"].hookimpl
    _wraps = _hookimpl(hookwrapper=True)
    pytest_load_initial_conftests = _hookimpl(tryfirst=True)(pytest_load_initial_conftests)
    pytest_runtest_protocol = _wraps(pytest_runtest_protocol)
    pytest_runtest_setup = _wraps(pytest_runtest_setup)
    pytest_runtest_call = _wraps(pytest_runtest_call)
    pytest_make_collect_report = _wraps(pytest_make_collect_report)
    pytest_runtest_makereport = _wraps(pytest_runtest_makereport)


# unittest.


def tell_results(result_class: "Any") -> None:
    """Record what runs between the start and the stop of each test."""
    start, stop = result_class.startTest, result_class.stopTest

    def start_test(self: "Any", test: "Any") -> "Any":
        found = start(self, test)
        with _quietly():
            os.environ[NOW] = test.id()
            open_test(test.id())
            resume()
        return found

    def stop_test(self: "Any", test: "Any") -> "Any":
        with _quietly():
            pause()
            os.environ.pop(NOW, None)
            close_test()
        return stop(self, test)

    def told(add: "Any", at: int) -> "Any":
        def added(self: "Any", test: "Any", *args: "Any") -> "Any":
            with _quietly():
                error = args[at] if len(args) > at else None
                if error is not None:
                    if _now:
                        fail(error[1])
                    else:
                        tell_unloaded(test.id(), error[1])  # a class or module that could not be set up
            return add(self, test, *args)

        return added

    result_class.startTest, result_class.stopTest = start_test, stop_test
    for name, at in (("addFailure", 0), ("addError", 0), ("addSubTest", 1)):
        setattr(result_class, name, told(getattr(result_class, name), at))


def tell_loaded(module: "Any") -> None:
    """Record why a module of tests cannot be loaded: unittest keeps the words of the error alone."""
    make = module._make_failed_import_test

    def made(name: "Any", *args: "Any") -> "Any":
        with _quietly():
            error = sys.exc_info()[1]
            if error is not None:
                tell_unloaded(str(name), error)
        return make(name, *args)

    module._make_failed_import_test = made
    load = module.TestLoader.loadTestsFromName

    def load_tests_from_name(self: "Any", name: str, module: "Any" = None) -> "Any":
        try:
            return load(self, name, module)
        except Exception as exc:
            with _quietly():
                tell_unloaded(name, exc)
            raise

    module.TestLoader.loadTestsFromName = load_tests_from_name


begin(os.environ[FOLDER])

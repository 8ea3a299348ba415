"""The calls that a trace records under each test: of which function, which lines, and the values of the last ones.

`cra_observe` tells which test is under way. PYTEST_DONT_REWRITE
"""

import importlib
import itertools
import os
import sys
import threading
import time
import types
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

shown: "Callable[[Any], str]" = importlib.import_module("cra_values").shown

CLOCK = (time.process_time,)
"""In a tuple, where tools that stop the time for tests do not find it."""
MAX_LINED = 500
"""Calls of one function under one test, after which their lines are not recorded."""
MAX_CALLS = 20_000
"""The same, after which only their number is."""
MAX_LINES = 50_000
"""Lines that one call runs, after which the others are not recorded."""
ALL_LINES = 300_000
"""The same of a test; calls that begin later have few left."""
FEW_LINES = 200
MAX_KNOWN = 20_000
"""Code objects that are known."""
MAX_VALUES = 12
"""Names of one call."""
LAST = 3
"""Calls of a function whose values are kept."""
YIELDED = 4
GRACE = 0.25
SHARE = 0.5
"""Values may take this many seconds of a test, of the processor, and this part of its time."""
FOREIGN = frozenset({"site-packages", "node_modules", ".git"})
OPTIMIZED = 0x01
"""The flag of the code of functions, but not of modules and classes."""
REPORTERS = ("_pytest.assertion.", "_pytest._io.", "unittest.util.", "pprint.", "cra_failures.shown")
"""How the names begin of what calls a value's own `__repr__` for the report of a failure."""
REPORTED = -1
GENERATOR = 0x20
SUSPENDS = GENERATOR | 0x80 | 0x200
"""Flags of the code of generators, coroutines and asynchronous generators."""


class FunctionPlace:
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

    __slots__ = ("calls", "depth", "last", "lines", "order", "origin", "place")

    def __init__(self, place: FunctionPlace) -> None:
        self.place = place
        self.calls = 0
        self.lines: "set[int]" = set()
        self.depth = 10_000
        self.order = 0
        self.origin = 0
        self.last: "deque[dict[str, Any]]" = deque(maxlen=LAST)


class TestUnderWay:
    """The test under way."""

    def __init__(self, name: str, values: bool) -> None:
        self.name = name
        self.values = values
        self.began = CLOCK[0]()
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

    def __init__(self, ran: Ran, test: TestUnderWay) -> None:
        self.ran = ran
        self.test = test
        self.arguments: "list[list[str]] | None" = None
        self.values: "list[list[str]]" = []
        self.yielded: "list[str]" = []
        self.error = ""
        self.raised_at = -1
        """The instruction at which an error was seen, unless a line ran after it."""
        self.most = self.left = MAX_LINES if test.left > 0 else FEW_LINES
        if ran.calls > MAX_LINED:
            self.most = self.left = 0
        self.stacked = False

    def on(self, frame: "Any", event: str, arg: "Any") -> "Any":
        """The local function of `settrace`."""
        if event == "line":
            self.ran.lines.add(frame.f_lineno)
            self.raised_at = -1
            self.left -= 1
            if self.left <= 0 or (not self.left & 1023 and CLOCK[0]() > state["ends"]):
                frame.f_trace_lines = False
            return self.on
        try:
            if event == "return":
                ended(self, frame, arg)
            elif event == "exception":
                self.raised_at = frame.f_lasti
                self.ran.lines.add(frame.f_lineno)
                self.error = shown(arg[1]) if self.arguments is not None else ""
        except RecursionError:  # of the test itself, which is at its limit
            pass
        except Exception as exc:
            let_pass(exc)
        return self.on


places: "dict[int, FunctionPlace | None]" = {}
"""By the id of a code object; None if it is not of the tree."""
kept: "list[types.CodeType]" = []
"""The codes of `places`, so that their ids stay theirs."""
current: "list[TestUnderWay]" = []
suspended: "dict[int, Call]" = {}
"""By the id of a frame: calls of generators and coroutines between two steps."""
threads = threading.local()
serial = itertools.count(1)
ticks = itertools.count(1)
state: "dict[str, Any]" = {
    "tree": [],
    "tests": None,
    "plain": frozenset(),
    "ends": 0.0,
    "told": 0,
    "bytes": 0,
    "place": "",
    "process": 0,
}


def let_pass(exc: Exception) -> None:
    """Raise what a signal handler of the tests raised; all else is a fault of ours, and may not disturb them."""
    step = exc.__traceback__
    while step is not None:
        if known(step.tb_frame.f_code) is not None:
            raise exc
        step = step.tb_next


def known(code: types.CodeType) -> "FunctionPlace | None":
    """The place of the code; None if it is not of the tree."""
    try:
        return places[id(code)]
    except KeyError:
        pass
    if len(kept) >= MAX_KNOWN:
        return None
    place = None
    file = code.co_filename
    if not file.startswith("<"):
        path = below(file)
        if path:
            place = FunctionPlace(code, path, tested=state["tests"].search(path.lower()) is not None)
    kept.append(code)
    places[id(code)] = place
    return place


def below(file: str) -> str:
    """The path relative to the tree; "" if it is not in it, or in packages that are installed there."""
    file = os.path.abspath(file)
    for tree in state["tree"]:
        if file.startswith(tree):
            inner = file[len(tree) :]
            return "" if FOREIGN.intersection(inner.split(os.sep)) else inner
    return ""


def is_late() -> bool:
    """Whether the time for tracing is over, as far as it is looked at now and then."""
    if next(ticks) & 255:
        return False
    if CLOCK[0]() < state["ends"]:
        return False
    if current:
        current[0].problem = "the time for tracing was over"
    return True


def stack_of_thread() -> "list[Call]":
    """The calls under way in this thread, outermost first."""
    try:
        found: "list[Call]" = threads.stack
    except AttributeError:
        found = threads.stack = []
    return found


def started(place: FunctionPlace, frame: "Any", test: TestUnderWay) -> "Call | None":
    """A call begins; None if its function was called so often that nothing but the number is recorded, if no time is left, or
    if only the report of a failure asks for it.
    """
    stack = stack_of_thread()
    origin = stack[0].ran.origin if stack else _line_of_test(frame.f_back)
    if origin == REPORTED:
        return None
    ran = test.ran.get(id(place.code))
    if ran is None:
        ran = test.ran[id(place.code)] = Ran(place)
    ran.calls += 1
    is_shown = test.values and ran.calls <= MAX_CALLS and _has_time(test)
    if ran.calls > MAX_LINED and not is_shown:
        return None
    ran.order = next(serial)
    ran.origin = origin
    call = Call(ran, test)
    ran.depth = min(ran.depth, len(stack) + 1)
    push(call, stack)
    if is_shown:
        now = CLOCK[0]()
        call.arguments = values_of(frame, arguments_of(place.code))
        test.spent += CLOCK[0]() - now
    return call


def push(call: Call, stack: "list[Call]") -> None:
    """The call goes on."""
    stack.append(call)
    call.stacked = True


def pop(call: Call) -> None:
    """The call ends, or waits."""
    if call.stacked:
        call.stacked = False
        stack = stack_of_thread()
        while stack and stack.pop() is not call:
            pass


def _line_of_test(frame: "Any") -> int:
    """The line of a test that is running; 0 if none is among the next frames; REPORTED if it has ended in a failure."""
    for _ in range(50):
        if frame is None:
            break
        place = known(frame.f_code)
        if place is not None and place.tested:
            return int(frame.f_lineno or 0)
        name = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"
        if place is None and name.startswith(REPORTERS):
            return REPORTED
        frame = frame.f_back
    return 0


def _has_time(test: TestUnderWay) -> bool:
    return test.spent < GRACE + SHARE * (CLOCK[0]() - test.began)


def arguments_of(code: types.CodeType) -> "tuple[str, ...]":
    """The names of what is passed to it."""
    count = (
        code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    )
    return code.co_varnames[:count]


def values_of(frame: "Any", names: "tuple[str, ...] | None" = None) -> "list[list[str]]":
    """(name, value in words) of the local variables."""
    held = frame.f_locals
    if names is None:
        is_module = frame.f_code.co_name == "<module>"
        first = [name for name in arguments_of(frame.f_code) if name in held]
        names = tuple(first) + tuple(
            name
            for name in held
            if name not in first
            and not name.startswith(("@", ".", "__class__"))
            and not (
                is_module
                and (
                    name.startswith("__") or callable(held[name]) or isinstance(held[name], types.ModuleType)
                )
            )
        )
        names = names[: len(first)] + names[len(first) :][-MAX_VALUES:]
    return [[name, shown(held[name])] for name in names[: 2 * MAX_VALUES] if name in held]


def paused(call: Call, frame: "Any", value: "Any") -> None:
    """A generator or coroutine gave a value, and may go on."""
    pop(call)
    test = call.test
    if not call.ran.place.yields or call.arguments is None or not _has_time(test):
        return
    now = CLOCK[0]()
    call.yielded = [*call.yielded, shown(value)][-YIELDED:]
    call.values = _new_or_changed_locals(call, frame)
    _record_last_call(call, "")
    test.spent += CLOCK[0]() - now


def finished(call: Call, frame: "Any", value: "Any", error: str) -> None:
    """A call ended: with a value or, if there are words for it, an error."""
    pop(call)
    test = call.test
    if call.arguments is None or not test.values or (call.yielded and error.startswith("GeneratorExit(")):
        return
    now = CLOCK[0]()
    call.values = _new_or_changed_locals(call, frame)
    _record_last_call(call, "raises " + error if error else "" if call.ran.place.yields else shown(value))
    test.spent += CLOCK[0]() - now


def _new_or_changed_locals(call: Call, frame: "Any") -> "list[list[str]]":
    """The local variables that are not arguments as they were passed."""
    begun = [tuple(pair) for pair in call.arguments or ()]
    return [pair for pair in values_of(frame) if tuple(pair) not in begun]


def _record_last_call(call: Call, result: str) -> None:
    """The call is the last one of its function, in place of what was told of it before."""
    if not result and call.yielded:
        result = "yields " + ", ".join(call.yielded)
    entry = {"arguments": call.arguments, "result": result, "values": call.values}
    last = call.ran.last
    if last and last[-1]["arguments"] is call.arguments:
        last.pop()
    last.append(entry)


def ended(call: Call, frame: "Any", value: "Any") -> None:
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
    elif op in RESUMES and place.endings[at - 2] in YIELDS:  # Python 3.13 is one instruction further
        op = place.endings[at - 2]
    if op in YIELDS and call.raised_at != at:
        suspended[id(frame)] = call
        paused(call, frame, value)
    elif op in RETURNS and call.raised_at != at:
        finished(call, frame, value, "")
    else:
        finished(call, frame, None, call.error or "an error")


def _opcode_numbers(*names: str) -> "frozenset[int]":
    opmap = importlib.import_module("opcode").opmap
    return frozenset(opmap[name] for name in names if name in opmap)


YIELDS = _opcode_numbers("YIELD_VALUE", "YIELD_FROM")
RETURNS = _opcode_numbers("RETURN_VALUE", "RETURN_CONST")
RESUMES = _opcode_numbers("RESUME")
DELEGATES = frozenset(bytes((op,)) for op in _opcode_numbers("YIELD_FROM"))


_before: "list[Any]" = []
"""The trace functions that a test found in place: this thread's, and that of new ones."""


def _global_trace(frame: "Any", _event: str, _arg: "Any") -> "Any":
    call = None
    try:
        place = known(frame.f_code)
        if is_late():
            sys.settrace(None)
            return None
        if place is None or place.ignored or not current:
            return None
        if place.suspends:
            call = suspended.pop(id(frame), None)
            if call is not None and call.ran.place is place:
                push(call, stack_of_thread())
                return call.on
        call = started(place, frame, current[0])
    except RecursionError:  # of the test itself, which is at its limit
        return None
    except Exception as exc:
        let_pass(exc)
    if call is None:
        return None
    if not call.left:
        frame.f_trace_lines = False
    return call.on


def resume() -> None:
    """What runs from here on is recorded, by `sys.settrace`, whose slot is given back by `pause`."""
    if not current or current[0].problem:
        return
    del stack_of_thread()[:]
    _before[:] = [sys.gettrace(), getattr(threading, "_trace_hook", None)]
    threading.settrace(_global_trace)
    sys.settrace(_global_trace)


def pause() -> None:
    """Nothing more is recorded."""
    if not _before:
        return
    found = sys.gettrace()
    if current and not current[0].problem and found is not _global_trace:
        current[0].problem = "something else took Python's trace function, or a call went too deep for it"
    if found in (None, _global_trace):
        sys.settrace(_before[0])
        threading.settrace(_before[1])
    del _before[:]

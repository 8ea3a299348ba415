"""Tells what calls begin, go on and end: by `sys.monitoring` where Python has it and a tool is free, else by `sys.settrace`,
whose slot is given back after each test. PYTEST_DONT_REWRITE
"""

import contextlib
import importlib
import sys
import threading
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

calls: "Any" = importlib.import_module("cra_calls")
shown = calls.shown
places, current, suspended = calls.places, calls.current, calls.suspended
known, is_late, push, stack_of_thread = calls.known, calls.is_late, calls.push, calls.stack_of_thread
started, paused, finished, let_pass = calls.started, calls.paused, calls.finished, calls.let_pass
MAX_CALLS = calls.MAX_CALLS

_before: "list[Any]" = []
"""The trace functions that a test found in place: this thread's, and that of new ones."""


def _traced(frame: "Any", _event: str, _arg: "Any") -> "Any":
    """The global function."""
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
            place = known(code)
            if place is None or place.ignored or not current:
                return self.monitoring.DISABLE
            if is_late():
                self.turn(on=False)
                return None
            frame = sys._getframe(1)
            test = current[0]
            call = started(place, frame, test)
            if call is None and test.ran[id(code)].calls <= MAX_CALLS:
                return None
            if call is None:
                ends = self.monitoring.events.PY_RETURN if test.ran[id(code)].open else 0
                self.monitoring.set_local_events(self.tool, code, ends)
                return self.monitoring.DISABLE
            if id(code) not in self.local:
                self.local[id(code)] = code
                self.monitoring.set_local_events(self.tool, code, self.inside)
            suspended[id(frame)] = call
        except RecursionError:
            return None
        except Exception as exc:
            let_pass(exc)
        return None

    def line(self, code: types.CodeType, line: int) -> "Any":
        """LINE: each is told once in a test."""
        ran = current[0].ran.get(id(code)) if current else None
        if ran is not None:
            ran.lines.add(line)
        return self.monitoring.DISABLE

    def resume(self, _code: types.CodeType, _offset: int) -> None:
        """PY_RESUME."""
        call = suspended.get(id(sys._getframe(1)))
        if call is not None:
            push(call, stack_of_thread())

    def throw(self, code: types.CodeType, _offset: int, _exc: BaseException) -> None:
        """PY_THROW."""
        if places.get(id(code)) is not None:
            call = suspended.get(id(sys._getframe(1)))
            if call is not None:
                push(call, stack_of_thread())

    def pause(self, _code: types.CodeType, _offset: int, value: "Any") -> None:
        """PY_YIELD."""
        frame = sys._getframe(1)
        call = suspended.get(id(frame))
        if call is not None:
            try:
                paused(call, frame, value)
            except RecursionError:
                pass
            except Exception as fault:
                let_pass(fault)

    def end(self, code: types.CodeType, _offset: int, value: "Any") -> None:
        """PY_RETURN."""
        frame = sys._getframe(1)
        call = suspended.pop(id(frame), None)
        if call is not None:
            try:
                finished(call, frame, value, "")
            except RecursionError:
                pass
            except Exception as fault:
                let_pass(fault)
            if call.ran.calls > MAX_CALLS and not call.ran.open:
                self.monitoring.set_local_events(self.tool, code, 0)

    def unwind(self, code: types.CodeType, _offset: int, exc: BaseException) -> None:
        """PY_UNWIND."""
        if places.get(id(code)) is None:
            return
        frame = sys._getframe(1)
        call = suspended.pop(id(frame), None)
        if call is not None:
            try:
                finished(call, frame, None, shown(exc))
            except RecursionError:
                pass
            except Exception as fault:
                let_pass(fault)


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
    if not current or current[0].problem:
        return
    if not _monitors:
        _monitors.append(_free_monitor())
    del stack_of_thread()[:]
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
        if current and not current[0].problem and found is not _traced:
            current[0].problem = "something else took Python's trace function, or a call went too deep for it"
        if found in (None, _traced):
            sys.settrace(_before[0])
            threading.settrace(_before[1])
        del _before[:]

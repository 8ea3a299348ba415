"""Values in words for the record of a trace: bounded in length and time, the same in each run, and never an error.

Containers are walked by their own types' methods, and instances shown by their attributes, so that only a `__repr__` that
somebody wrote runs code of theirs: in the main thread, where a timer can stop it. Addresses are left out.
PYTEST_DONT_REWRITE
"""

import importlib
import itertools
import re
import threading
import time
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

try:
    signal: "Any" = importlib.import_module("signal")
except ImportError:  # a build without it
    signal = None

CLOCK = (time.perf_counter,)
"""In a tuple, where tools that stop the time for tests do not find it."""
ALARMS = [
    getattr(signal, name)
    for name in ("SIGALRM", "SIGVTALRM", "SIGPROF", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
]
MAX_TEXT = 600
"""Characters of a value; the beginning is kept."""
MAX_ITEMS = 12
MAX_LEVELS = 4
MAX_BITS = 1000
MAX_HELD = 2000
"""Items of what has to be shown whole, or not at all."""
SECONDS = 0.05
"""For one `__repr__`."""
ALL_SECONDS = 1.0
"""For all of them together in one process."""
MORE = "..."
ADDRESS = re.compile(r"(?: at| id=)?\s*'?\b(?:0x[0-9a-fA-F]{8,}|1[34]\d{13})\b'?")
"""A place in memory, as it is usually shown in base 16 and 10."""
MADE = re.compile(r"<string>\Z|<attrs generated|.*[\\/](?:dataclasses|reprlib)\.py\Z")
"""Files of a `__repr__` that was made from the names of the attributes."""
SCALARS = (type(None), bool, float, complex, type(Ellipsis), type(NotImplemented))
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
SEQUENCES: "tuple[tuple[type, str, str], ...]" = (
    (list, "[", "]"),
    (tuple, "(", ")"),
    (set, "{", "}"),
    (frozenset, "{", "}"),
)

_spent = [0.0]


class TooLongError(BaseException):
    """A `__repr__` took too long; no `except Exception` in it may keep that."""


def shown(value: "Any") -> str:
    """The value in at most about `MAX_TEXT` characters."""
    masked = hasattr(signal, "pthread_sigmask") and threading.current_thread() is threading.main_thread()
    if masked:  # what a handler of the tests raises must not be taken for an error of a value
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ALARMS)
    try:
        text = _value_text(value, 0, [MAX_TEXT]).encode("utf-8", "backslashreplace").decode()
    finally:
        if masked:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return text if len(text) <= MAX_TEXT + 50 else text[:MAX_TEXT] + MORE


def _value_text(value: "Any", level: int, left: "list[int]") -> str:
    if left[0] <= 0 or level > MAX_LEVELS:
        return MORE
    try:
        text = (
            _scalar_text(value) or _container_text(value, level, left) or _instance_text(value, level, left)
        )
    except Exception as exc:
        text = "<%s that cannot be shown: %s>" % (_class_name(type(value)), _class_name(type(exc)))
    left[0] -= len(text)
    return text


def _scalar_text(value: "Any") -> str:
    """A value of one of Python's own types that hold no others; "" for any other."""
    kind = type(value)
    text = ""
    if any(kind is scalar for scalar in SCALARS):  # a metaclass may say what is equal
        text = repr(value)
    elif kind is int:
        text = repr(value) if value.bit_length() <= MAX_BITS else "<int of %d bits>" % value.bit_length()
    elif kind is str or kind is bytes or kind is bytearray:
        text = repr(value) if len(value) <= MAX_TEXT else repr(value[:MAX_TEXT]) + MORE
    elif kind is range:
        ends = [_scalar_text(part) for part in (value.start, value.stop, value.step)]
        text = "range(%s)" % ", ".join(ends if value.step != 1 else ends[:2])
    elif issubclass(kind, type):
        text = _class_name(value)
    elif kind is types.ModuleType:
        text = "<module %s>" % value.__name__
    elif any(kind is function for function in FUNCTIONS):
        text = "<function %s>" % str(getattr(value, "__qualname__", "?")).replace("<locals>.", "")
    return text


def _container_text(value: "Any", level: int, left: "list[int]") -> str:
    """A list, tuple, set or dict, or one of a subclass that shows itself as these do, or is of `collections`."""
    kind = type(value)
    own = _class_attribute(kind, "__repr__")
    standard = any(own is vars(base)["__repr__"] for base in (list, tuple, set, frozenset, dict))
    if not standard and _class_attribute(kind, "__module__") != "collections":
        return ""
    for base, first, last in SEQUENCES:
        if issubclass(kind, base):
            held: "Any" = base
            items = [
                _value_text(item, level + 1, left)
                for item in itertools.islice(held.__iter__(value), MAX_ITEMS)
            ]
            if base in (set, frozenset):
                items.sort()
            return _bracketed_items(kind, base, first, last, items, held.__len__(value))
    if issubclass(kind, dict):
        pairs = [
            _value_text(key, level + 1, left) + ": " + _value_text(item, level + 1, left)
            for key, item in itertools.islice(dict.items(value), MAX_ITEMS)
        ]
        return _bracketed_items(kind, dict, "{", "}", pairs, dict.__len__(value))
    return ""


def _bracketed_items(kind: type, base: type, first: str, last: str, items: "list[str]", length: int) -> str:
    if length > len(items):
        items.append("%s %d in all" % (MORE, length))
    if base is tuple and length == 1:
        items.append("")
    if base in (set, frozenset) and not items:
        return _class_name(kind) + "()"
    text = first + ", ".join(items).rstrip(" ") + last
    is_plain = any(kind is known for known in (list, tuple, set, dict))
    return text if is_plain else "%s(%s)" % (_class_name(kind), text)


def _instance_text(value: "Any", level: int, left: "list[int]") -> str:
    kind = type(value)
    own = _class_attribute(kind, "__repr__")
    if issubclass(kind, BaseException):  # not by what an instance says of its class
        args = vars(BaseException)["args"].__get__(value)
        return "%s(%s)" % (
            _class_name(kind),
            ", ".join(_value_text(item, level + 1, left) for item in args[:MAX_ITEMS]),
        )
    fields = dict(itertools.islice(_instance_fields(value), MAX_ITEMS))
    if "_name_" in fields and "_value_" in fields:  # a member of an enumeration
        return "%s.%s" % (_class_name(kind), _value_text(fields["_name_"], level, left).strip("'"))
    made = type(own) is types.FunctionType and MADE.match(own.__code__.co_filename)
    if not made and own is not object.__repr__ and not _holds_much(value, fields) and may_call():
        try:
            return ADDRESS.sub("", in_time(lambda: repr(value)))
        except Exception:
            pass  # it is shown by its attributes, too
    elif not made and own is not object.__repr__ and not fields:
        return "<%s>" % _class_name(kind)
    inner = ", ".join("%s=%s" % (name, _value_text(item, level + 1, left)) for name, item in fields.items())
    return "%s(%s)" % (_class_name(kind), inner)


def _instance_fields(value: "Any") -> "Iterator[tuple[str, Any]]":
    """(name, value) of the attributes of an instance, without running code of its class."""
    kind = type(value)
    held = _class_attribute(kind, "__dict__")
    if type(held) is types.GetSetDescriptorType:
        found = held.__get__(value)
        if type(found) is dict:
            yield from (
                (name, item) for name, item in list(found.items())[: MAX_ITEMS + 1] if type(name) is str
            )
    for base in type.__dict__["__mro__"].__get__(kind):
        for name, member in list(vars(base).items()):
            if type(member) is types.MemberDescriptorType and base.__module__ != "builtins":
                try:
                    yield name, member.__get__(value)
                except AttributeError:
                    continue


def _holds_much(value: "Any", fields: "dict[str, Any]") -> bool:
    """Whether a `repr`, which is one call that nothing can stop where it is written in C, could take long."""
    for held in (value, *fields.values()):
        measure = _class_attribute(type(held), "__len__")
        if type(measure) is type(list.__len__):
            try:
                if len(held) > MAX_HELD:
                    return True
            except Exception:
                return True
    return False


def may_call() -> bool:
    """Whether code that may hang can be called here: in the main thread, while there is time left."""
    return (
        signal is not None
        and hasattr(signal, "setitimer")
        and _spent[0] < ALL_SECONDS
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) is not None
    )


def in_time(call: "Callable[[], str]") -> str:
    """What the call gives; where it takes too long, it is stopped. A timer of the process goes on afterwards.

    Raises:
        Exception: what the call raises, or that it took too long.
    """
    began = CLOCK[0]()
    armed = [True]

    def stop(*_: object) -> None:
        if armed[0]:
            raise TooLongError

    left, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    if signal.SIGALRM in signal.sigpending():  # the tests' own, which they get afterwards
        raise TimeoutError
    handler = signal.signal(signal.SIGALRM, stop)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ALARMS[:1])
        signal.setitimer(signal.ITIMER_REAL, SECONDS, SECONDS)
        try:
            return call()
        finally:
            armed[0] = False
    except Exception:
        raise
    except TooLongError:
        raise TimeoutError from None
    except BaseException as exc:  # SystemExit of a `__repr__`, too, is no end of the test
        raise RuntimeError from exc
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.pthread_sigmask(signal.SIG_BLOCK, ALARMS[:1])
        signal.signal(signal.SIGALRM, handler)
        took = CLOCK[0]() - began
        _spent[0] += took
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - took, 0.001), interval)


def _class_attribute(kind: type, name: str) -> "Any":
    """What a class has by this name, itself or by its bases; None if nothing."""
    for base in type.__dict__["__mro__"].__get__(kind):
        held = type.__dict__["__dict__"].__get__(base)
        if name in held:
            return held[name]
    return None


def _class_name(kind: type) -> str:
    return str(type.__dict__["__qualname__"].__get__(kind)).replace("<locals>.", "")

"""What a test run showed: each failing test with its message and place, and its description for a prompt.

A test is named as its runner names it (`languages/test_names.py`). Described, it has its line, its values and its place, without repetition:

    Failing test: tests/test_money.py::test_split
      failing line: assert split(100, 3) == [34, 33, 33]
      expected: [34, 33, 33]
      actual: [33, 33, 33]
      at till/money.py:7 in split
      also fails in the same way: tests/test_money.py::test_shares

A further case of a test that pytest calls with parameters is named by these alone (`[2-x]`).

Everything from a test follows a label or is indented, so it cannot be taken for a heading or a frame of code. The whole
is limited in characters: short texts leave more space for long ones, of which the beginning and the end are kept.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from clean_room_agent.artifacts.names import quoted
from clean_room_agent.paths import is_test_path

LEAST_CHARACTERS = 2_000
"""The limit for judgments, of which there is one per item, and for the smallest window."""
MOST_CHARACTERS = 8_000
MAX_BLOCKS = 10
"""Tests that are shown in full; of further ones, only the names are."""
BLOCK_CHARACTERS = 600
"""Characters that a block gets if it needs them; there are fewer blocks if the limit does not allow as many."""
LISTED_SHARE = 4
"""The names of further tests get one part in so many of the limit."""
MAX_NAME = 160
MAX_MESSAGES = 10
MAX_FRAMES = 10
FAILING = "Failing test"
WORD = re.compile(r"\w+")
COMPARING_TEXT = """
    actual and are array assert assertion assertionerror be but deep deeply equal equality error expect expected
    got in input is length list not object of received same strict strictly string than that the to true false
    typeerror value values was were with
"""
COMPARING = frozenset(COMPARING_TEXT.split())
"""Words with which runners compare two values."""
NEW_WORDS = 3
"""A message with so many words of its own is shown in addition to the compared values."""

SAME_BOTH_SIDES = re.compile(r"(?:[\w.]+: )?(?:assert )?(?P<value>\S.*) (?:==|!=) (?P=value)(?: : .*)?")
"""A comparison of two values that are equal after abbreviation, which would mislead."""


class StackFrame(Struct, frozen=True, kw_only=True):
    """One frame of a stack trace; `line` is 1-based, 0 if unknown."""

    path: str
    line: int = 0
    function: str = ""


class FailingTest(Struct, frozen=True, kw_only=True):
    """One test that failed, normalised (no absolute paths, durations, addresses)."""

    name: str
    message: str = ""
    """Assertion or error lines, at most a few."""
    path: str = ""
    """The file of the innermost known frame, or else the test's own."""
    line: int = 0
    """1-based, in `path`; 0 if unknown."""
    statement: str = ""
    """The failing source line of the test, stripped; "" if the runner does not show it."""
    expected: str = ""
    """The expected value as the runner gives it, of a long one the beginning and the end; "" if it gives none."""
    actual: str = ""
    """The actual value, likewise."""
    frames: tuple[StackFrame, ...] = ()
    """In the repository's own files, innermost first."""
    arguments: tuple[tuple[str, str], ...] = ()
    """(name, repr) of what the test was parametrized with, as far as its runner tells."""


class Evidence(Struct, frozen=True, kw_only=True):
    """What a test run showed, normalised, in a fixed order and limited in size."""

    tests: tuple[FailingTest, ...] = ()
    """Files that could not be collected first, then failing tests by name."""
    messages: tuple[str, ...] = ()
    """Assertion or error lines, without duplicates."""
    frames: tuple[StackFrame, ...] = ()
    """Of the failures, innermost first, without duplicates."""
    others: tuple[str, ...] = ()
    """Further failing tests, which the task is not about."""

    @property
    def failing_tests(self) -> tuple[str, ...]:
        """The names of the failing tests, in order."""
        return tuple(test.name for test in self.tests)


class _Field(Struct, frozen=True):
    """One entry of a block: its label, and its text, indented if it has several lines."""

    head: str
    text: str
    is_value: bool = False


def evidence_bound(window: int) -> int:
    """How many characters evidence may take in a window of so many tokens: about an eighth of it."""
    return min(max(window // 2, LEAST_CHARACTERS), MOST_CHARACTERS)


def describe_evidence(evidence: Evidence, *, bound: int = MOST_CHARACTERS) -> str:
    """The failing tests, other messages, and if no test has a name, the places in the stack traces.

    At most `bound` characters; "" if there is nothing to say.
    """
    told = {line for test in evidence.tests for line in test.message.split("\n")}
    groups = [("Messages", [line for line in evidence.messages if line not in told], MAX_MESSAGES)]
    if not evidence.tests:
        groups.append(("Places in the stack traces", list(map(place_of, evidence.frames)), MAX_FRAMES))
    lists = [_render_list(*group, bound // LISTED_SHARE) for group in groups if group[1]]
    lists += [_others_line(evidence.others)] if evidence.others else []
    left = bound - sum(len(text) + 1 for text in lists)
    blocks = describe_tests([(FAILING, test) for test in evidence.tests], bound=left)
    return "\n".join([*filter(None, (blocks,)), *lists])


def _others_line(names: Sequence[str]) -> str:
    """That other tests fail, in one line."""
    name = _shorten_text(quoted(names[0]), MAX_NAME)
    if len(names) == 1:
        return f"One other test fails as well, {name}: it is not part of this task."
    return f"{len(names)} other tests fail as well, like {name}: they are not part of this task."


def describe_tests(tests: Sequence[tuple[str, FailingTest]], *, bound: int = MOST_CHARACTERS) -> str:
    """The tests, each after its label, in the given order; at most `bound` characters."""
    groups: dict[tuple[str, ...], list[FailingTest]] = {}
    for label, test in tests:
        groups.setdefault((label, *_failure_key(test)), []).append(test)
    labelled = [(key[0], same) for key, same in groups.items()]
    fields = [_block_fields(label, same) for label, same in labelled]
    shown, left = len(fields), bound
    if sum(map(_fields_size, fields)) > bound or shown > MAX_BLOCKS:
        shown = min(shown, MAX_BLOCKS, max(bound // BLOCK_CHARACTERS, 1))
        left -= bound // LISTED_SHARE if shown < len(fields) else 0
    sizes = _allot_sizes([_fields_size(block) for block in fields[:shown]], left)
    blocks = [_render_block(block, size) for block, size in zip(fields[:shown], sizes, strict=True)]
    further = [(label, same[0].name) for label, same in labelled[shown:]]
    return "\n".join(blocks + _further_lines(further, bound // LISTED_SHARE))


def same_failure(one: FailingTest, other: FailingTest) -> bool:
    """Whether both failed in the same way."""
    return _failure_texts(one) == _failure_texts(other)


def place_of(frame: StackFrame) -> str:
    """`path:line in function`, as far as it is known."""
    path = quoted(frame.path)
    place = f"{path}:{frame.line}" if frame.line else path
    return f"{place} in {frame.function}" if frame.function else place


def _failure_texts(test: FailingTest) -> tuple[str, ...]:
    return test.statement, test.expected, test.actual, test.message


def _failure_key(test: FailingTest) -> tuple[str, ...]:
    """Equal for tests that fail in the same way; a test without a message equals no other."""
    said = _failure_texts(test)
    return said if any(said) else (test.name,)


def _block_fields(label: str, same: Sequence[FailingTest]) -> list[_Field]:
    test = same[0]
    fields = [_Field(f"{label}: ", _shorten_text(quoted(test.name), MAX_NAME))]
    if test.statement:
        fields.append(_Field("  failing line: ", _indent_lines(test.statement)))
    values = (("expected", test.expected), ("actual", test.actual))
    if test.expected != test.actual:
        fields += [
            _Field(f"  {name}: ", _indent_lines(value), is_value=True) for name, value in values if value
        ]
    error = telling_message(test.message)
    is_half_known = test.expected == test.actual or not (test.expected and test.actual)
    if error and (is_half_known or _says_more(error, test)):
        fields.append(_Field("  error: ", _indent_lines(error)))
    if frame := _own_frame(test):
        fields.append(_Field("  at ", place_of(frame)))
    if len(same) > 1:
        names = [_shorten_text(name, MAX_NAME) for name in _other_names(same)]
        fields.append(_Field("  also fails in the same way: ", ", ".join(names)))
    return fields


def _other_names(tests: Sequence[FailingTest]) -> Iterator[str]:
    """The names of all but the first. Of a further case of the test named before, only the parameters: `[2-x]`."""
    for before, test in pairwise(tests):
        name, mark, _ = test.name.partition("[")
        same = mark and test.name.endswith("]") and before.name.startswith(f"{name}[")
        yield quoted(test.name[len(name) :] if same else test.name)


def _says_more(error: str, test: FailingTest) -> bool:
    """Whether the message says more than the failing line and the two values."""
    known = {
        word.lower() for text in (test.statement, test.expected, test.actual) for word in WORD.findall(text)
    }
    said = {word.lower() for word in WORD.findall(error)}
    return len(said - known - COMPARING) >= NEW_WORDS


def telling_message(message: str) -> str:
    """The message without comparisons whose sides are equal."""
    lines = (line for line in message.split("\n") if not SAME_BOTH_SIDES.fullmatch(line.strip()))
    return "\n".join(lines).strip("\n")


def _own_frame(test: FailingTest) -> StackFrame | None:
    """The innermost frame in the repository's own code outside of tests."""
    frames = test.frames or (StackFrame(path=test.path, line=test.line),)
    return next((frame for frame in frames if frame.path and not is_test_path(frame.path)), None)


def _render_block(fields: Sequence[_Field], size: int) -> str:
    """The fields in at most `size` characters, unless their labels alone need more."""
    left = size - sum(len(field.head) + 1 for field in fields)
    sizes = _allot_sizes([len(field.text) for field in fields], max(left, 0))
    values = [field.text for field in fields if field.is_value]
    differ_at = _first_difference(*values) if len(values) > 1 else 0
    lines = []
    for field, most in zip(fields, sizes, strict=True):
        text = _shorten_text(field.text, most, differ_at if field.is_value else 0)
        lines.append(f"{field.head.rstrip()}{text}" if text.startswith("\n") else f"{field.head}{text}")
    return "\n".join(lines)


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _further_lines(tests: Sequence[tuple[str, str]], bound: int) -> list[str]:
    lines: list[str] = []
    for label, name in tests:
        line = f"{label}: {_shorten_text(quoted(name), MAX_NAME)}"
        if sum(len(known) + 1 for known in lines) + len(line) + 20 > bound:
            break
        lines.append(line)
    if len(lines) < len(tests):
        lines.append(f"and {len(tests) - len(lines)} more")
    return lines


def _render_list(title: str, entries: Sequence[str], most: int, bound: int) -> str:
    shown = entries[:most]
    sizes = _allot_sizes([len(entry) for entry in shown], max(bound - 40 - 3 * len(shown), 0))
    lines = [
        f"- {_shorten_text(' '.join(entry.split()), size)}" for entry, size in zip(shown, sizes, strict=True)
    ]
    more = [f"- and {len(entries) - most} more"] if len(entries) > most else []
    return "\n".join([f"{title}:", *lines, *more])


def _allot_sizes(wanted: Sequence[int], total: int) -> list[int]:
    """How `total` is divided: each gets what it wants if that is at most an equal share of the rest, otherwise that
    share.
    """
    given = [0] * len(wanted)
    left = total
    for rank, place in enumerate(sorted(range(len(wanted)), key=lambda one: (wanted[one], one))):
        given[place] = min(wanted[place], left // (len(wanted) - rank))
        left -= given[place]
    return given


def _fields_size(fields: Sequence[_Field]) -> int:
    return sum(len(field.head) + len(field.text) + 1 for field in fields)


def _shorten_text(text: str, most: int, differs_at: int = 0) -> str:
    """The text in at most `most` characters: its beginning and its end, and if needed the surroundings of the place at
    which it differs from another text.
    """
    if len(text) <= most:
        return text
    mark = f" [... {len(text) - most} characters left out ...] "
    kept = max(most - len(mark), 0)
    tail = kept // 3
    if differs_at < kept - tail:
        return f"{text[: kept - tail]}{mark}{text[len(text) - tail :]}"
    start = max(differs_at - kept // 4, 0)
    before, after = f"[... {start} equal characters left out ...] ", " [... the rest left out ...]"
    return f"{before}{text[start : start + max(most - len(before) - len(after), 0)]}{after}"


def _indent_lines(text: str) -> str:
    return text if "\n" not in text else "".join(f"\n    {line}" for line in text.split("\n"))

"""The expected and the actual value of a failed assertion, named after each runner's conventions, whole up to a bound."""

import ast
import posixpath
import re
import textwrap
from collections.abc import Iterable, Sequence

MAX_VALUE = 2_000
"""Characters of a value; of a longer one head, tail, and what stands around the first difference."""
AROUND = 200
"""Characters before the first difference that are kept."""
FIXED = re.compile(r"expect|want|should|correct|golden|reference|desired|baseline", re.IGNORECASE)
FOUND = re.compile(r"actual|result|got|response|received|output|observed", re.IGNORECASE)
EQUALITY = frozenset({"", "==", "is"})

HUNK = re.compile(r"@@ .* @@")
DIFF_HEADS = (
    (re.compile(r"[-+] (?:Expected|Snapshot|Received)\b(?!:)[ \d+-]*"), ""),
    (re.compile(r"\+ expected - actual"), "+"),
    (re.compile(r"\+ actual - expected\b.*"), "-"),
)
"""Lines above a diff, and the sign of what was expected ("": the line's own sign)."""
EXPECTED = re.compile(r"[-+]? ?(?:expected|regex)\b(?P<what>[^:\n]{0,40}):(?: (?P<value>.*))?", re.IGNORECASE)
ACTUAL = re.compile(
    r"[-+]? ?(?:received|actual|input)\b(?P<what>[^:\n]{0,40}):(?: (?P<value>.*))?", re.IGNORECASE
)
UNTHROWN = re.compile(r"Received (?P<value>function did not throw)")


def label(operator: str, left: str, right: str, statement: str) -> tuple[str, str]:
    """(expected, actual) of a comparison in Python whose left and right side are known.

    What is tested stands to the left by the convention of pytest and unittest; where the statement shows a literal or
    a name like `expected` there, and none to the right, it is the other way round. An operator that is not equality
    stays with what was expected: `in [1, 2]`.
    """
    if operator not in EQUALITY:
        return f"{operator} {right}".strip(), left
    return (left, right) if _is_reversed(statement) else (right, left)


def _is_reversed(statement: str) -> bool:
    try:
        body = ast.parse(textwrap.dedent(statement)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    sides: list[ast.expr] = []
    for node in body[:1]:
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
            sides = [node.test.left, node.test.comparators[0]]
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            sides = node.value.args[:2]
    return len(sides) == 2 and _fixedness(sides[0]) > _fixedness(sides[1])


def _fixedness(side: ast.expr) -> int:
    """How much an expression looks like what is expected: 1 for literals and telling names, -1 for results."""
    name = side.id if isinstance(side, ast.Name) else side.attr if isinstance(side, ast.Attribute) else ""
    if name:
        return 1 if FIXED.search(name) else -1 if FOUND.search(name) else 0
    literal = (
        ast.Constant,
        ast.List,
        ast.Tuple,
        ast.Dict,
        ast.Set,
        ast.UnaryOp,
        ast.expr_context,
        ast.unaryop,
    )
    return 1 if all(isinstance(node, literal) for node in ast.walk(side)) else 0


def cut_pair(expected: str, actual: str, *, most: int = MAX_VALUE) -> tuple[str, str]:
    """Both values, each of at most about `most` characters: head, tail, and what stands where they begin to differ."""
    first = len(posixpath.commonprefix([expected, actual]))
    return _cut(expected, first, most), _cut(actual, first, most)


def _cut(value: str, first: int, most: int) -> str:
    if len(value) <= most:
        return value
    third = most // 3
    start = min(max(first - AROUND, 0), len(value))
    spans = sorted([(0, third), (start, start + third), (len(value) - third, len(value))])
    shown, end = "", 0
    for begin, stop in spans:
        if begin > end:
            shown += f"[... {begin - end} characters left out ...]"
        shown += value[max(begin, end) : stop]
        end = max(end, min(stop, len(value)))
    return shown


def values_in(text: str) -> tuple[str, str]:
    """(expected, actual) from the words of jest, vitest, mocha, node and unittest.mock, "" where they name none.

    `text` is normalised, and ends before the stack.
    """
    lines = text.split("\n")
    for index, line in enumerate(lines):
        for head, sign in DIFF_HEADS:
            if head.fullmatch(line.strip()):
                return _of_diff(lines[index:], sign)
    return _labelled(lines)


def _of_diff(lines: Sequence[str], sign: str) -> tuple[str, str]:
    """Both sides of the diff below its heading, without the marks."""
    body = 1 if sign else 2
    expected_sign = sign or "-"
    sides: tuple[list[str], list[str]] = ([], [])
    block = textwrap.dedent("\n".join(lines[body:])).strip("\n").split("\n") if sign == "+" else lines[body:]
    for line in block:
        if HUNK.fullmatch(line):
            continue
        mark, rest = line[:1], (line[1:] if sign == "+" else line[2:])
        if mark in {"-", "+"}:
            sides[mark != expected_sign].append(rest)
        elif line.startswith(" "):
            sides[0].append(rest)
            sides[1].append(rest)
    return _joined(sides[0]), _joined(sides[1])


def _labelled(lines: Sequence[str]) -> tuple[str, str]:
    found = {"expected": "", "actual": ""}
    for index, line in enumerate(lines):
        if match := UNTHROWN.fullmatch(line.strip()):
            found["actual"] = found["actual"] or match["value"]
        for side, pattern in (("expected", EXPECTED), ("actual", ACTUAL)):
            match = pattern.fullmatch(line.strip())
            if match and not found[side]:
                what = re.sub(r"\A(?:value|message)\b ?", "", match["what"].strip())
                found[side] = f"{what} {_value(match['value'] or '', lines[index + 1 :])}".strip()
    return found["expected"].rstrip(","), found["actual"].rstrip(",")


def _value(first: str, following: Iterable[str]) -> str:
    """A value that begins behind its label and goes on until a blank line or the next label."""
    shown = [first] if first else []
    for line in following:
        plain = line.strip()
        if not plain or first or EXPECTED.fullmatch(plain) or ACTUAL.fullmatch(plain):
            break
        shown.append(line)
    return _joined(shown)


def _joined(lines: Iterable[str]) -> str:
    return textwrap.dedent("\n".join(lines)).strip("\n")

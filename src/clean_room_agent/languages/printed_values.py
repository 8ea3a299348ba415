"""What runners print: without terminal escapes, and the values that their messages say were expected and found."""

import re
import textwrap
from collections.abc import Iterable, Sequence

from clean_room_agent.languages.relations import of_matcher

ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS and other strings
    r"|\x1b[ -/]*[0-~]"  # two-byte escapes
    r"|\x9b[0-?]*[ -/]*[@-~]",
    re.MULTILINE,
)
HAZARDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
HUNK = re.compile(r"@@ .* @@")
DIFF_HEADS = (
    (re.compile(r"[-+] (?:Expected|Snapshot|Received)\b(?!:)[ \d+-]*"), ""),
    (re.compile(r"\+ expected - actual"), "+"),
    (re.compile(r"\+ actual - expected\b.*"), "-"),
)
"""Lines above a diff, and the sign of the expected side ("": the line's own sign)."""
EXPECTED = re.compile(r"[-+]? ?(?:expected|regex)\b(?P<what>[^:\n]{0,40}):(?: (?P<value>.*))?", re.IGNORECASE)
ACTUAL = re.compile(
    r"[-+]? ?(?:received|actual|input)\b(?P<what>[^:\n]{0,40}):(?: (?P<value>.*))?", re.IGNORECASE
)
MATCHER = re.compile(
    r"(?:\w*Error: )?expect\(.*?\)(?P<negated>\.(?:\w+\.)?not)?(?:\.\w+)?\.(?P<name>to\w+)\(.*"
)
"""The first line of what jest says of a matcher."""
LABELS = re.compile(r"(?:not |[<>]=? |(?:array|constructor|path|pattern|string|substring|value) )+")
"""What jest puts before a value, which the matcher's words say as well."""
VALUE = re.compile(r"Expected value: (?!not )")
REGEX = "to match"
"""What pytest expects of an error's words."""
UNTHROWN = re.compile(r"Received (?P<value>function did not throw)")


def strip_escapes(text: str) -> str:
    r"""`text` without terminal escapes; other control and invisible characters are written as `\xNN`."""
    plain = ESCAPES.sub("", text.replace("\r\n", "\n"))
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))
    return HAZARDS.sub(_escape_character, "\n".join(lines))


def _escape_character(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def values_in(text: str) -> tuple[str, str]:
    """(expected, actual) from messages of jest, vitest, mocha, node and unittest.mock, "" if they name none.

    `text` is normalised, and ends before the stack.
    """
    lines = text.split("\n")
    for index, line in enumerate(lines):
        for head, sign in DIFF_HEADS:
            if head.fullmatch(line.strip()):
                return _of_diff(lines[index:], sign)
    expected, actual = _labelled_values(lines)
    return _of_matcher(lines, expected, actual) or (expected, actual)


def _of_matcher(lines: Sequence[str], expected: str, actual: str) -> tuple[str, str] | None:
    """Both values as one of jest's matchers compares them; None where no known one is named."""
    found = next(filter(None, (MATCHER.fullmatch(line.strip()) for line in lines)), None)
    if found is None or not (expected or actual):
        return None
    name, plain = found["name"], LABELS.sub("", expected, count=1) if LABELS.match(expected) else expected
    if name == "toHaveProperty" and (values := [line for line in lines if VALUE.match(line)]):
        return values[0].partition(": ")[2], actual
    words = of_matcher(name, plain, is_negated=bool(found["negated"]))
    if words is None:
        return None
    if found["negated"] and not actual:
        actual = plain  # what must not be is what came
    return words, LABELS.sub("", actual, count=1) if LABELS.match(actual) else actual


def _of_diff(lines: Sequence[str], sign: str) -> tuple[str, str]:
    """Both sides of the diff below its heading, without the signs."""
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
    return _join_lines(sides[0]), _join_lines(sides[1])


def _labelled_values(lines: Sequence[str]) -> tuple[str, str]:
    found = {"expected": "", "actual": ""}
    for index, line in enumerate(lines):
        if match := UNTHROWN.fullmatch(line.strip()):
            found["actual"] = found["actual"] or match["value"]
        for side, pattern in (("expected", EXPECTED), ("actual", ACTUAL)):
            match = pattern.fullmatch(line.strip())
            if match and not found[side]:
                what = re.sub(r"\A(?:value|message)\b ?", "", match["what"].strip())
                if "regex" in match[0].lower():
                    what = REGEX
                found[side] = f"{what} {_multiline_value(match['value'] or '', lines[index + 1 :])}".strip()
    return found["expected"].rstrip(","), found["actual"].rstrip(",")


def _multiline_value(first: str, following: Iterable[str]) -> str:
    """A value that begins after its label and continues until a blank line or the next label."""
    shown = [first] if first else []
    for line in following:
        plain = line.strip()
        if not plain or first or EXPECTED.fullmatch(plain) or ACTUAL.fullmatch(plain):
            break
        shown.append(line)
    return _join_lines(shown)


def _join_lines(lines: Iterable[str]) -> str:
    return textwrap.dedent("\n".join(lines)).strip("\n")

"""Test output as a prompt may hold it: the same run gives the same text, wherever and whenever it runs.

Gone or replaced: terminal escapes, absolute paths, temporary folders, durations, clock times at the start of a
line, addresses, UUIDs, passing port numbers, pytest's header and caret lines (they differ between Python versions).
"""

import re
from collections.abc import Sequence
from pathlib import Path

MOST_LINES = 1000
"""Lines at the beginning of an output, and at its end, that are looked at: normalising a megabyte takes a quarter of a second."""
ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # OSC, DCS and other strings
    r"|\x1b[ -/]*[0-~]"  # two-byte escapes
    r"|\x9b[0-?]*[ -/]*[@-~]",
    re.MULTILINE,
)
HAZARDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
HEADER = re.compile(
    r"(?:=+ test session starts =+"
    r"|platform \S+ -- Python .*"
    r"|(?:cachedir|rootdir|configfile|plugins|testpaths|inifile|hypothesis profile|asyncio): .*"
    r"|hypothesis profile .*"
    r"|Using --randomly-seed=.*|Random(?:ized with)? seed:? \S+"
    r"|timeout: .*s|timeout method: .*|timeout func_only: .*"
    r"|created: \d+/\d+ workers?.*|\d+ workers \[\d+ items?\].*|bringing up nodes\.\.\.|scheduling tests via .*"
    r"|-+ generated xml file: .* -+)"
)
CARETS = re.compile(r"(?:E {3})?[ \t]{4,}[~^]*\^[~^ ]*")
DURATION = r" in \d+(?:\.\d+)?(?:s| seconds)(?: \(\d+:\d\d:\d\d\))?"
CODE_HOME = re.compile(r"(?<![^\s\"'(=<>:,])[^\s\"'(=<>:,]*/lib/python3\.\d+/(?:(site|dist)-packages/)?")
REPLACEMENTS: tuple[tuple[re.Pattern[str], str], ...] = (
    # From the beginning of a word alone: begun at each slash, a long word would take the square of its length.
    (
        re.compile(r"(?<![^\s\"':])([^\s\"':/]*)(?:/[^\s\"':]*)?/pytest-of-[^/\s]+/pytest-(?:\d+|current)"),
        r"\1<tmp>",
    ),
    (re.compile(r"(?:/private)?/(?:var/)?tmp/(?:tmp[a-z0-9_]{8}|[\w.]+-[A-Za-z0-9]{6})\b"), "<tmp>"),
    (re.compile(r"/(?:private/)?var/folders/[^/\s]+/[^/\s]+/T\b"), "<tmp>"),
    (re.compile(r"\bat 0x[0-9a-fA-F]+"), "at 0x…"),
    (re.compile(r"\b0x[0-9a-fA-F]{9,}"), "0x…"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<uuid>"),
    (re.compile(r"\b(id=|pid[= ]|process )\d{3,}\b", re.IGNORECASE), r"\1<id>"),
    (re.compile(r"(127\.0\.0\.1|localhost|\[::1\]):(?:3[2-9]\d{3}|[45]\d{4}|6[0-5]\d{3})\b"), r"\1:<port>"),
    (
        re.compile(r"^\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?", re.MULTILINE),
        "<time>",
    ),
    (
        re.compile(rf"^=+ (.*?){DURATION} =+$", re.MULTILINE),
        r"=== \1 ===",
    ),  # centred, so its marks tell the duration
    (re.compile(rf"{DURATION}(?=[ =.\n]|$)"), ""),
    (re.compile(r" \(\d+(?:\.\d+)? ?(?:ms|s|m)\)"), ""),
    (re.compile(r"^\d+(?:\.\d+)?s (call|setup|teardown) ", re.MULTILINE), r"\1 "),
    (re.compile(r"^([ \t]*(?:# |ℹ )?duration_ms:?) [\d.]+$", re.MULTILINE), r"\1"),  # noqa: RUF001 - node prints it
    (re.compile(r"^((?:Time:|   Start at|   Duration) ).*$", re.MULTILINE), r"\1"),
    (re.compile(r"^([ \t]+[✓×❯↓✔✖].*?) \d+(?:\.\d+)? ?m?s$", re.MULTILINE), r"\1"),  # noqa: RUF001 - vitest's mark
    (re.compile(r"^\[gw\d+\] (?:\[ *\d+%\] )?", re.MULTILINE), ""),
)


def strip_escapes(text: str) -> str:
    r"""`text` without terminal escapes; other characters that a terminal or an eye mistakes show as `\xNN`."""
    plain = ESCAPES.sub("", text.replace("\r\n", "\n"))
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))
    return HAZARDS.sub(_visible, "\n".join(lines))


def normalise(text: str, roots: Sequence[Path]) -> str:
    """`text` without what differs between two runs of the same code; paths below `roots` become relative."""
    kept = [
        line
        for line in strip_escapes(text).split("\n")
        if not HEADER.fullmatch(line.strip()) and not CARETS.fullmatch(line)
    ]
    plain = relative_paths("\n".join(kept), roots)
    plain = CODE_HOME.sub(lambda match: "site-packages/" if match[1] else "python/", plain)
    for pattern, replacement in REPLACEMENTS:
        plain = pattern.sub(replacement, plain)
    return plain


def first_and_last_lines(text: str) -> str:
    """A very long text's first and last lines, the cut marked; any other text as it is.

    Lines are counted, and not characters: two runs of the same code print as many.
    """
    lines = text.split("\n")
    if len(lines) <= 2 * MOST_LINES:
        return text
    left_out = len(lines) - 2 * MOST_LINES
    return "\n".join([*lines[:MOST_LINES], f"[... {left_out} lines left out ...]", *lines[-MOST_LINES:]])


def normalise_name(name: str, roots: Sequence[Path]) -> str:
    """A test's name without roots and addresses, so that it is the same test in the next run."""
    plain = relative_paths(strip_escapes(name), roots)
    return re.sub(r"(\bat |\b)0x[0-9a-fA-F]{9,}", r"\g<1>0x…", plain)


def relative_paths(text: str, roots: Sequence[Path]) -> str:
    """`text` with the paths below `roots`, however they are spelt, relative to the root; a root itself is `.`."""
    spellings = {str(root) for root in roots} | {str(root.resolve()) for root in roots}
    for root in sorted(spellings - {"/"}, key=lambda spelling: (-len(spelling), spelling)):
        text = re.sub(rf"(?:file://)?{re.escape(root)}(/|(?![\w.-]))", _below, text)
    return text


def _below(match: re.Match[str]) -> str:
    return "" if match[1] else "."


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"

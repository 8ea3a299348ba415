"""Describes refused edits to a model, with enough detail to do better, such as the text most similar to one that was
not found, and says that none of the edits was applied.
"""

import difflib
import re
import unicodedata
from collections import Counter
from itertools import zip_longest

from msgspec import Struct

from clean_room_agent.artifacts.edits import EditCode, EditReport, PatchResult

MAX_LINES_NAMED = 10
QUOTE_MARK = "| "
"""The prefix of each quoted line, so that quoted text cannot be taken for a tag or an instruction."""
ADVICE: dict[EditCode, str] = {
    EditCode.NO_MATCH: "The search text does not stand in the file. Copy it from the file, character for character.",
    EditCode.AMBIGUOUS: "The search text stands more than once. Add the lines around it until it stands once.",
    EditCode.WRONG_FILE: "This step may not do that to this file.",
    EditCode.ELISION: "Write all lines out. Never leave lines out with ... or a comment.",
    EditCode.OVERLAP: "Two edits change the same lines. Join them into one edit.",
    EditCode.TRUNCATED: "The edit is not complete. Close every tag.",
    EditCode.NO_CHANGE: "Search and replacement say the same. Leave this edit out or change something.",
    EditCode.SYNTAX: "After the edits the file has a syntax error.",
    EditCode.UNDEFINED: "After the edits the file uses a name that does not exist.",
    EditCode.NO_DEFINITION: "The code is not the definition that the edit names.",
    EditCode.PROTECTED: "This file must stay as it is. Solve the step in other files.",
}
ADVICE_ON_SYMBOLS: dict[EditCode, str] = {
    EditCode.NO_MATCH: "There is no such place. Name a function, method or class of the file as it is shown.",
    EditCode.AMBIGUOUS: "The name matches more than one definition.",
    EditCode.NO_CHANGE: "The new code is what stands there. Leave this edit out or change something.",
}
"""Advice for edits that name a symbol instead of a search text."""
MAX_LINES = 30
MAX_FILE_LINES = 20_000
MAX_COMPARED_WORDS = 600
MAX_CLOSE_LINES = 2_000
CANDIDATES = 5
MIN_RATIO = 0.4
WORD = re.compile(r"\w+|[^\w\s]")
ALIKE = (frozenset("'\"`"), frozenset("1lI|"), frozenset("0O"))
"""Characters of ASCII that are easily taken for each other."""


def describe(result: PatchResult) -> str:
    """A few lines for each refused edit, then one for the others, then that nothing was applied; "" on success."""
    if result.success:
        return ""
    lines = []
    for report in result.reports:
        if not report.code.accepted:
            lines += _refusal_lines(report)
    accepted = [str(report.index + 1) for report in result.reports if report.code.accepted]
    if accepted:
        lines.append(f"Without fault: edit {', '.join(accepted)}.")
    lines.append("Nothing was applied: the files are as shown. Give all edits again.")
    return "\n".join(lines)


def _refusal_lines(report: EditReport) -> list[str]:
    by_symbol = report.kind in {"symbol", "insert"}
    advice = ADVICE | ADVICE_ON_SYMBOLS if by_symbol else ADVICE
    lines = [f"Edit {report.index + 1} ({report.file_path}): {report.code.value}. {advice[report.code]}"]
    if report.matches > 1:
        named = ", ".join(str(line) for line in report.lines[:MAX_LINES_NAMED])
        more = ", ..." if len(report.lines) > MAX_LINES_NAMED else ""
        lines.append(f"It matched {report.matches} times, at lines {named}{more}.")
    if report.detail:
        lines.append(f"Detail: {report.detail}")
    if report.nearest:
        lines.append("The nearest text that really stands there:")
        lines += [QUOTE_MARK + line for line in report.nearest.split("\n")]
    return lines


class Nearest(Struct, frozen=True, kw_only=True):
    """A run of real lines."""

    line: int
    """1-based, of the first line."""
    text: str
    """Verbatim, at most 30 lines."""
    differing_line: int
    """1-based line of the file where the two first differ; 0 if they differ only in white space."""
    expected: str
    """What the search text has there."""


def nearest(text: str, search: str) -> Nearest | None:
    """The lines most similar to `search`; None if nothing is similar.

    The work is bounded: windows are chosen by the lines that they share with `search`, and only the best few are
    compared word by word.
    """
    lines = text.split("\n")[:MAX_FILE_LINES]
    wanted = search.strip("\n").split("\n")[:MAX_LINES]
    size = min(len(wanted), len(lines))
    best, best_ratio = -1, MIN_RATIO
    words = _compared_words(wanted)
    for start in _candidate_starts(lines, wanted, size):
        ratio = difflib.SequenceMatcher(
            a=_compared_words(lines[start : start + size]), b=words, autojunk=False
        ).ratio()
        if ratio > best_ratio:
            best, best_ratio = start, ratio
    if best < 0:
        return None
    window_lines = lines[best : best + size]
    differing = next(
        (
            index
            for index in range(len(wanted))
            if index >= size or wanted[index].rstrip() != window_lines[index].rstrip()
        ),
        None,
    )
    return Nearest(
        line=best + 1,
        text="\n".join(window_lines),
        differing_line=0 if differing is None else best + 1 + min(differing, size - 1),
        expected="" if differing is None else wanted[differing],
    )


def unseen_difference(near: Nearest) -> str:
    """By their names, the characters at which the two lines first differ, if they may look like each other: as white space and what
    is not of ASCII may; else "".
    """
    real = near.text.split("\n")[near.differing_line - near.line].strip()
    wanted = near.expected.strip()
    for has, seeks in zip_longest(real, wanted, fillvalue=""):
        if has != seeks:
            plain = (has + seeks).isascii() and not (has.isspace() or seeks.isspace())
            if plain and not any(alike >= {has, seeks} for alike in ALIKE):
                return ""
            return (
                f": there, the file has {_character_name(has)}, and the search text {_character_name(seeks)}"
            )
    return ""


def _character_name(character: str) -> str:
    if not character:
        return "the line's end"
    return (
        f"U+{ord(character):04X} ({unicodedata.name(character, 'TAB' if character == chr(9) else 'no name')})"
    )


def _candidate_starts(lines: list[str], wanted: list[str], size: int) -> list[int]:
    """Starts of the windows that share most lines with `wanted`, best first, then the earliest."""
    bare = [line.strip() for line in lines]
    weights = Counter({line.strip(): 1 for line in wanted if line.strip()})
    shared = [weights[line] for line in bare]
    if not any(shared):
        return _by_close_line(bare, wanted, size)
    score = sum(shared[:size])
    scores = [score]
    for start in range(1, len(lines) - size + 1):
        score += shared[start + size - 1] - shared[start - 1]
        scores.append(score)
    aligned = [bare[start] == wanted[0].strip() for start in range(len(scores))]
    order = sorted(range(len(scores)), key=lambda start: (-scores[start], -aligned[start], start))
    return order[:CANDIDATES]


def _compared_words(lines: list[str]) -> list[str]:
    return WORD.findall("\n".join(lines))[:MAX_COMPARED_WORDS]


def _by_close_line(bare: list[str], wanted: list[str], size: int) -> list[int]:
    """If no line is shared, windows around the lines most similar to the longest wanted line."""
    anchor = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    places: dict[str, int] = {}
    for number, line in enumerate(bare):
        places.setdefault(line[:200], number)
    close = difflib.get_close_matches(
        wanted[anchor].strip()[:200], sorted(places, key=places.__getitem__)[:MAX_CLOSE_LINES], n=CANDIDATES
    )
    last = max(len(bare) - size, 0)
    return [min(max(places[line] - anchor, 0), last) for line in close]

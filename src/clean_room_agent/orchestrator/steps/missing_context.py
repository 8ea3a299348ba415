"""Finds what an attempt's context lacks: what the step names but it could not show, and what a failure shows to be
missing.
"""

import re
from collections.abc import Collection, Mapping, Sequence

from clean_room_agent.artifacts.context import ContextPackage, DroppedItem, RefinementRequest
from clean_room_agent.artifacts.edits import EditCode, EditReport
from clean_room_agent.artifacts.evidence import Evidence
from clean_room_agent.artifacts.plans import PlanStep
from clean_room_agent.languages.test_names import SEPARATOR, files_meant, is_in, unnumbered
from clean_room_agent.paths import is_test_path

UNKNOWN_NAME = (
    re.compile(r"NameError: name '([A-Za-z_]\w*)' is not defined"),
    re.compile(r"ImportError: cannot import name '([A-Za-z_]\w*)'"),
    re.compile(r"AttributeError: .*has no attribute '([A-Za-z_]\w*)'"),
    re.compile(r"ReferenceError: ([A-Za-z_$][\w$]*) is not defined"),
    re.compile(r"TypeError: [\w$.]*?([A-Za-z_$][\w$]*) is not a function"),
)
MISUSED = re.compile(
    r"TypeError: (?:[\w.]+\.<locals>\.)*([A-Za-z_][\w.]*)\(\) "
    r"(?:got an unexpected keyword argument|got multiple values for argument|missing |takes )"
)
"""Errors for calls that a signature does not allow. The function is missing unless the context shows it as code to
change, since either the call or the signature is wrong. Functions of a test itself are shown well enough.
"""
PATH_LIKE = re.compile(r"[\w@.-]*(?:/[\w@.-]+)+|\b[\w-]+\.[A-Za-z]{1,5}\b")
UNSEEN = frozenset({EditCode.WRONG_FILE, EditCode.NO_MATCH})
PIECE = re.compile(r"(?P<symbol>.*?)(?: \((?:head|lines (?P<first>\d+)-(?P<last>\d+))\))?", re.DOTALL)
"""How a context names a piece: a symbol, its header, or some of its lines if it is divided."""
MAX_NAMED = 8
"""Files, symbols or tests in one request, in order of appearance; more would be a new context, not a refinement."""


def unshown_targets(step: PlanStep, package: ContextPackage) -> tuple[str, ...]:
    """The files and symbols that the step names and the context had to leave out, in its order.

    A symbol is `path::symbol`; if only some of its lines are left out, `path::symbol (lines 4-90)`.
    """
    shown = {(item.path, item.symbol) for item in package.primary()}
    paths = {path for path, _ in shown}
    found: dict[str, list[tuple[int, int]]] = {}
    for item in package.dropped:
        if item.detail != "primary" or (item.path, item.symbol) in shown or not _is_target(item, step):
            continue
        if item.symbol is not None:
            symbol, lines = _symbol_and_lines(item.symbol)
            found.setdefault(f"{item.path}::{symbol}", []).extend(lines)
        elif item.path not in paths:
            found.setdefault(item.path, [])
    return tuple(name + _as_suffix(lines) for name, lines in found.items())


def missing_after_refusal(
    reports: Sequence[EditReport], package: ContextPackage, known: Collection[str]
) -> RefinementRequest | None:
    """What the refused edits refer to that exists in the tree but was not shown whole; None if nothing."""
    whole = {item.path for item in package.primary() if item.symbol is None}
    files = [
        report.file_path
        for report in reports
        if report.code in UNSEEN and report.file_path in known and report.file_path not in whole
    ]
    if not files:
        return None
    codes = tuple(f"{report.code}: {report.file_path}" for report in reports if not report.code.accepted)
    return RefinementRequest(
        reason="an edit named a file that the context did not show whole",
        missing_files=_first_few(files),
        error_signatures=codes[:MAX_NAMED],
    )


def missing_after_tests(
    evidence: Evidence,
    package: ContextPackage,
    known: Collection[str],
    *,
    newly_failing: Collection[str] = (),
) -> RefinementRequest | None:
    """What the failing tests name that exists in the tree but was not in the context; None if nothing.

    For a newly failing test its own code is requested, for one that failed before its file.
    """
    shown = {item.path for item in package.items}
    frames = [frame.path for frame in evidence.frames if frame.path in known and frame.path not in shown]
    tests = [
        name for name in newly_failing if _test_file(name, known) and not _shows_test(package, name, known)
    ]
    tests += [
        name
        for name in evidence.failing_tests
        if (file := next((path for path in files_meant(name) if path in known), "")) and file not in shown
    ]
    text = "\n".join(evidence.messages)
    named = [path.removeprefix("./") for path in PATH_LIKE.findall(text)]
    frames += [path for path in named if path in known and path not in shown]
    names = [name for pattern in UNKNOWN_NAME for name in pattern.findall(text)]
    called = [name.removesuffix(".__init__") for name in MISUSED.findall(text)]
    names += [name for name in called if not _may_change(package, name)]
    if not (frames or tests or names):
        return None
    return RefinementRequest(
        reason="the failing tests name what the context did not show",
        missing_files=_first_few(frames),
        missing_symbols=_first_few(names),
        missing_tests=_first_few(tests),
        error_signatures=evidence.messages[:MAX_NAMED],
    )


def not_shown_whole(
    step: PlanStep, package: ContextPackage, sizes: Mapping[str, int]
) -> RefinementRequest | None:
    """The files that the step modifies, and that the newest attempt's context shows only in part although it has space for
    all; None if there are none. `sizes` are the tokens of each file that can be shown.
    """
    whole = {item.path for item in package.primary() if item.symbol is None}
    left = package.budget.context_window - package.budget.reserved_tokens - package.budget.used_tokens
    files = []
    for path in dict.fromkeys(target.path for target in step.target_files if target.role == "modify"):
        shown = sum(item.tokens for item in package.primary() if item.path == path)
        if path not in whole and path in sizes and sizes[path] - shown <= left:
            left -= sizes[path] - shown
            files.append(path)
    if not files:
        return None
    return RefinementRequest(
        reason="the step's files were shown in part, and what fails stays the same",
        whole_files=_first_few(files),
    )


def is_new(request: RefinementRequest, earlier: Sequence[RefinementRequest]) -> bool:
    """Whether `request` names anything that no earlier request of the step named."""
    named = {name for asked in earlier for name in _names_in(asked)}
    return any(name not in named for name in _names_in(request))


def _names_in(request: RefinementRequest) -> tuple[str, ...]:
    return (
        *request.missing_files,
        *request.missing_symbols,
        *request.missing_tests,
        *(f"{path}, whole" for path in request.whole_files),
    )


def _function_of(test: str) -> str:
    """The last part of a test's name, without parameters and numbers."""
    if SEPARATOR in test:
        return unnumbered(test).rpartition(SEPARATOR)[2]
    return test.partition("[")[0].rpartition("::" if "::" in test else ".")[2]


def _test_file(test: str, known: Collection[str]) -> str:
    """The file of the tree that contains the test, as far as its name shows; else ""."""
    meant = next((path for path in files_meant(test) if path in known), "")
    return meant or next((path for path in sorted(known) if is_test_path(path) and is_in(test, (path,))), "")


def _shows_test(package: ContextPackage, test: str, known: Collection[str]) -> bool:
    """Whether the context shows the test's code, not just its name."""
    path, function = _test_file(test, known), _function_of(test)
    word = re.compile(rf"(?<!\w){re.escape(function)}(?!\w)")
    return any(
        (item.detail == "primary" or item.section == "tests") and item.path == path and word.search(item.text)
        for item in package.items
    )


def _may_change(package: ContextPackage, name: str) -> bool:
    """Whether the symbol, or code that defines one of its name, is in code to change or in a test."""
    last = name.rpartition(".")[2]
    defined = re.compile(rf"(?:\bdef|\bclass|\bfunction)\s+{re.escape(last)}\b")
    return any(
        (item.symbol or "").rpartition(".")[2] == last or defined.search(item.text)
        for item in package.items
        if item.detail == "primary" or item.section == "tests"
    )


def _first_few(names: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))[:MAX_NAMED]


def _is_target(item: DroppedItem, step: PlanStep) -> bool:
    if item.path not in {target.path for target in step.target_files}:
        return False
    return item.symbol is None or any(
        _is_same(_symbol_and_lines(item.symbol)[0], name) for name in step.target_symbols
    )


def _is_same(symbol: str, name: str) -> bool:
    """Whether a plan's `name`, which may leave out the class, refers to the symbol."""
    return symbol == name or symbol.endswith(f".{name}")


def _symbol_and_lines(piece: str) -> tuple[str, list[tuple[int, int]]]:
    """The symbol, and its lines if the piece is only some of them."""
    match = PIECE.fullmatch(piece)
    assert match is not None, "the pattern fits every text"
    lines = [(int(match["first"]), int(match["last"]))] if match["first"] else []
    return match["symbol"], lines


def _as_suffix(lines: list[tuple[int, int]]) -> str:
    """The lines, neighbours joined; "" for none."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(lines):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return f" (lines {', '.join(f'{first}-{last}' for first, last in joined)})" if joined else ""

"""What a model is told of edits that were refused: enough to do better, and that none of them was applied."""

from clean_room_agent.artifacts.edits import EditCode, EditReport, PatchResult

MAX_LINES_NAMED = 10
QUOTE_MARK = "| "
"""Begins each quoted line, so that what is quoted cannot pass for a tag or an instruction."""

ADVICE: dict[EditCode, str] = {
    EditCode.NO_MATCH: "The search text does not stand in the file. Copy it from the file, character for character.",
    EditCode.AMBIGUOUS: "The search text stands more than once. Add the lines around it until it stands once.",
    EditCode.WRONG_FILE: "This step may not do that to this file.",
    EditCode.ELISION: "Write all lines out. Never leave lines out with ... or a comment.",
    EditCode.OVERLAP: "Two edits change the same lines. Join them into one edit.",
    EditCode.TRUNCATED: "The edit is not complete. Close every tag.",
    EditCode.NO_CHANGE: "Search and replacement say the same. Leave this edit out or change something.",
    EditCode.SYNTAX: "After the edits the file has a syntax error.",
    EditCode.PROTECTED: "This file must stay as it is. Solve the step in other files.",
}


ADVICE_ON_SYMBOLS: dict[EditCode, str] = {
    EditCode.NO_MATCH: "There is no such place. Name a function, method or class of the file as it is shown.",
    EditCode.AMBIGUOUS: "The name stands for more than one definition.",
    EditCode.NO_CHANGE: "The new code is what stands there. Leave this edit out or change something.",
}
"""Where an edit names a symbol in place of a search text."""


def describe(result: PatchResult) -> str:
    """A few lines for each refused edit, then one for the others, then that nothing was applied; "" on success."""
    if result.success:
        return ""
    lines = []
    for report in result.reports:
        if not report.code.accepted:
            lines += _refusal(report)
    accepted = [str(report.index + 1) for report in result.reports if report.code.accepted]
    if accepted:
        lines.append(f"Without fault: edit {', '.join(accepted)}.")
    lines.append("Nothing was applied: the files are as shown. Give all edits again.")
    return "\n".join(lines)


def _refusal(report: EditReport) -> list[str]:
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

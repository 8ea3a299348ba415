"""The examples in a definition's documentation, as claims of what its calls give."""

import doctest
import re

from clean_room_agent.execute.goals.expressions import PythonExpressions, ScriptExpressions
from clean_room_agent.execute.goals.report import Claim, StatedValue
from clean_room_agent.execute.goals.report_tokens import needed_setup

MAX_EXAMPLES = 20
PYTHON, SCRIPT = PythonExpressions(), ScriptExpressions()
SCRIPT_LINE = re.compile(
    r"(?P<code>[^\s/*`][^`]*?)?;?\s*//\s*(?:[-=]+>|→|[Rr]eturns?:?|logs?:?)?\s*(?P<value>\S.*)"
)
"""A line of an example with what it gives in a comment, or that comment below it."""
LOGGED = re.compile(r"console\.log\((.*)\)", re.DOTALL)


def documented_claims(doc: str) -> tuple[Claim, ...]:
    """One claim for each example of the documentation whose expected output is a plain value or an exception.

    What is abbreviated (`...`), depends on options of doctest, or is no value of its own is left out.
    """
    try:
        examples = doctest.DocTestParser().get_examples(doc)
    except ValueError:
        return ()
    claims = []
    setup: list[str] = []
    for example in examples[:MAX_EXAMPLES]:
        source, want = example.source.strip(), example.want.strip()
        free = PYTHON.free_names(source)
        if want and free is not None and PYTHON.has_call(source) and not example.options:
            needed = needed_setup(setup, free, PYTHON)
            value = None
            if example.exc_msg is not None:
                name = example.exc_msg.partition(":")[0].strip().rpartition(".")[2]
                value = StatedValue(text=name, kind="error", role="wanted")
            elif "..." not in want and PYTHON.is_value(want):
                value = StatedValue(text=want, role="wanted")
            if value is not None:
                claims.append(Claim(call=source, setup=needed, values=(value,)))
        setup.append(source)
    return tuple(claims)


def script_claims(doc: str) -> tuple[Claim, ...]:
    """One claim for each line of the documentation's `@example`s whose value stands in a comment behind it, or below."""
    claims: list[Claim] = []
    for example in re.split(r"^\s*@example\b", doc, flags=re.MULTILINE)[1:]:
        setup: list[str] = []
        for line in re.split(r"^\s*@\w", example, maxsplit=1, flags=re.MULTILINE)[0].splitlines():
            found = SCRIPT_LINE.fullmatch(line.strip())
            code = (found["code"] if found else line.strip().rstrip(";")) or ""
            if code:
                setup.append(logged[1] if (logged := LOGGED.fullmatch(code)) else code)
            if (
                found is None
                or not setup
                or not SCRIPT.has_call(setup[-1])
                or not SCRIPT.is_value(found["value"])
            ):
                continue
            free = SCRIPT.free_names(setup[-1]) or frozenset()
            value = StatedValue(text=found["value"], role="wanted")
            claims.append(
                Claim(call=setup[-1], setup=needed_setup(setup[:-1], free, SCRIPT), values=(value,))
            )
    return tuple(claims[:MAX_EXAMPLES])

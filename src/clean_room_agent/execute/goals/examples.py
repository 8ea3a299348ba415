"""The examples in a definition's documentation, as claims of what its calls give."""

import doctest

from clean_room_agent.execute.goals.expressions import PythonExpressions
from clean_room_agent.execute.goals.report import Claim, StatedValue
from clean_room_agent.execute.goals.report_tokens import needed_setup

MAX_EXAMPLES = 20
PYTHON = PythonExpressions()


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

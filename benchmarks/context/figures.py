"""The figures of a prompt and of a run."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from testing.oracle.oracle import options, piece_of

from benchmarks.context.blocks import Reading
from benchmarks.context.failures import Failure, failure_of
from benchmarks.context.goals import Goal
from benchmarks.context.needs import Needs
from benchmarks.context.snapshot import Symbol
from clean_room_agent.artifacts.model_calls import ModelCall
from clean_room_agent.llm.probes import ABOUT_NOTHING

MOST_GOALS = 8
"""Of the goal tests that a prompt should show where there are more: their words fill a window."""
NEAR = 40
"""Lines of a prompt, before and after a test's name, within which its words are looked for."""
WORD = re.compile(r"\w+")
FORMATTING = frozenset({"Array", "Object"})
"""What one printer of values writes and another does not."""
CUT = "…"
LONG_VALUE = 40
HEAD, TAIL = 12, 6
"""Words of a long value that must be there: it may be bounded in its middle."""
ADDRESS = re.compile(r"0x[0-9a-fA-F…]+")
NOT_SHOWN = "not shown"
PROBE = "window_probe"


class PromptFigures(Struct, frozen=True, kw_only=True):
    """What a prompt shows of what it should. Pairs are (how many, of how many)."""

    code_tokens: int
    needed_tokens: int
    changed: tuple[int, int]
    """Functions that the commit changes, whole."""
    sources: tuple[int, int]
    """Goal tests whose source is there."""
    failing_lines: tuple[int, int]
    words: tuple[int, int]
    """Goal tests of which what they say is there: expected and got, or the error."""
    unexplained: tuple[str, ...]
    """Names that the changed functions use and the prompt does not explain."""


class RunFigures(Struct, frozen=True, kw_only=True):
    """What a run asked. `repeated`: questions about an item beyond the first about it."""

    calls: Mapping[str, int]
    tokens: Mapping[str, int]
    repeated: int
    steps: int


def prompt_figures(reading: Reading, needs: Needs, failures: Mapping[str, Failure]) -> PromptFigures:
    """The figures of one prompt."""
    paths = {block.path for block in reading.blocks}
    functions = [place for place in needs.changed if place.name]
    located = [goal for goal in needs.goals if goal.spans]
    told = [(goal, failure_of(goal, failures)) for goal in needs.goals]
    lines = [
        (goal, numbers)
        for goal, said in told
        if (numbers := [one.line for one in said if one.line and one.id.startswith(goal.path)])
    ]
    worded = [(goal, said) for goal, said in told if any(one.error for one in said)]
    return PromptFigures(
        code_tokens=reading.tokens,
        needed_tokens=reading.tokens_of({path: needs.lines(path) for path in paths}),
        changed=(
            sum(is_whole(place.path, [(place.first, place.last)], reading, needs) for place in functions),
            len(functions),
        ),
        sources=_most(is_whole(goal.path, goal.spans[:1], reading, needs) for goal in located),
        failing_lines=_most(
            any(_line_of(goal, line, needs) in reading.text for line in numbers) for goal, numbers in lines
        ),
        words=_most(any(says(one, goal, reading) for one in said) for goal, said in worded),
        unexplained=tuple(key for key, symbol in needs.used.items() if not explained(symbol, reading)),
    )


def _most(shown: Iterable[bool]) -> tuple[int, int]:
    """How many are shown, of as many as a prompt should show."""
    found = list(shown)
    wanted = min(len(found), MOST_GOALS)
    return min(sum(found), wanted), wanted


def is_whole(path: str, spans: Sequence[tuple[int, int]], reading: Reading, needs: Needs) -> bool:
    """Whether all lines of the spans that say something are shown."""
    shown = reading.shown(path)
    lines = needs.snapshot.lines(path)
    return all(
        number in shown or not re.search(r"\w", lines[number - 1])
        for first, last in spans
        for number in range(first, last + 1)
    )


def explained(symbol: Symbol, reading: Reading) -> bool:
    """Whether the prompt shows how the definition begins, or says that it does not show it."""
    if symbol.head in reading.shown(symbol.path):
        return True
    name = re.compile(rf"(?<![\w$]){re.escape(symbol.name)}(?![\w$])")
    return any(
        name.search(line) and (symbol.path in line or NOT_SHOWN in line.lower()) for line in reading.other
    )


def _line_of(goal: Goal, line: int, needs: Needs) -> str:
    return needs.snapshot.lines(goal.path)[line - 1].strip()


def says(failure: Failure, goal: Goal, reading: Reading) -> bool:
    """Whether what the test said stands near its name, outside the code."""
    near = near_name(goal, reading)
    if visible(failure.error, near):
        return True
    return bool(failure.got) and visible(failure.got, near) and visible(failure.expected, near)


def near_name(goal: Goal, reading: Reading) -> str:
    """The prompt's lines around those that name the test or its file."""
    bare = goal.name.split("[")[0]
    places = [n for n, line in enumerate(reading.other) if bare in line or goal.path in line]
    chosen = sorted({n for place in places for n in range(max(0, place - NEAR), place + NEAR)})
    return "\n".join(reading.other[n] for n in chosen if n < len(reading.other))


def visible(value: str, text: str) -> bool:
    """Whether the value stands in the text, however its parts are spaced and quoted; a long one its head and its tail.

    Of a value that the runner itself has cut short, what stands before the cut.
    """
    whole = value.partition(CUT)[0]
    return any(_stands(form, text) for form in {whole, _literal(whole)} if form.strip())


def _literal(value: str) -> str:
    """What a string's literal means, which a prompt may show as it is."""
    try:
        read = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    return read if isinstance(read, str) else value


def _stands(value: str, text: str) -> bool:
    words = _words(value)
    if not words:
        return "".join(value.split()) in "".join(text.split())
    where = f" {' '.join(_words(text))} "
    pieces = [words] if len(words) <= LONG_VALUE else [words[:HEAD], words[-TAIL:]]
    return all(f" {' '.join(piece)} " in where for piece in pieces)


def _words(text: str) -> list[str]:
    return [word for word in WORD.findall(ADDRESS.sub("0x", text)) if word not in FORMATTING]


def run_figures(calls: Sequence[ModelCall]) -> RunFigures:
    """The figures of a run, by its calls."""
    items = Counter(item for call in calls for item in asked_about(call))
    return RunFigures(
        calls=dict(Counter(call.site.call_type for call in calls)),
        tokens=_summed((call.site.call_type, call.cost.prompt_tokens or 0) for call in calls),
        repeated=sum(count - 1 for count in items.values()),
        steps=len(
            {
                re.sub(r":(?:retry_\d+)$", "", call.site.pass_id)
                for call in calls
                if call.site.call_type == "implement"
            }
        ),
    )


def asked_about(call: ModelCall) -> tuple[str, ...]:
    """The files and pieces that a question is about; none where it judges none."""
    if call.site.call_type == PROBE or call.site.item == ABOUT_NOTHING:
        return ()
    if call.site.item:
        return (re.sub(r":\d+(?= ::|$)", "", call.site.item),)
    return tuple(" :: ".join(filter(None, piece_of(text))) for _, text in options(call.request.prompt))


def _summed(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, number in pairs:
        found[name] = found.get(name, 0) + number
    return found

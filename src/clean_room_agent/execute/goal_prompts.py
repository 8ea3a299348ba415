"""What prompts tell a model of the goal tests, and what it is asked about them.

It is told which functions ran, the likeliest to be wrong first, and what was observed of them:

- chunks.py:9 chunked_iter(src=range(0, 10), size=3, fill=0): cur_chunk = [9, 0], item = 9, lc = 1; yields [6, 7, 8], [9, 0]

It is asked what a call should give where the program cannot read that from the task's words.
"""

import ast
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from clean_room_agent.artifacts.context import fence_for, frame
from clean_room_agent.artifacts.goals import GoalTrace, ObservedCall, TracedFunction
from clean_room_agent.artifacts.names import UNQUOTED, quoted
from clean_room_agent.artifacts.prompt_sources import PromptSource, SourcedText, sourced
from clean_room_agent.execute.goals.expressions import balanced_end, python_tree
from clean_room_agent.llm.answers import ParseFault, TextAnswer
from clean_room_agent.llm.prompt import CONTEXT, SYSTEM, Prompt, template

WORD = re.compile(r"[^\W\d]\w*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
LEAST_PART = 3
"""Letters of a part of a name that says something."""
NAMED = 2.0
"""What a definition gains that the words name."""
PARTLY_NAMED = 1.0
"""What one gains all of whose parts are in the words."""
NO_NAME = re.compile(r"raises (?:NameError|UnboundLocalError|ReferenceError)\b")
MAX_LINE = 600
OBSERVED = "observed while the failing test ran"
ANSWER_TOKENS = 160
EQUALS = re.compile(r"\s(?:===?|is)\s+")
RAISES = re.compile(r"\A(?P<call>.+\))\s+(?:raises|throws)\s+(?P<error>[A-Za-z_][\w.]*)\Z", re.DOTALL)


def rank_places(trace: GoalTrace, words: str, gave: Sequence[str] = ()) -> tuple[TracedFunction, ...]:
    """The functions that ran, the likeliest first: that in which a name was not there, since such an error is its own; then by
    suspiciousness; of those alike, first what `words` (the task, the goal tests' calls) name, then what is nearer to the failure.
    What stands outside of definitions comes last. `gave`: what the goals gave, where a function's own calls were not observed, as
    of one of which only a lambda ran.
    """
    stated = frozenset(WORD.findall(words))
    parts = frozenset(part for word in stated for part in _name_parts(word))
    innermost = next((one for one in trace.functions if one.failed_at), None)
    said = [innermost.observed[-1].result] if innermost and innermost.observed else gave
    lacks_name = any(map(NO_NAME.match, said))

    def order(entry: tuple[int, TracedFunction]) -> tuple[bool, bool, float, float, int]:
        place, one = entry
        own = lacks_name and one is innermost
        return not one.name, not own, -one.suspicion, -_weight_by_words(one, stated, parts), place

    return tuple(one for _, one in sorted(enumerate(trace.functions), key=order))


def _weight_by_words(function: TracedFunction, stated: frozenset[str], parts: frozenset[str]) -> float:
    own = function.name.rpartition(".")[2]
    if own in stated:
        return 1 + NAMED
    known = _name_parts(function.name)
    return 1 + PARTLY_NAMED * len(known & parts) / len(known) if known else 1.0


def _name_parts(name: str) -> frozenset[str]:
    return frozenset(part.lower() for part in PART.findall(name) if len(part) >= LEAST_PART)


def observed_text(functions: Iterable[TracedFunction], *, bound: int) -> SourcedText:
    """What was observed of these functions, framed as code is: the newest call of each first, then calls before it, as far as
    about `bound` characters allow; "" if nothing was. Secrets were removed when it was recorded.
    """
    shown = tuple(functions)
    rounds = max((len(one.observed) for one in shown), default=0)
    kept: dict[tuple[int, int], str] = {}
    left = bound
    for back in range(1, rounds + 1):
        for place, one in enumerate(shown):
            if back > len(one.observed):
                continue
            line = observed_line(one, one.observed[-back], newest=back == 1)
            if line in kept.values() or len(line) + 1 > left:
                continue
            left -= len(line) + 1
            kept[place, -back] = line
    if not kept:
        return SourcedText("")
    text = sourced("\n".join(kept[key] for key in sorted(kept)), PromptSource.EVIDENCE)
    return frame(OBSERVED, text, fence_for((text,)))


def observed_line(function: TracedFunction, call: ObservedCall, *, newest: bool = True) -> str:
    """One call in one line: its arguments, its local variables at the end, and what it gave."""
    passed = ", ".join(f"{name}={value}" for name, value in call.arguments)
    held = ", ".join(f"{name} = {value}" for name, value in call.values)
    told = call.result.startswith(("yields ", "raises ")) or not call.result
    gave = call.result if told else f"returns {call.result}"
    if function.failed_at and newest and gave.startswith("raises "):
        gave += f" at line {function.failed_at}"
    place = f"{quoted(function.path)}:{function.first_line}"
    line = f"- {place} {function.name or 'top level'}({passed}): {'; '.join(filter(None, (held, gave)))}"
    plain = re.sub(UNQUOTED, lambda match: f"\\x{ord(match[0]):02x}", line)
    return plain if len(plain) <= MAX_LINE else f"{plain[:MAX_LINE]}..."


class GoalInputs(Struct, frozen=True, kw_only=True):
    """What is known of what the task is about."""

    task: str
    call: str = ""
    """A call in the task's words; "" where they have none."""
    gives: str = ""
    """What it gives now."""
    choices: tuple[str, ...] = ()
    """Values that the task names."""
    definitions: tuple[str, ...] = ()
    """What the task is about, a line each; only where it has no calls."""


class Expectation(Struct, frozen=True, kw_only=True):
    """A call with what it should give."""

    call: str
    value: str
    """As source text, or the name of an exception."""
    raises: bool = False


def read_expectation(text: str) -> Expectation | ParseFault:
    """The first line of the answer that has the form which is asked for."""
    for line in text.replace("```", "\n").splitlines():
        found = _parse_expectation(line.strip("`; \t"))
        if found is not None:
            return found
    return ParseFault(kind="format", fault="write one line: CALL == VALUE")


def _parse_expectation(line: str) -> Expectation | None:
    line = line.removeprefix("assert ").strip()
    raised = RAISES.match(line)
    if raised is not None:
        return Expectation(call=raised["call"], value=raised["error"], raises=True)
    for found in EQUALS.finditer(line):
        call, value = line[: found.start()].strip(), line[found.end() :].split("  #")[0].strip()
        if balanced_end(f"({call})", 0) == len(call) + 2:  # else it stands in a string, or in brackets
            return Expectation(call=call, value=value) if call.endswith((")", "]")) and value else None
    return None


def stands_in(value: str, words: str) -> bool:
    """Whether all that the Python literal is made of stands in the words."""
    tree = python_tree(value)
    if tree is None:
        return value in words
    plain = re.sub(r"\s+", " ", words)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value not in {True, False, None, ""}:
            shown = node.value if isinstance(node.value, str) else repr(node.value)
            pattern = rf"(?<![\w.]){re.escape(str(shown))}(?!\w|\.\d)"
            if re.search(pattern, plain) is None and not (
                isinstance(node.value, str) and node.value.strip() and node.value in plain
            ):
                return False
    return True


GOAL_TEST: Prompt[GoalInputs, Expectation] = Prompt(
    name="goal_test",
    role="coding",
    title="Say what a call should give",
    system=SYSTEM,
    template=CONTEXT + template(__file__, "goal_test"),
    answer=TextAnswer(read_expectation),
    max_answer_tokens=ANSWER_TOKENS,
    example="weigh_quokka(3) == 12",
)

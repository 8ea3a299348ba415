"""Asks a model what a call should give, where the program cannot read it from the task's words."""

import ast
import re

from msgspec import Struct

from clean_room_agent.execute.goals.expressions import balanced_end, python_tree
from clean_room_agent.llm.answers import BadAnswer, TextAnswer
from clean_room_agent.llm.prompt import CONTEXT, SYSTEM, Prompt, template

ANSWER_TOKENS = 160
EQUALS = re.compile(r"\s(?:===?|is)\s+")
RAISES = re.compile(r"\A(?P<call>.+\))\s+(?:raises|throws)\s+(?P<error>[A-Za-z_][\w.]*)\Z", re.DOTALL)


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


def read_expectation(text: str) -> Expectation | BadAnswer:
    """The first line of the answer that has the form which is asked for."""
    for line in text.replace("```", "\n").splitlines():
        found = _expectation(line.strip("`; \t"))
        if found is not None:
            return found
    return BadAnswer(kind="format", fault="write one line: CALL == VALUE")


def _expectation(line: str) -> Expectation | None:
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

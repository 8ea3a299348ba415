"""Escapes in what models, servers and tests say are shown, and never steer the user's terminal."""

import json
from collections.abc import Sequence

import pytest
from testing.runs.solving import Project, Spoil, edit
from testing.servers.ollama_script import Answer, ChatCall

from clean_room_agent.execute.implement import IMPLEMENT
from clean_room_agent.execute.plan_prompts import PART_PLAN

ESCAPE = "\x1b]0;evil\x07\x1b[2J"
SHOWN = "\\x1b]0;evil\\x07\\x1b[2J"


def name_a_wrong_path(_: ChatCall, right: str) -> str:
    plan = json.loads(right)
    target = {"path": f"till/{ESCAPE}.py", "role": "modify"}
    return json.dumps({**plan, "steps": [{**plan["steps"][0], "files": [target]}]})


SAID: dict[str, tuple[dict[str, Sequence[Answer | str | Spoil | None]], int]] = {
    "an edit's path and an error of the server": (
        {IMPLEMENT.title: [edit("a", "b", path=f"{ESCAPE}x.py"), Answer(status=500, error=f"no {ESCAPE}")]},
        3,
    ),
    "a plan's path": ({PART_PLAN.title: [name_a_wrong_path] * 2}, 1),
}
"""What a run says, and its exit code."""


@pytest.mark.parametrize("name", sorted(SAID))
def test_an_escape_is_shown_as_text_and_recorded_as_it_came(till: Project, name: str) -> None:
    spoiled, code = SAID[name]
    told = till.solve_scripted(spoiled, orchestrator={"plan_fallback": False})
    assert (told.code, told.traces) == (code, {}), told.err
    assert {character for character in told.out + told.err if character < " "} <= {"\n", "\t"}
    shown = [line for line in told.err.replace("\\\\", "\\").splitlines() if SHOWN in line]
    assert len(shown) == (2 if "and" in name else 1), told.err
    assert ESCAPE in told.recorded.ending[1] or SHOWN in told.recorded.ending[1]
    held = [f"{call.answer.response}{call.ending.error}" for call in told.recorded.calls]
    with_escape = [text for text in held if ESCAPE in text or json.dumps(ESCAPE)[1:-1] in text]
    assert len(with_escape) == sum(map(len, spoiled.values()))

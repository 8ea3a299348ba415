"""Answers of models for projects in memory, in the forms that prompts ask for."""

import json
from collections.abc import Mapping, Sequence

from clean_room_agent.artifacts.edits import StepResult
from clean_room_agent.execute.implement import Implemented


def replacing(path: str, old: str, new: str) -> str:
    """One edit in the format that models write."""
    return (
        f'<edit file="{path}">\n<search>\n{old}\n</search>\n<replacement>\n{new}\n</replacement>\n</edit>\n'
    )


def parts_answer(*parts: tuple[str, Sequence[str]]) -> str:
    """A plan of parts, each with its files."""
    listed = [
        {"description": f"Change {' and '.join(files)}.", "files": list(files), "id": name, "needs": []}
        for name, files in parts
    ]
    return json.dumps({"analysis": "x", "parts": listed, "summary": "Keep every cent."})


def steps_answer(*paths: str, needs: Mapping[str, Sequence[str]] | None = None) -> str:
    """A plan with a step for each file, named s1, s2, ..."""
    steps = [
        {
            "description": f"Set {path}.",
            "files": [{"path": path, "role": "modify"}],
            "id": f"s{number}",
            "needs": list((needs or {}).get(path, ())),
            "symbols": [],
        }
        for number, path in enumerate(paths, 1)
    ]
    return json.dumps({"analysis": "x", "steps": steps, "summary": "x"})


def implemented(text: str = "x", *, endless: bool = False) -> Implemented:
    """What the coder answered, without edits."""
    return Implemented(
        step=StepResult(raw_response=text),
        bad=None,
        dropped=(),
        call_id=1,
        prompt_tokens=1,
        completion_tokens=1,
        latency_ms=1,
        endless=endless,
    )

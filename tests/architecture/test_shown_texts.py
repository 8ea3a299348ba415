"""Who writes to the terminal: `output`, through the redactor, and few others with texts that they make safe themselves."""

import ast
from pathlib import Path

from tests.architecture.syntax_trees import nodes

SOURCE = Path(__file__).parents[2] / "src/clean_room_agent"
WRITERS = frozenset({"echo", "secho", "echo_via_pager", "print"})
OWN = {
    "output.py": "the way that all others go",
    "check.py": "each text is made safe",
    "main.py": "errors are made safe, and the note on what was redacted",
    "safe_console.py": "what the safe console made of it",
    "completion.py": "the program's own script",
    "start.py": "the version",
}


def test_only_these_modules_write_past_the_redactor() -> None:
    layers = (SOURCE / "cli", SOURCE / "app")
    found = {path.name for layer in layers for path in sorted(layer.rglob("*.py")) if _writes(path)}
    assert found == set(OWN)


def _writes(path: Path) -> bool:
    for node in nodes(path):
        match node:
            case ast.Call(func=ast.Name(id="print")):
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id="click"), attr=name)) if name in WRITERS:
                return True
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id="sys"), attr="stdout" | "stderr"), attr="write"
            ):
                return True
            case _:
                pass
    return False

import io
import sys
from pathlib import Path

import pytest

from clean_room_agent.cli.plan_editing import edit_plan
from clean_room_agent.errors import ArtifactError

PLAN = 'task = "Mend it"\nfiles = ["a.py"]\n'
TAKES_TURNS = """\
import pathlib, sys
path = pathlib.Path(sys.argv[1])
text = path.read_text()
path.write_text(text.replace("flies", "files") + "# right" if "flies" in text else text.replace("files", "flies"))
"""


class Terminal(io.StringIO):
    """Text that comes from, or goes to, a terminal."""

    def isatty(self) -> bool:
        return True


def at_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str) -> io.StringIO:
    """What is told where `typed` is typed, and the editor spoils the plan, corrects it, and so on."""
    script = tmp_path / "editor.py"
    script.write_text(TAKES_TURNS)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    return shown


def test_at_a_terminal_a_text_that_is_no_plan_can_be_edited_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = at_a_terminal(tmp_path, monkeypatch, "y\n")
    text, plan = edit_plan(PLAN, {"a.py"}, written_from=None)
    assert (text, plan.task) == (f"{PLAN}# right", "Mend it")
    assert "the plan: line 2: flies: unknown key; did you mean 'files'?" in said.getvalue()
    assert "Edit it again?" in said.getvalue()


def test_who_does_not_want_to_edit_it_again_keeps_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = at_a_terminal(tmp_path, monkeypatch, "n\n")
    with pytest.raises(ArtifactError) as caught:
        edit_plan(PLAN, {"a.py"}, written_from=None)
    assert "Edit it again?" in said.getvalue()
    kept = Path(caught.value.hint.partition("--plan ")[2].split()[0])
    assert kept.read_text() == PLAN.replace("files", "flies")
    kept.unlink()

"""What the oracle declares, and that what it writes on top of that is the commit."""

import pytest
from testing.oracle.scaffold import bodies_for, new_names, scaffold_of, scaffolded
from testing.packages import package, shown_file
from testing.runs.bills import BILLS, BILLS_PATH, STUBS

from clean_room_agent.artifacts.plans import TargetFile
from clean_room_agent.execute.edits.apply import apply_edits
from clean_room_agent.execute.edits.rules import EditRules
from clean_room_agent.execute.edits.stubs import scaffold_faults, stub_names
from clean_room_agent.training.gold_edits import GoldFile, Shown

BEFORE = "import os\n\n\ndef todo():\n    raise NotImplementedError\n\n\ndef old(a):\n    return a\n"
AFTER = (
    "import os\nimport re\n\n\ndef todo():\n    raise NotImplementedError\n\n\ndef old(a):\n    return add(a)\n\n\n"
    'def add(a):\n    """One more."""\n    b = a + 1\n    return b\n'
)
TYPESCRIPT = (
    "export class Bill {\n  private cents = 0;\n  add(cents: number): number {\n    this.cents += cents;\n"
    "    return this.cents;\n  }\n}\n\nexport function total(bills: Bill[]): number {\n  let sum = 0;\n  return sum;\n}\n"
)
FILES = (
    GoldFile(path=BILLS_PATH, before=None, after=BILLS),
    GoldFile(path="a.py", before=BEFORE, after=AFTER),
    GoldFile(path="src/bills.ts", before=None, after=TYPESCRIPT),
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.path)
def test_declarations_then_bodies_come_to_the_commit(file: GoldFile) -> None:
    text = scaffold_of(file)
    assert text is not None
    assert scaffold_faults(file.path, file.before or "", text) == ()
    names = [name for name in stub_names(file.path, text) if name != "todo"]
    shown = [Shown(path=file.path, editable=True, text=text.removesuffix("\n"))]
    rules = EditRules(targets=(TargetFile(path=file.path),))
    edits = bodies_for(file, names, shown)
    applied = apply_edits(tuple(edits), {file.path: text}, package(shown_file(file.path, text)), rules)
    assert applied.texts == {file.path: file.after}
    assert scaffolded(file).before == text


def test_only_what_the_commit_adds_is_declared() -> None:
    created, changed, _ = FILES
    assert stub_names(BILLS_PATH, scaffold_of(created) or "") == STUBS
    assert new_names(created) == ["Bill", *STUBS]
    assert new_names(changed) == ["add"]
    assert "return a\n" in (scaffold_of(changed) or "")


def test_one_stub_is_written_without_the_others_and_without_the_rest() -> None:
    (edit,) = bodies_for(FILES[0], ["Bill.due"], [])
    assert (edit.kind, edit.symbol) == ("symbol", "Bill.due")


@pytest.mark.parametrize(
    "file",
    [
        GoldFile(path="a.py", before="x = 1\n", after="x = 2\n"),
        GoldFile(path="a.py", before="x = 1\n", after=None),
        GoldFile(path="notes.md", before=None, after="words\n"),
        GoldFile(path="run.py", before=None, after="def f():\n    return 1\n\n\nf()\n"),
    ],
)
def test_what_no_scaffold_may_hold_is_not_declared(file: GoldFile) -> None:
    assert scaffold_of(file) is None
    assert new_names(file) == []

from msgspec.structs import replace
from rich.console import Console
from testing.packages import package, shown_file, shown_symbol
from tests.db.raw.samples import sample

from clean_room_agent.artifacts.context import ContextPackage, DroppedItem
from clean_room_agent.db.raw.passes import DecisionRow
from clean_room_agent.report.package import UNASKED, as_markdown, as_object, as_table
from clean_room_agent.retrieval.stage import Candidate

TEXT = "def f():\n    return 1\n"
PACKAGE = package(shown_symbol("a.py", TEXT, "f", 1, 2), shown_file("b.md", "```\ncode\n```\n"))


def test_each_item_is_a_block_that_its_text_cannot_close() -> None:
    told = as_markdown(PACKAGE)
    assert told.startswith("# Task\n\nFix the bug.\n\n# Context\n")
    assert "## a.py :: f (lines 1-2, primary)\n\n```\ndef f():" in told
    assert "````\n```\ncode\n```\n````\n" in told


def test_programs_get_items_candidates_judgments_and_notes() -> None:
    candidates = [
        Candidate(path=path, file_id=1, tier=1, score=0.5, reasons=("named",)) for path in ("a.py", "z.py")
    ]
    decisions = [sample(DecisionRow), sample(DecisionRow, path="", reason="no model was asked")]
    told = as_object(PACKAGE, candidates, decisions)
    assert [item["symbol"] for item in told["items"]] == ["f", None]
    assert [(entry["path"], entry["included"]) for entry in told["candidates"]] == [
        ("a.py", True),
        ("z.py", False),
    ]
    assert [row["path"] for row in told["judged"]] == ["b.py"]
    assert told["notes"] == ["scope: no model was asked"]


def shown(given: ContextPackage, *decisions: DecisionRow) -> str:
    console = Console(width=100)
    with console.capture() as told:
        console.print(as_table(given, decisions))
    return told.get()


def test_a_file_is_named_once_with_why_it_is_there_and_its_pieces() -> None:
    given = package(shown_symbol("a.py", TEXT, "f", 1, 2), shown_file("a.py", TEXT, detail="supporting"))
    told = shown(given, sample(DecisionRow, path="a.py", symbol=None, reason="the task names it"))
    assert told.count("a.py") == 1
    assert "  the task names it" in told
    assert "primary" in told
    assert "the whole file" in told
    assert "2 pieces" in told


def test_names_that_are_not_shown_are_no_whole_file_and_no_reason_for_one() -> None:
    names = shown_file("a.py", TEXT, detail="type_context")
    given = package(
        shown_symbol("a.py", TEXT, "f", 1, 2), replace(names, section="uses", reason="used, and not shown")
    )
    of_file = sample(DecisionRow, path="a.py", symbol=None, reason="the task names it", detail="")
    told = shown(given, of_file, replace(of_file, reason="used, and not shown", detail="type_context"))
    assert "  the task names it" in told
    assert told.count("used, and not shown") == 1
    assert "names alone" in told
    assert "the whole file" not in told


def test_what_was_left_out_is_said_with_its_reason() -> None:
    gone = DroppedItem(path="b.py", symbol="g", detail="primary", tokens=1200, reason="does not fit")
    told = shown(replace(package(), dropped=(gone,)))
    assert "nothing fits the task" in told
    assert "left out: b.py :: g (1,200 tokens): does not fit" in told


def test_that_no_model_was_asked_is_said_once() -> None:
    item = replace(shown_file("a.py", TEXT), reason=f"{UNASKED}score 0.80 is at least 0.50")
    told = shown(package(item, replace(item, path="b.py")))
    assert told.count("no model was asked") == 1
    assert "score 0.80" in told
    assert "0.50" not in told

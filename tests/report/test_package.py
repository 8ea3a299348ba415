from testing.packages import package, shown_file, shown_symbol
from tests.db.raw.samples import sample

from clean_room_agent.db.raw.passes import DecisionRow
from clean_room_agent.report.package import as_markdown, as_object
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

"""The right answers: labels by what the commit changes and by what that uses."""

from testing.runs.solving import MENDED_MONEY, MONEY

from clean_room_agent.training.commit_answers import Gold, changed_symbols
from clean_room_agent.training.gold_edits import GoldFile

GOLD = Gold(
    task="Keep every cent",
    files={"till/money.py": GoldFile(path="till/money.py", before=MONEY, after=MENDED_MONEY)},
    used={"till/stock.py": ((10, 20),), "till/money.py": ((10, 15),)},
    dependencies=frozenset({"till/stock.py", "till/names.py"}),
)


def test_a_file_is_changed_used_imported_or_not_edited() -> None:
    labels = {
        path: GOLD.label_of_file(path) for path in ("till/money.py", "till/stock.py", "till/names.py", "a.py")
    }
    assert labels == {
        "till/money.py": "changed",
        "till/stock.py": "used",
        "till/names.py": "dependency",
        "a.py": "not edited",
    }


def test_code_is_changed_read_or_skipped_by_its_lines() -> None:
    start, end = GOLD.files["till/money.py"].spans["split"]
    assert GOLD.label_of_piece("till/money.py", start, end) == "change"
    assert GOLD.label_of_piece("till/money.py", 10, 12) == "read"
    assert GOLD.label_of_piece("till/stock.py", 20, 30) == "read"
    assert GOLD.label_of_piece("till/stock.py", 21, 30) == "skip"


def test_the_innermost_definitions_are_named() -> None:
    before = "class Till:\n    def open(self):\n        return 1\n\n    def close(self):\n        return 2\n"
    file = GoldFile(path="till.py", before=before, after=before.replace("return 2", "return 3"))
    assert changed_symbols(file) == ("Till.close",)
    assert changed_symbols(GoldFile(path="new.py", before=None, after="A = 1\n")) == ()


def test_a_file_that_is_taken_away_is_all_changed() -> None:
    gone = Gold(
        task="Remove it",
        files={"a.py": GoldFile(path="a.py", before="A = 1\n", after=None)},
        used={},
        dependencies=frozenset(),
    )
    assert gone.label_of_piece("a.py", 1, 1) == "change"

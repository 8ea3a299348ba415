from msgspec.structs import replace
from testing.packages import package, shown_file, shown_symbol

from clean_room_agent.artifacts.context import ContextItem
from clean_room_agent.artifacts.edits import PatchEdit, Stub
from clean_room_agent.artifacts.plans import TargetFile
from clean_room_agent.execute.edits.apply import apply_edits
from clean_room_agent.execute.edits.rules import EditRules
from clean_room_agent.execute.implement import editable_files
from clean_room_agent.execute.scaffold_context import reduced_package, scaffolded_package

STUB = "    raise NotImplementedError\n"
MONEY = '"""Money."""\n\nimport os\n\n\ndef split(a):\n    return a\n\n\nclass Till:\n    def open(self):\n        return 1\n'
NEW = (
    MONEY.replace("import os\n", "import os\nimport re\n").replace(
        "        return 1\n", "        return 1\n\n    def shut(self):\n        raise NotImplementedError\n"
    )
    + f"\n\nclass Bill:\n    x = 1\n\n    def add(self):\n    {STUB}"
)
BILLS = f"import os\n\n\ndef add(a):\n{STUB}\n\ndef sub(a):\n{STUB}"


def words(items: tuple[ContextItem, ...]) -> list[tuple[str, str | None, int, int]]:
    return [(item.path, item.symbol, item.start_line, item.end_line) for item in items]


def test_a_new_file_and_one_that_was_shown_whole_are_shown_whole_as_they_are_now() -> None:
    shown = scaffolded_package(
        package(shown_file("money.py", MONEY), shown_file("other.py", "x = 1\n")),
        {"money.py": MONEY},
        {"money.py": NEW, "bills.py": BILLS},
        len,
    )
    assert words(shown.items) == [
        ("other.py", None, 1, 1),
        ("bills.py", None, 1, BILLS.count("\n")),
        ("money.py", None, 1, NEW.count("\n")),
    ]
    assert [item.text for item in shown.items[1:]] == [BILLS, NEW]
    assert all(item.detail == "primary" for item in shown.items)


def test_pieces_stand_at_their_new_places_and_what_is_new_is_added() -> None:
    shown = scaffolded_package(
        package(
            shown_symbol("money.py", MONEY, "(imports)", 3, 3),
            shown_symbol("money.py", MONEY, "split", 6, 7),
            replace(shown_symbol("money.py", MONEY, "Till", 10, 12), adjoins=True),
        ),
        {"money.py": MONEY},
        {"money.py": NEW},
        len,
    )
    lines = NEW.split("\n")
    for item in shown.items:
        assert item.text == "".join(f"{line}\n" for line in lines[item.start_line - 1 : item.end_line])
    assert [item.symbol for item in shown.items] == ["(imports)", "split", "Till", "Bill"]
    assert shown.items[0].text == "import os\nimport re\n"
    assert "def shut" in shown.items[2].text
    assert [item.adjoins for item in shown.items] == [False, True, True, True]
    (head,) = (line for line in shown.to_prompt_text().split("\n") if line.startswith("===== code"))
    assert head == f"===== code: money.py :: (imports), split, Till, Bill (lines 3-{NEW.count(chr(10))})"


def test_a_new_method_of_a_class_that_is_not_shown_is_shown_alone() -> None:
    shown = scaffolded_package(
        package(shown_symbol("money.py", MONEY, "split", 6, 7)), {"money.py": MONEY}, {"money.py": NEW}, len
    )
    assert [item.symbol for item in shown.items] == ["split", "Till.shut", "Bill"]


def test_outlines_and_signatures_of_the_file_stay_as_they_were() -> None:
    reference = shown_symbol("money.py", MONEY, "split", 6, 7, detail="supporting")
    shown = scaffolded_package(package(reference), {"money.py": MONEY}, {"money.py": NEW}, len)
    assert shown.items[0] == reference


def test_where_little_fits_only_one_stub_is_shown_with_its_imports() -> None:
    after = {"bills.py": BILLS}
    whole = scaffolded_package(package(shown_file("other.py", "x = 1\n")), {}, after, len)
    small = reduced_package(whole, after, Stub(path="bills.py", symbol="sub"), len)
    assert [(item.path, item.symbol) for item in small.items] == [
        ("other.py", None),
        ("bills.py", "(imports)"),
        ("bills.py", "sub"),
    ]
    assert "def add" not in "".join(item.text for item in small.items)


def test_a_stub_of_a_class_that_is_shown_may_be_written_by_its_name() -> None:
    shown = scaffolded_package(
        package(shown_symbol("money.py", MONEY, "split", 6, 7)), {"money.py": MONEY}, {"money.py": NEW}, len
    )
    body = "    def add(self):\n        return self.x"
    edit = PatchEdit(kind="symbol", file_path="money.py", symbol="Bill.add", replacement=body)
    rules = EditRules(targets=(TargetFile(path="money.py"),))
    applied = apply_edits((edit,), {"money.py": NEW}, shown, rules)
    assert (applied.result.error_info, "return self.x\n" in (applied.texts["money.py"] or "")) == ("", True)
    (file,) = editable_files(shown, rules.targets)
    assert {"Bill", "Bill.add", "Till.shut", "split"} <= set(file.names or ())
    hidden = PatchEdit(kind="symbol", file_path="money.py", symbol="Till.open", replacement=body)
    assert not apply_edits((hidden,), {"money.py": NEW}, shown, rules).result.success

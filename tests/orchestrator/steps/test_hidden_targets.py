from msgspec.structs import replace
from testing.packages import package, shown_symbol

from clean_room_agent.artifacts.context import ContextPackage, Detail, DroppedItem
from clean_room_agent.artifacts.plans import PlanStep, TargetFile
from clean_room_agent.orchestrator.steps.missing_context import unshown_targets

STEP = PlanStep(
    id="s1",
    description="Read numbers.",
    target_files=(TargetFile(path="a.py"), TargetFile(path="b.py")),
    target_symbols=("parse", "Reader.read"),
)
TEXT = "def parse():\n    return 1\n\n\nclass Reader:\n    def read(self):\n        return 2\n"


def dropped(path: str, symbol: str | None, detail: Detail = "primary") -> DroppedItem:
    return DroppedItem(path=path, symbol=symbol, detail=detail, tokens=9_000, reason="does not fit")


def package_without(*items: DroppedItem) -> ContextPackage:
    return replace(package(shown_symbol("a.py", TEXT, "parse", 1, 2)), dropped=items)


def test_what_a_step_names_and_the_context_left_out_is_unshown() -> None:
    found = package_without(
        dropped("a.py", "Reader.read"),
        dropped("b.py", "Deep.parse (lines 60-90)"),
        dropped("b.py", "Deep.parse (lines 10-59)"),
        dropped("b.py", "Deep.parse (lines 120-130)"),
        dropped("b.py", None),
        dropped("a.py", None),  # a part of it is shown
        dropped("a.py", "parse"),  # as it is itself
        dropped("a.py", "other"),
        dropped("c.py", "parse"),
        dropped("b.py", "read", "supporting"),
    )
    assert unshown_targets(STEP, found) == (
        "a.py::Reader.read",
        "b.py::Deep.parse (lines 10-90, 120-130)",
        "b.py",
    )

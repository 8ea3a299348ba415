"""What is shown without asking of a file that a plan names."""

from collections.abc import Callable, Collection

from tests.retrieval.shop import large_module
from tests.retrieval.world import World, context_request

from clean_room_agent.artifacts.context import TaskQuery
from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.retrieval.precision_stage import (
    PlannedFile,
    around,
    is_small,
    names_a_large_class,
    target_of,
)
from clean_room_agent.retrieval.scored_pieces import files_in_scope
from clean_room_agent.retrieval.stage import Candidate, StageContext

Make = Callable[..., World]
BOX = "class Box:\n    size = 1\n\n" + "\n".join(
    f"    def part_{number}(self):\n" + "        self.size += 1\n" * 20 for number in range(4)
)
VALUES = "import os\n\nLIMIT = 1\n\n\ndef use():\n    return LIMIT\n"


def target(
    world: World,
    path: str,
    *symbols: str,
    changed: Collection[tuple[str, str]] = (),
    frames: tuple[StackFrame, ...] = (),
    named: tuple[str, ...] = (),
) -> PlannedFile:
    row = world.source().file(path)
    assert row is not None
    entry = Candidate(path=path, file_id=row.id, tier=0, score=1.0, reasons=("named by the plan",))
    context = StageContext(
        request=context_request(files=(path,), symbols=symbols),
        available_tokens=4000,
        candidates=(entry,),
        files=(entry,),
    )
    files = files_in_scope(context, world.source(), TaskQuery(frames=frames, named=named))
    return target_of(files.pieces, files.hints, changed)


def names(found: PlannedFile) -> list[str]:
    return [scored.piece.name for scored, _ in found.chosen]


def test_a_named_function_is_chosen_and_nothing_is_uncertain(make: Make) -> None:
    found = target(make({"big.py": large_module(5)}), "big.py", "task_3")
    assert names(found) == ["task_3"]
    assert found.uncertain == ()


def test_where_the_plan_names_nothing_all_but_the_imports_is_uncertain(make: Make) -> None:
    found = target(make({"big.py": large_module(2)}), "big.py")
    assert found.chosen == ()
    assert [scored.piece.name for scored in found.uncertain] == ["task_0", "task_1"]


def test_what_was_judged_to_be_changed_when_the_task_was_planned_is_chosen(make: Make) -> None:
    changed = {("big.py", "task_1"), ("other.py", "task_0")}
    world = make({"big.py": large_module(3)})
    assert names(target(world, "big.py", changed=changed)) == ["task_1"]
    assert names(target(world, "big.py", "task_2", changed=changed)) == ["task_2", "task_1"]


def test_what_the_task_names_is_chosen_beside_what_was_judged_before(make: Make) -> None:
    """A planner that chose the wrong definition is shown the right one when it plans again."""
    world, changed = make({"big.py": large_module(3)}), {("big.py", "task_1")}
    assert names(target(world, "big.py", changed=changed, named=("task_2",))) == ["task_1", "task_2"]
    assert names(target(world, "big.py", "task_0", changed=changed, named=("task_2",))) == [
        "task_0",
        "task_1",
    ]


def test_a_stack_frame_counts_where_the_plan_names_no_symbol(make: Make) -> None:
    world = make({"big.py": large_module(3)})
    frames = (StackFrame(path="big.py", line=8),)
    assert names(target(world, "big.py", frames=frames)) == ["task_0"]
    assert names(target(world, "big.py", "task_2", frames=frames)) == ["task_2"]


def test_the_imports_and_the_head_of_the_class_belong_to_a_member(make: Make) -> None:
    found = target(make({"box.py": f"import os\n\n\n{BOX}"}), "box.py", "part_2")
    beside = around(found, [scored for scored, _ in found.chosen])
    assert [(one.symbol, one.reason) for one in beside] == [
        ("(imports)", "the file's imports"),
        ("Box (head)", "head of a class with a member to be changed"),
    ]


def test_only_a_large_class_that_is_named_alone_has_its_members_asked_about(make: Make) -> None:
    world = make({"box.py": BOX, "big.py": large_module(2)})
    assert names_a_large_class(target(world, "box.py", "Box"))
    assert not names_a_large_class(target(world, "box.py", "Box", "part_1"))
    assert not names_a_large_class(target(world, "big.py", "task_1"))
    assert not names_a_large_class(target(world, "big.py"))


def test_a_file_is_small_by_its_lines_and_by_its_share_of_the_window(make: Make) -> None:
    world = make({"values.py": VALUES, "big.py": large_module(20)})
    small, large = target(world, "values.py").view, target(world, "big.py").view
    assert is_small(small, world.source(), 1000)
    assert not is_small(small, world.source(), 20)
    assert not is_small(large, world.source(), 100_000)


def test_the_comment_above_a_definition_belongs_to_it(make: Make) -> None:
    text = "import os\n\nA = 1\n\n# Why it is so.\n# In two lines.\ndef go(n):\n    return n\n\n\n# Of another.\ndef stay(n):\n    return n\n"
    found = target(make({"go.py": text}), "go.py", "go")
    assert names(found) == ["go"]
    beside = around(found, [scored for scored, _ in found.chosen])
    assert [(one.symbol, one.start_line, one.end_line) for one in beside] == [
        ("(imports)", 1, 1),
        ("(lines 3-3)", 3, 3),
        ("go (comment)", 5, 6),
    ]


def test_a_few_values_after_the_imports_show_where_new_ones_belong(make: Make) -> None:
    few = (
        "import os\n\nA = 1\nB = 2\n\n\ndef go(n):\n    return n\n\n\nC = 3\n\n\ndef stay(n):\n    return n\n"
    )
    world = make({"few.py": few, "many.py": few.replace("B = 2\n", "B = 2\n" * 15)})
    beside = {
        path: around(found, [scored for scored, _ in found.chosen])
        for path in ("few.py", "many.py")
        for found in [target(world, path, "go")]
    }
    assert [one.symbol for one in beside["few.py"]] == ["(imports)", "(lines 3-4)"]
    assert [one.symbol for one in beside["many.py"]] == ["(imports)"]


def test_a_file_without_imports_shows_its_beginning(make: Make) -> None:
    text = '"""What it is for."""\n\n\ndef go(n):\n    return n\n'
    found = target(make({"go.py": text}), "go.py", "go")
    beside = around(found, [scored for scored, _ in found.chosen])
    assert [(one.symbol, one.reason) for one in beside] == [
        ("(header)", "the beginning of a file without imports")
    ]

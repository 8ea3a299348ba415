import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest
from tests.retrieval.shop import IMPORTS, SHOP, choose, large_module
from tests.retrieval.world import TASK, World, context_request, numbers_of

from clean_room_agent.artifacts.context import TaskQuery
from clean_room_agent.artifacts.evidence import Evidence, FailingTest, StackFrame
from clean_room_agent.db.curated import symbols
from clean_room_agent.db.curated.names import Resolution, insert_resolutions
from clean_room_agent.db.raw.passes import DecisionRow
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.llm.transport import ChatRequest
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
FIVE = {"big.py": large_module(5, lines=20)}
LARGE_CLASS = 'class Big:\n    """Large."""\n\n' + "\n".join(
    f"    def method_{number}(self):\n" + "        self.total += 1\n" * 30 for number in range(12)
)
ONE_BY_ONE: dict[str, Any] = {"route": "each", "each_share": 0.0}


def says(**words: str) -> Callable[[ChatRequest], str]:
    """An answer to `piece_judgment`: the word of the piece with the name, else skip."""
    return lambda request: words.get(request.identity.item.rpartition(" ")[2], "skip")


def refer(world: World, caller: str, callee: str, confidence: float = 0.9) -> None:
    """The one symbol uses the other."""
    source = world.source()
    ends = [source.find_symbols(name)[0].id for name in (caller, callee)]
    insert_resolutions(world.index, [Resolution(symbol_references=[(ends[0], ends[1], "call", confidence)])])


def shown(world: World, **fields: object) -> Mapping[str | None, tuple[str, str]]:
    """Detail and text by symbol, of the package for the request."""
    package = world.retriever(**ONE_BY_ONE).retrieve(context_request(**fields)).package
    return {item.symbol: (item.detail, item.text) for item in package.items}


def judged(world: World, request_pass: str) -> dict[str | None, DecisionRow]:
    return {
        row.subject.symbol: row
        for row in world.decisions(request_pass)
        if row.stage == "precision" and row.subject.symbol
    }


def test_one_question_is_asked_about_each_piece(make: Make) -> None:
    answers = {
        "scope_judgment": "yes",
        "piece_judgment": says(task_0="change", task_1="read"),
    }
    world = make(FIVE, answers)
    items = shown(world, task="the number is wrong")
    asked = [request.identity.item.rpartition(" ")[2] for request in world.asked("piece_judgment")]
    assert sorted(asked) == [f"task_{n}" for n in range(5)]
    assert items["task_0"][0] == "primary"
    assert items["task_1"] == ("supporting", "def task_1(value):\n    Do number 1.\n")
    assert set(items) == {"task_0", "task_1"}
    rows = judged(world, f"{TASK}:impl:p1:s1")
    assert [rows[f"task_{n}"].reason for n in range(3)] == ["judged change", "judged read", "judged skip"]
    assert [rows[f"task_{n}"].included for n in range(5)] == [True, True, False, False, False]
    assert all(row.judgment.call_id is not None for row in rows.values())


def test_without_a_readable_verdict_a_piece_is_out(make: Make) -> None:
    answers = {
        "scope_judgment": "yes",
        "piece_judgment": says(task_0="perhaps", task_1="change"),
    }
    world = make(FIVE, answers)
    assert set(shown(world, task="the number is wrong")) == {"task_1"}
    row = judged(world, f"{TASK}:impl:p1:s1")["task_0"]
    assert not row.included
    assert "unreadable verdict" in row.reason


def test_a_question_shows_the_code_of_a_short_piece_and_lines_of_a_long_one(make: Make) -> None:
    long = large_module(1, lines=40).replace("task_0", "long_one").replace("* 17", "* rate_of_tax()")
    world = make(
        {"big.py": large_module(1, lines=20), "long.py": long},
        {"scope_judgment": "yes"},
    )
    shown(world, task="the value of rate_of_tax is wrong")
    prompts = {
        request.identity.item.rpartition(" ")[2]: request.prompt for request in world.asked("piece_judgment")
    }
    short, outlined = (prompts[name].partition("## Code\n")[2] for name in ("task_0", "long_one"))
    assert large_module(1, lines=20).partition("\n\n\n")[2].rstrip() in short
    assert "===== candidate: long.py :: long_one (lines 5-47)\ndef long_one(value):\n" in outlined
    assert "24: value = value + 0 * rate_of_tax()" in outlined
    assert "step 30 of 0" not in outlined
    assert all("- big.py :: task_0 (lines 5-27)\n" in prompt for prompt in prompts.values())


def test_where_nothing_is_judged_to_be_changed_the_next_are_asked_about(make: Make) -> None:
    answers = {
        "scope_judgment": "yes",
        "piece_judgment": says(),
    }
    world = make({"big.py": large_module(9, lines=20)}, answers)
    request = context_request(task="the number is wrong")
    world.retriever(**{**ONE_BY_ONE, "each_symbols": 2}).retrieve(request)
    assert len(world.asked("piece_judgment")) == 6
    notes = [row.reason for row in world.decisions(request.pass_id) if "not judged" in row.reason]
    assert notes == ["not judged, 3 of its pieces: each ranks below the first 2"]


def test_what_a_planner_is_to_choose_from_is_shown_where_it_is_small(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    package = (
        world.retriever()
        .retrieve(context_request(task="Fix shop/cart.py", mode="plan", role="reasoning"))
        .package
    )
    assert world.asked("precision_batch") == []
    assert "return sum(item.price" in package.to_prompt_text()


def test_of_a_large_class_that_a_plan_names_the_members_are_asked_about(make: Make) -> None:
    world = make({"big.py": LARGE_CLASS}, {"piece_judgment": says(**{"Big.method_4": "change"})})
    items = shown(world, task="the number is wrong", files=("big.py",), symbols=("Big",))
    asked = {request.identity.item.rpartition(" ")[2] for request in world.asked("piece_judgment")}
    assert asked
    assert all(name.startswith("Big.") for name in asked)
    assert items["Big (head)"][1].startswith("class Big:\n")
    assert items["Big.method_4"][0] == "primary"


def test_a_member_of_a_large_class_is_shown_with_the_head_of_the_class(make: Make) -> None:
    world = make({"big.py": LARGE_CLASS})
    items = shown(world, task="it is wrong", files=("big.py",), symbols=("Big.method_4",))
    assert world.transport.requests == []
    primary = [name for name, (detail, _) in items.items() if detail == "primary"]
    assert primary == ["Big (head)", "Big.method_4"]
    assert "method_5" in items[None][1]


def test_one_by_one_only_what_is_near_the_best_is_asked_about(make: Make) -> None:
    answers = {
        "scope_judgment": "yes",
        "piece_judgment": says(task_3="change"),
        "task_analysis": '{"intent": "", "areas": [], "keywords": [], "symbols": ["task_3"]}',
    }
    world = make(FIVE, answers)
    request = context_request(task="it adds wrongly")
    world.retriever(route="each", each_share=0.9).retrieve(request)
    assert [ask.identity.item for ask in world.asked("piece_judgment")] == ["big.py:80 :: task_3"]
    notes = [row.reason for row in world.decisions(request.pass_id) if "not judged" in row.reason]
    assert notes == ["not judged, 4 of its pieces: each has less than 90% of the best score"]


def test_what_a_plan_names_is_shown_with_what_it_uses_and_who_uses_it(make: Make) -> None:
    world = make(
        {
            "big.py": large_module(30, lines=20),
            "far/caller.py": "def zig(value):\n    # first\n    return task_1(value)\n",
            "far/callee.py": large_module(3, lines=40).replace("task_", "zag_"),
            "far/guess.py": large_module(3, lines=40).replace("task_", "guess_"),
        },
    )
    refer(world, "zig", "task_1")
    refer(world, "task_1", "zag_0")
    refer(world, "guess_1", "task_1", confidence=0.2)
    package = (
        world.retriever()
        .retrieve(context_request(task="It adds wrongly", files=("big.py",), symbols=("task_1",)))
        .package
    )
    assert world.transport.requests == []
    beside = {(item.section, item.path, item.text) for item in package.items if item.path != "big.py"}
    assert beside == {
        ("uses", "far/callee.py", 'def zag_0(value):\n    """Do number 0."""\n'),
        ("callers", "far/caller.py", "far/caller.py:3: return task_1(value)\n"),
    }


def test_tests_that_exercise_the_code_are_named_and_the_goal_is_shown(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    refer(world, "test_total_price_counts", "total_price")
    refer(world, "test_unrelated", "total_price")
    evidence = Evidence(tests=(FailingTest(name="tests/test_cart.py::test_total_price_counts"),))
    package = (
        world.retriever()
        .retrieve(
            context_request(task="Fix it", files=("shop/cart.py",), symbols=("Cart",), evidence=evidence)
        )
        .package
    )
    tests = {item.section: item for item in package.items if item.path == "tests/test_cart.py"}
    assert set(tests) == {"tests", "green"}
    assert "assert cart.total_price() == 0" in tests["tests"].text
    assert tests["green"].text == "tests/test_cart.py:9: test_unrelated\n"


def test_a_reason_that_was_written_beside_the_code_is_shown_with_its_signature(make: Make) -> None:
    world = make(FIVE, {"scope_batch": lambda request: json.dumps({"relevant": numbers_of(request, "big.py")}),
                        "precision_batch": choose("read", "task_1 ")})  # fmt: skip
    row = world.source().file("big.py")
    assert row is not None
    inside = world.source().find_symbols("task_1")[0].start_line + 2
    symbols.insert_comments(
        world.index, [(1, row.id, None, inside, "because zero\n is special", "rationale", 1)]
    )
    package = world.retriever().retrieve(context_request(task="do number 1 is wrong")).package
    assert [item.text for item in package.items] == [
        f"def task_1(value):\n    Do number 1.\n    (line {inside}: because zero is special)\n"
    ]


@pytest.mark.parametrize("route", ["each", "batch"])
def test_a_symbol_larger_than_the_window_is_shown_in_ranges_of_whole_statements(
    make: Make, route: str
) -> None:
    text = large_module(1, lines=700)

    def keep(request: ChatRequest) -> str:
        return json.dumps({"keep": numbers_of(request, "big.py :: task_0 (lines")[-1:]})

    world = make({"big.py": text}, {"refilter": keep}, window=4096, reserved=1024)
    request = context_request(files=("big.py",), symbols=("task_0",))
    package = world.retriever(route=route).retrieve(request).package
    lines = text.split("\n")
    assert package.primary()
    for item in package.primary():
        assert item.text == "".join(f"{line}\n" for line in lines[item.start_line - 1 : item.end_line])
    assert max(item.end_line for item in package.primary()) == 5 + 1 + 700 + 1
    assert package.budget.used_tokens <= 3072
    assert len(world.asked("refilter")) >= 1
    gone = [row for row in world.decisions(request.pass_id) if "refilter let it go" in row.reason]
    assert gone
    assert all(row.judgment.call_id is not None and not row.included for row in gone)


def test_a_line_larger_than_the_window_is_an_error_that_names_it(make: Make) -> None:
    text = f"PACKED = [{', '.join(str(number) for number in range(4000))}]\n"
    answers = {"precision_batch": choose("change", "big.py")}
    world = make({"big.py": text}, answers, window=4096, reserved=1024)
    with pytest.raises(
        WindowExceeded, match=r"big.py :: \(header\) .* about \d+ tokens, and 3072 are available for code"
    ) as caught:
        world.retriever().retrieve(context_request(files=("big.py",)))
    assert "context_window" in caught.value.hint
    assert len(world.asked("precision_batch")[0].prompt) < 4000


def every_piece_is_out(world: World, task: str, **fields: object) -> Mapping[str | None, str]:
    """The reasons of the pieces that are shown all the same, by name."""
    request = context_request(task=task, **fields)
    world.retriever(**ONE_BY_ONE).retrieve(request)
    rows = [
        row for row in world.decisions(request.pass_id) if row.stage == "precision" and row.subject.symbol
    ]
    return {row.subject.symbol: row.reason for row in rows if row.included and row.detail == "primary"}


@pytest.mark.parametrize("mode", ["plan", "implement"])
@pytest.mark.parametrize("task", ["fix task_3", "`task_3` adds wrongly", "the function task_3 adds wrongly"])
def test_what_the_task_names_is_shown_whatever_the_model_says(make: Make, task: str, mode: str) -> None:
    role = "coding" if mode == "implement" else "reasoning"
    shown = every_piece_is_out(make(FIVE), task, mode=mode, role=role)
    assert shown == {"task_3": "in without asking: named by the task"}


def test_what_the_task_names_of_a_planned_file_is_shown_where_the_plan_names_nothing_of_it(
    make: Make,
) -> None:
    world = make({"big.py": large_module(12, lines=20)})
    shown = every_piece_is_out(world, "fix task_3", files=("big.py",))
    assert shown["task_3"] == "in without asking: named by the task"
    assert "task_4" not in shown
    shown = every_piece_is_out(
        world, "fix task_3", files=("big.py",), symbols=("task_4",), pass_id=f"{TASK}:impl:p1:s2"
    )
    assert "task_3" not in shown


def test_a_name_of_many_definitions_means_none_of_them(make: Make) -> None:
    classes = "".join(
        f"class C{n}:\n    def get(self):\n        return {n}\n" + "    x = 1\n" * 30 for n in range(4)
    )
    shown = every_piece_is_out(make({"big.py": classes}), "`get` is wrong", mode="plan", role="reasoning")
    assert not any("named by the task" in reason for reason in shown.values())


def test_where_all_is_judged_no_the_best_pieces_are_taken_and_the_record_says_so(make: Make) -> None:
    world = make(FIVE)
    shown = every_piece_is_out(world, "it is wrong", files=("big.py",))
    taken = {name: reason for name, reason in shown.items() if "all judged no" in reason}
    assert set(taken.values()) == {"judged skip; all judged no: taken by rank"}
    assert len(world.asked("piece_judgment")) == 5
    assert (
        world.retriever(**ONE_BY_ONE)
        .retrieve(context_request(task="it is wrong", files=("big.py",)))
        .package.items
    )


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

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.retrieval.test_retriever import IMPORTS, SHOP, choose, large_module
from tests.retrieval.world import TASK, World, numbers_of, room_request

from clean_room_agent.db.curated import prose, symbols
from clean_room_agent.db.raw.decisions import DecisionRow
from clean_room_agent.errors import WindowExceeded
from clean_room_agent.llm.exchange import ChatRequest

Make = Callable[..., World]
FIVE = {"big.py": large_module(5, lines=20)}
BY_THREE: dict[str, Any] = {"scope_route": "batch", "precision_route": "each", "each_share": 0.0}
PASSES = ("precision_relevant", "precision_primary", "precision_supporting")


def one_of(*words: str) -> Callable[[ChatRequest], str]:
    """Yes for an item that holds one of the words."""
    return lambda request: "yes" if any(word in request.identity.item for word in words) else "no"


def refer(world: World, caller: str, callee: str, confidence: float = 0.9) -> None:
    """The one symbol uses the other."""
    source = world.source()
    ends = [source.find_symbols(name)[0].id for name in (caller, callee)]
    symbols.insert_references(world.index, [(ends[0], ends[1], "call", confidence)])


def shown(world: World, **fields: object) -> Mapping[str | None, tuple[str, str]]:
    """Detail and text by symbol, of the package for the request."""
    package = world.retriever(**BY_THREE).retrieve(room_request(**fields))
    return {item.symbol: (item.detail, item.text) for item in package.items}


def judged(world: World, request_pass: str) -> dict[str | None, DecisionRow]:
    return {
        row.symbol: row for row in world.decisions(request_pass) if row.stage == "precision" and row.symbol
    }


def test_three_questions_are_asked_of_fewer_and_fewer_pieces(make: Make) -> None:
    answers = {
        "scope_batch": lambda request: json.dumps({"relevant": numbers_of(request, "big.py")}),
        "precision_relevant": one_of("task_0", "task_1", "task_2"),
        "precision_primary": one_of("task_0"),
        "precision_supporting": one_of("task_1"),
    }
    world = make(FIVE, answers)
    items = shown(world, task="task_0 adds wrongly")
    asked = {
        name: [request.identity.item.rpartition(" ")[2] for request in world.asked(name)] for name in PASSES
    }
    assert sorted(asked["precision_relevant"]) == [f"task_{n}" for n in range(5)]
    assert sorted(asked["precision_primary"]) == ["task_0", "task_1", "task_2"]
    assert sorted(asked["precision_supporting"]) == ["task_1", "task_2"]
    assert items["task_0"][0] == "primary"
    assert items["task_1"] == ("supporting", "def task_1(value):\n    Do number 1.\n")
    assert items["task_2"] == ("type_context", "def task_2(value):\n")
    assert set(items) == {"task_0", "task_1", "task_2"}
    rows = judged(world, f"{TASK}:impl:p1:s1")
    assert rows["task_0"].reason == "needed: judged yes; whole: judged yes"
    assert rows["task_2"].reason == "needed: judged yes; whole: judged no; description: judged no"
    assert rows["task_4"].reason == "needed: judged no"
    assert [rows[f"task_{n}"].included for n in range(5)] == [True, True, True, False, False]
    assert all(row.call_id is not None for row in rows.values())


def test_without_a_readable_verdict_a_piece_gets_no_more_than_was_granted_before(make: Make) -> None:
    def unclear(name: str) -> Callable[[ChatRequest], str]:
        return lambda request: "perhaps" if name in request.identity.item else "yes"

    answers = {
        "scope_batch": lambda request: json.dumps({"relevant": numbers_of(request, "big.py")}),
        "precision_relevant": unclear("task_0"),
        "precision_primary": lambda request: "perhaps" if "task_1" in request.identity.item else "no",
        "precision_supporting": unclear("task_2"),
    }
    world = make(FIVE, answers)
    items = shown(world, task="the number is wrong")
    assert {name: detail for name, (detail, _) in items.items()} == {
        "task_1": "supporting",
        "task_2": "type_context",
        "task_3": "supporting",
        "task_4": "supporting",
    }
    rows = judged(world, f"{TASK}:impl:p1:s1")
    assert not rows["task_0"].included
    for name in ("task_0", "task_1", "task_2"):
        assert "unreadable verdict" in rows[name].reason


def test_one_by_one_only_what_is_near_the_best_is_asked_about(make: Make) -> None:
    world = make(
        FIVE, {"scope_batch": lambda request: json.dumps({"relevant": numbers_of(request, "big.py")})}
    )
    request = room_request(task="task_3 adds wrongly")
    world.retriever(precision_route="each", each_share=0.9).retrieve(request)
    assert [ask.identity.item for ask in world.asked("precision_relevant")] == ["big.py:80 :: task_3"]
    notes = [row.reason for row in world.decisions(request.pass_id) if "not judged" in row.reason]
    assert notes == ["not judged, 4 of its pieces: each has less than 90% of the best score"]


def test_files_asked_about_one_by_one_are_bounded_by_number_and_score(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    request = room_request(task="Fix the total price of the cart")
    world.retriever(route="each", each_files=1, each_share=0.0).retrieve(request)
    assert len(world.asked("scope_judgment")) == 1
    out = [row.reason for row in world.decisions(request.pass_id) if "ranks below the first 1" in row.reason]
    assert out


def test_callers_and_callees_in_other_files_are_offered_and_shown_as_judged(make: Make) -> None:
    world = make(
        {
            "big.py": large_module(3, lines=20),
            "far/caller.py": large_module(3, lines=40).replace("task_", "zig_"),
            "far/callee.py": large_module(3, lines=40).replace("task_", "zag_"),
            "far/guess.py": large_module(3, lines=40).replace("task_", "guess_"),
        },
        {
            "scope_batch": lambda request: json.dumps({"relevant": numbers_of(request, "big.py")}),
            "precision_batch": choose("supporting", "used by task_1", "uses task_1"),
        },
    )
    refer(world, "zig_2", "task_1")
    refer(world, "task_1", "zag_0")
    refer(world, "guess_1", "task_1", confidence=0.2)
    package = world.retriever().retrieve(room_request(task="task_1 adds wrongly", files=("big.py",)))
    other = {(item.path, item.symbol): item for item in package.items if item.path != "big.py"}
    assert set(other) == {("far/caller.py", "zig_2"), ("far/callee.py", "zag_0")}
    assert other["far/caller.py", "zig_2"].text == "def zig_2(value):\n    Do number 2.\n"
    prompt = world.asked("precision_batch")[0].prompt
    assert "far/caller.py :: zig_2 | def zig_2(value): | Do number 2. | uses task_1" in prompt
    assert "guess_1" not in prompt


def test_a_test_that_runs_the_code_is_shown_by_its_lines(make: Make) -> None:
    world = make(SHOP, {"precision_batch": choose("supporting", "uses Cart.total_price")}, imports=IMPORTS)
    refer(world, "test_total_price_counts", "total_price")
    package = world.retriever().retrieve(
        room_request(task="Fix Cart.total_price", files=("shop/cart.py",), symbols=("Cart",))
    )
    test = next(item for item in package.items if item.path == "tests/test_cart.py")
    assert (test.detail, test.symbol) == ("supporting", "test_total_price_counts")
    assert "assert cart.total_price() == 0" in test.text


def test_a_reason_that_was_written_beside_the_code_is_shown_with_its_signature(make: Make) -> None:
    world = make(FIVE, {"scope_batch": lambda request: json.dumps({"relevant": numbers_of(request, "big.py")}),
                        "precision_batch": choose("supporting", "task_1 ")})  # fmt: skip
    row = world.source().file("big.py")
    assert row is not None
    inside = world.source().find_symbols("task_1")[0].start_line + 2
    prose.insert_comments(
        world.index, [(1, row.id, None, inside, "because zero\n is special", "rationale", 1)]
    )
    package = world.retriever().retrieve(room_request(task="task_1 adds wrongly"))
    assert [item.text for item in package.items] == [
        f"def task_1(value):\n    Do number 1.\n    (line {inside}: because zero is special)\n"
    ]


@pytest.mark.parametrize("route", ["each", "batch"])
def test_a_symbol_larger_than_the_room_is_shown_in_ranges_of_whole_statements(make: Make, route: str) -> None:
    text = large_module(1, lines=700)

    def keep(request: ChatRequest) -> str:
        return json.dumps({"keep": numbers_of(request, "big.py :: task_0 (lines")[-1:]})

    world = make({"big.py": text}, {"refilter": keep}, window=4096, reserved=1024)
    request = room_request(files=("big.py",), symbols=("task_0",))
    package = world.retriever(route=route).retrieve(request)
    lines = text.split("\n")
    assert package.primary()
    for item in package.primary():
        assert item.text == "".join(f"{line}\n" for line in lines[item.start_line - 1 : item.end_line])
    assert max(item.end_line for item in package.primary()) == 5 + 1 + 700 + 1
    assert package.budget.used_tokens <= 3072
    assert len(world.asked("refilter")) >= 1
    gone = [row for row in world.decisions(request.pass_id) if "refilter let it go" in row.reason]
    assert gone
    assert all(row.call_id is not None and not row.included for row in gone)


def test_a_line_larger_than_the_room_is_an_error_that_names_it(make: Make) -> None:
    text = f"PACKED = [{', '.join(str(number) for number in range(4000))}]\n"
    world = make({"big.py": text}, window=4096, reserved=1024)
    with pytest.raises(
        WindowExceeded, match=r"big.py :: \(header\) .* about \d+ tokens.* room for code is 3072"
    ) as caught:
        world.retriever().retrieve(room_request(files=("big.py",)))
    assert "context_window" in caught.value.hint


def test_without_a_model_both_routes_are_the_same(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    packages = [
        world.retriever(use_model=False, route=route).retrieve(
            room_request(pass_id=f"{TASK}:impl:p1:s{number}", task="Fix total_price of the cart")
        )
        for number, route in enumerate(("each", "batch"))
    ]
    assert packages[0].items == packages[1].items
    assert world.transport.requests == []

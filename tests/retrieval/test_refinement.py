from collections.abc import Callable

import pytest
from tests.retrieval.shop import IMPORTS, SHOP, choose, large_module
from tests.retrieval.world import TASK, World, context_request

from clean_room_agent.artifacts.context import RefinementRequest

Make = Callable[..., World]
RETRY = f"{TASK}:impl:p1:s1:retry_1"


def test_a_missing_file_comes_in_beside_what_was_there(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    first = world.retriever().retrieve(context_request(files=("shop/cart.py",))).package
    wish = RefinementRequest(
        reason="unknown name", missing_files=("shop/users.py",), error_signatures=("NameError: greet",)
    )
    second = world.retriever().refine(wish, context_request(pass_id=RETRY, files=("shop/cart.py",)))
    assert {item.path for item in second.primary()} == {"shop/cart.py", "shop/users.py"}
    assert {item.path for item in first.primary()} == {"shop/cart.py"}
    assert second.pass_id == RETRY


def test_a_missing_symbol_is_shown_at_least_by_its_signature(make: Make) -> None:
    world = make({**SHOP, "big.py": large_module(20)}, imports=IMPORTS)
    world.retriever().retrieve(context_request(files=("shop/cart.py",)))
    wish = RefinementRequest(reason="unknown name", missing_symbols=("task_3", "not_there"))
    package = world.retriever().refine(wish, context_request(pass_id=RETRY, files=("shop/cart.py",)))
    added = next(item for item in package.items if item.path == "big.py")
    assert (added.symbol, added.detail, added.text) == ("task_3", "supporting", "def task_3(value):\n")
    unknown = [row for row in world.decisions(RETRY) if row.subject.path == "not_there"]
    assert [row.included for row in unknown] == [False]


def test_a_missing_symbol_that_is_judged_primary_is_shown_whole(make: Make) -> None:
    answers = {"precision_batch": choose("change", "big.py :: task_3 ")}
    world = make({**SHOP, "big.py": large_module(20)}, answers, imports=IMPORTS)
    world.retriever().retrieve(context_request(files=("shop/cart.py",)))
    wish = RefinementRequest(reason="unknown name", missing_symbols=("task_3",))
    package = world.retriever().refine(wish, context_request(pass_id=RETRY, files=("shop/cart.py",)))
    assert ("big.py", "task_3") in {(item.path, item.symbol) for item in package.primary()}


def test_one_by_one_a_refinement_asks_the_same_question_about_what_is_named(make: Make) -> None:
    words = {"task_3": "change", "task_4": "read"}
    answers = {"piece_judgment": lambda request: words.get(request.identity.item.rpartition(" ")[2], "skip")}
    world = make({**SHOP, "big.py": large_module(6, lines=20)}, answers, imports=IMPORTS)
    retriever = world.retriever(route="each", each_share=0.0)
    first = retriever.retrieve(context_request(files=("shop/cart.py",))).package
    world.transport.requests.clear()
    wish = RefinementRequest(reason="unknown name", missing_symbols=("task_3",))
    package = retriever.refine(wish, context_request(pass_id=RETRY, files=("shop/cart.py",)))
    added = {item.symbol: item.detail for item in package.items if item.path == "big.py"}
    assert added == {"task_3": "primary", "task_4": "supporting"}
    assert {item.path for item in first.items} <= {item.path for item in package.items}
    assert {call.identity.prompt for call in world.transport.requests} == {"piece_judgment"}
    assert all("## What an earlier attempt missed" in call.prompt for call in world.transport.requests)
    judged = [
        row
        for row in world.decisions(RETRY)
        if row.subject.symbol == "task_3" and row.judgment.call_id is not None
    ]
    assert [(row.stage, row.reason) for row in judged] == [("refinement_merge", "judged change")]


def test_what_was_to_be_changed_in_a_file_stays_when_more_of_it_is_missing(make: Make) -> None:
    answers = {"piece_judgment": lambda request: "change" if "task_9" in request.identity.item else "skip"}
    world = make({"big.py": large_module(20, lines=20)}, answers, window=4096, reserved=1024)
    retriever = world.retriever(route="each", each_share=0.0)
    asked = {"files": ("big.py",), "symbols": ("task_3", "task_4")}
    first = retriever.retrieve(context_request(**asked)).package
    assert {item.symbol for item in first.primary()} == {"(imports)", "task_3", "task_4"}
    world.transport.requests.clear()
    wish = RefinementRequest(reason="a call does not fit", missing_symbols=("task_9",))
    second = retriever.refine(wish, context_request(pass_id=RETRY, **asked))
    assert {item.symbol for item in second.primary()} == {"(imports)", "task_3", "task_4", "task_9"}
    assert not [call for call in world.transport.requests if "task_3" in call.identity.item]


@pytest.mark.parametrize(("window", "fits"), [(16384, True), (8192, False)])
def test_a_file_that_is_wanted_whole_is_shown_so_where_it_fits(make: Make, window: int, fits: bool) -> None:
    text = large_module(20)
    answers = {"piece_judgment": lambda _: "skip"}
    world = make({"big.py": text, "shop/cart.py": SHOP["shop/cart.py"]}, answers, window=window)
    retriever = world.retriever(route="each", each_share=0.0)
    asked = {"files": ("big.py",), "symbols": ("task_3",)}
    first = retriever.retrieve(context_request(**asked)).package
    assert "big.py" not in {item.path for item in first.primary() if item.symbol is None}
    world.transport.requests.clear()
    wish = RefinementRequest(reason="it fails in the same way", whole_files=("big.py", "gone.py"))
    second = retriever.refine(wish, context_request(pass_id=RETRY, **asked))
    shown = [item for item in second.items if item.path == "big.py"]
    assert ([(item.symbol, item.text) for item in shown] == [(None, text)]) is fits
    assert {item.symbol for item in first.primary()} <= {item.symbol for item in shown} or fits
    assert not world.transport.requests
    noted = [
        (row.subject.path, row.included) for row in world.decisions(RETRY) if row.stage == "refinement_merge"
    ]
    assert noted == [("big.py", fits), ("gone.py", False)]


def test_a_missing_test_is_shown_to_be_read(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    world.retriever().retrieve(context_request(files=("shop/cart.py",)))
    wish = RefinementRequest(reason="it fails", missing_tests=("tests/test_cart.py::test_unrelated",))
    package = world.retriever().refine(wish, context_request(pass_id=RETRY, files=("shop/cart.py",)))
    assert ("tests/test_cart.py", "test_unrelated", "supporting") in {
        (item.path, item.symbol, item.detail) for item in package.items
    }


def test_the_merge_is_on_record_under_its_own_name(make: Make) -> None:
    world = make({**SHOP, "big.py": large_module(20)}, imports=IMPORTS)
    world.retriever().retrieve(context_request(files=("shop/cart.py",)))
    wish = RefinementRequest(
        reason="unknown name", missing_symbols=("task_3",), error_signatures=("NameError: task_3",)
    )
    world.retriever().refine(wish, context_request(pass_id=RETRY, files=("shop/cart.py",)))
    stages = {row.stage for row in world.decisions(RETRY)}
    assert stages == {"refinement_merge", "assembly"}
    call = world.transport.requests[-1]
    assert call.identity.item.startswith("refinement_merge:")
    assert "NameError: task_3" in call.prompt


def test_a_second_refinement_goes_on_from_the_first(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    request = context_request(files=("shop/cart.py",))
    world.retriever().retrieve(request)
    world.retriever().refine(
        RefinementRequest(reason="a", missing_files=("shop/users.py",)), context_request(pass_id=RETRY)
    )
    wish = RefinementRequest(reason="b", missing_files=("shop/money.py",))
    package = world.retriever().refine(wish, context_request(pass_id=RETRY.replace("retry_1", "retry_2")))
    assert {item.path for item in package.primary()} == {"shop/cart.py", "shop/users.py", "shop/money.py"}


def test_a_narrowed_file_named_by_the_failure_is_chosen_from_anew(make: Make) -> None:
    answers = {"precision_batch": choose("change", "big.py :: task_7 ")}
    world = make({"big.py": large_module(60)}, answers, window=4096, reserved=1024)
    world.retriever().retrieve(context_request(task="task_7 fails", files=("big.py",)))
    wish = RefinementRequest(
        reason="no match", missing_files=("big.py",), error_signatures=("NO_MATCH: big.py",)
    )
    package = world.retriever().refine(
        wish, context_request(pass_id=RETRY, task="task_7 fails", files=("big.py",))
    )
    assert "task_7" in [item.symbol for item in package.primary()]
    assert package.budget.used_tokens <= 3072
    spans = [(item.path, item.start_line) for item in package.primary()]
    assert len(spans) == len(set(spans))

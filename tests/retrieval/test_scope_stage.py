from collections.abc import Callable

import msgspec
from tests.retrieval.shop import IMPORTS, SHOP
from tests.retrieval.world import World, context_request

from clean_room_agent.artifacts.context import TaskQuery
from clean_room_agent.retrieval.judges import ThresholdJudge
from clean_room_agent.retrieval.retrieval_config import JudgmentsConfig
from clean_room_agent.retrieval.scope_stage import ScopeStage, describe_file
from clean_room_agent.retrieval.stage import Candidate, StageContext

Make = Callable[..., World]


def candidate(path: str, tier: int, score: float) -> Candidate:
    return Candidate(path=path, file_id=1, tier=tier, score=score, reasons=("found",))


def narrowed(
    world: World, *candidates: Candidate, threshold: float = 0.5, **judgments: object
) -> StageContext:
    config = msgspec.convert({"route": "batch", **judgments}, JudgmentsConfig)
    context = StageContext(request=context_request(), available_tokens=1000, candidates=candidates)
    judge = ThresholdJudge(threshold=threshold)
    return ScopeStage(config).run(context, world.source(), TaskQuery(), judge)


def in_scope(context: StageContext) -> list[str]:
    return [entry.path for entry in context.files]


def test_what_a_plan_names_is_all_that_is_in_scope(make: Make) -> None:
    after = narrowed(
        make(SHOP),
        candidate("shop/cart.py", 0, 1.0),
        candidate("shop/money.py", 1, 0.9),
        candidate("b.py", 4, 0.8),
    )
    assert in_scope(after) == ["shop/cart.py"]
    assert after.decisions[-1].reason == "the plan names its files: 2 others are out"


def test_what_defines_a_name_of_the_task_stays_in_scope_beside_a_plans_files(make: Make) -> None:
    entry = candidate("shop/money.py", 1, 0.9)
    entries = (
        candidate("shop/cart.py", 0, 1.0),
        msgspec.structs.replace(entry, reasons=("defines round_amount",)),
        candidate("shop/users.py", 1, 0.8),
    )
    context = StageContext(request=context_request(), available_tokens=1000, candidates=entries)
    stage = ScopeStage(msgspec.convert({}, JudgmentsConfig))
    query = TaskQuery(named=("round_amount", "greet"))
    after = stage.run(context, make(SHOP).source(), query, ThresholdJudge(threshold=0.5))
    assert in_scope(after) == ["shop/cart.py", "shop/money.py"]


def test_what_the_task_names_is_in_without_asking_and_the_rest_by_verdict(make: Make) -> None:
    after = narrowed(
        make(SHOP),
        candidate("shop/cart.py", 1, 0.1),
        candidate("shop/money.py", 4, 1.0),
        candidate("shop/users.py", 4, 0.2),
    )
    assert in_scope(after) == ["shop/cart.py", "shop/money.py"]
    reasons = {one.subject.path: one.reason for one in after.decisions}
    assert reasons["shop/cart.py"] == "in without asking: found"
    assert reasons["shop/users.py"] == "no model asked: score 0.20 is too low: found"


def test_of_many_the_first_are_judged_and_the_others_say_why_not(make: Make) -> None:
    after = narrowed(
        make(SHOP), candidate("shop/cart.py", 4, 1.0), candidate("shop/money.py", 4, 0.9), top_k=1
    )
    assert in_scope(after) == ["shop/cart.py"]
    assert after.decisions[1].reason == "ranks below the first 1: found"
    assert after.decisions[1].verdict is None


def test_where_nothing_is_named_and_all_is_judged_no_the_best_is_taken(make: Make) -> None:
    after = narrowed(
        make(SHOP), candidate("shop/cart.py", 4, 1.0), candidate("shop/money.py", 4, 0.3), threshold=1.1
    )
    assert in_scope(after) == ["shop/cart.py"]
    (taken,) = [one.verdict for one in after.decisions if one.included]
    assert taken is not None
    assert taken.taken


def test_a_named_test_alone_does_not_stand_for_the_code_it_is_about(make: Make) -> None:
    after = narrowed(
        make(SHOP), candidate("tests/test_cart.py", 1, 1.0), candidate("shop/cart.py", 4, 1.0), threshold=1.1
    )
    assert in_scope(after) == ["tests/test_cart.py", "shop/cart.py"]


def test_a_file_is_described_by_what_it_defines_and_the_lines_nearest_to_the_task(make: Make) -> None:
    source = make(SHOP).source()
    shown = describe_file("shop/money.py", {"round": 1.0}, source)
    first, *lines = shown.splitlines()
    assert first.startswith("defines ")
    assert lines
    assert all("round" in line.lower() for line in lines)
    assert describe_file("nowhere.py", {"round": 1.0}, source) == ""


def test_files_asked_about_one_by_one_are_bounded_by_number_and_score(make: Make) -> None:
    world = make(SHOP, {"scope_judgment": "yes"}, imports=IMPORTS)
    request = context_request(task="Fix the total price of the cart")
    world.retriever(route="each", each_files=1, each_share=0.0).retrieve(request)
    assert len(world.asked("scope_judgment")) == 1
    out = [row.reason for row in world.decisions(request.pass_id) if "ranks below the first 1" in row.reason]
    assert out


def test_where_no_file_is_in_scope_the_next_are_asked_about_once_more(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    request = context_request(task="Fix the total price of the cart")
    world.retriever(route="each", each_files=1, each_share=0.0).retrieve(request)
    assert len(world.asked("scope_judgment")) == 2

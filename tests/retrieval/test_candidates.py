from collections.abc import Callable

from tests.retrieval.shop import IMPORTS, SHOP
from tests.retrieval.world import World, context_request

from clean_room_agent.artifacts.evidence import Evidence, FailingTest, StackFrame
from clean_room_agent.db.curated.history import load_pairs
from clean_room_agent.retrieval.analysis import analyse
from clean_room_agent.retrieval.candidates import find_candidates
from clean_room_agent.retrieval.stage import Candidate

Make = Callable[..., World]


def candidates(world: World, **fields: object) -> dict[str, Candidate]:
    request = context_request(**fields)
    source = world.source()
    found, _ = find_candidates(request, analyse(request, source).query, source)
    return {entry.path: entry for entry in found}


def test_tiers_say_how_a_file_was_found(make: Make) -> None:
    world = make({**SHOP, "shop/price_list.py": "PRICE = 1\n"}, imports=IMPORTS)
    found = candidates(world, task="Fix the price in users.py", files=("shop/cart.py",))
    tiers = {path: entry.tier for path, entry in found.items()}
    assert tiers["shop/cart.py"] == 0
    assert tiers["shop/users.py"] == 1
    assert tiers["shop/money.py"] == 2
    assert tiers["shop/price_list.py"] == 4
    assert list(found)[:2] == ["shop/cart.py", "shop/users.py"]


def test_files_that_changed_together_often_enough_are_tier_3(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    ids = {row.path: row.id for row in (world.source().file(path) for path in world.source().paths()) if row}
    pairs = [
        (ids["README.md"], ids["shop/cart.py"], 2, "x"),
        (ids["shop/cart.py"], ids["shop/users.py"], 5, "x"),
    ]
    load_pairs(world.index, pairs)
    found = candidates(world, task="zzz", files=("shop/cart.py",))
    assert found["shop/users.py"].tier == 3
    assert found["shop/users.py"].reasons == ("changed together with shop/cart.py 5 times",)
    assert "README.md" not in found


def test_tests_and_documents_come_after_code_unless_the_task_is_about_them(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    usual = candidates(world, task="The total price of a cart is wrong")
    assert usual["shop/cart.py"].score > usual["README.md"].score > 0
    assert usual["shop/cart.py"].score > usual["tests/test_cart.py"].score
    wanted = candidates(world, task="Test the testing of tests: total price")
    assert wanted["tests/test_cart.py"].score > usual["tests/test_cart.py"].score


def test_evidence_names_files_by_frames_and_by_failing_tests(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    evidence = Evidence(
        tests=(FailingTest(name="tests/test_cart.py::test_total_price_counts"),),
        frames=(
            StackFrame(path="/somewhere/else/shop/money.py", line=4),
            StackFrame(path="lib/unknown.py", line=1),
        ),
    )
    found = candidates(world, task="zzz", evidence=evidence)
    assert found["shop/money.py"].tier == 1
    assert found["tests/test_cart.py"].tier == 1
    assert "imported by tests/test_cart.py" in found["shop/cart.py"].reasons


def test_a_symbol_named_by_the_task_brings_its_file(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    found = candidates(world, task="`format_amount` should group digits")
    assert found["shop/money.py"].tier == 1
    assert "defines format_amount" in found["shop/money.py"].reasons


def test_reasons_begin_with_what_is_named(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    found = candidates(world, task="Fix the cart's price in money.py", files=("shop/cart.py",))
    kinds = [reason.split(" ")[0] for reason in found["shop/money.py"].reasons]
    assert kinds[0] == "named"
    assert kinds[-1] == "imported"

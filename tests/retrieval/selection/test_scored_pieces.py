from collections.abc import Callable

from tests.retrieval.shop import IMPORTS, SHOP, large_module
from tests.retrieval.world import World, context_request

from clean_room_agent.artifacts.tasks import TaskQuery
from clean_room_agent.retrieval.selection.scored_pieces import (
    BODY_LINES,
    LINES_SHOWN,
    TEST_TERM_WEIGHT,
    FilesInScope,
    ScoredPiece,
    files_in_scope,
    is_test,
    weighted_terms,
    words_of,
)
from clean_room_agent.retrieval.stage import Candidate, StageContext

Make = Callable[..., World]


def candidate(world: World, path: str, tier: int = 4) -> Candidate:
    row = world.source().file(path)
    return Candidate(path=path, file_id=row.id if row else 0, tier=tier, score=1.0, reasons=("found",))


def in_scope(world: World, *paths: str, query: TaskQuery | None = None, **request: object) -> FilesInScope:
    files = tuple(candidate(world, path) for path in paths)
    context = StageContext(
        request=context_request(**request), available_tokens=4000, candidates=files, files=files
    )
    return files_in_scope(context, world.source(), query or TaskQuery())


def named(files: FilesInScope, name: str) -> ScoredPiece:
    return next(scored for scored in files.pieces if scored.piece.name == name)


def test_every_piece_of_the_files_is_scored_the_one_asked_for_best(make: Make) -> None:
    files = in_scope(make(SHOP, imports=IMPORTS), "shop/money.py", task="format_amount is wrong")
    assert [scored.piece.name for scored in files.pieces] == [
        "(header)",
        "round_amount",
        "format_amount",
    ]
    assert max(files.pieces, key=lambda scored: scored.score) == named(files, "format_amount")


def test_a_file_that_cannot_be_shown_says_why_and_has_no_pieces(make: Make) -> None:
    files = in_scope(make({"data.bin": b"\x00\x01" * 50}), "data.bin")
    assert (files.pieces, files.views) == ((), ())
    ((entry, why),) = files.unreadable
    assert (entry.path, why.reason.split(":")[0]) == ("data.bin", "not editable")


def test_pieces_of_named_files_rank_before_others_of_like_score(make: Make) -> None:
    world = make(SHOP)
    files = in_scope(world, "shop/money.py")
    scored = named(files, "round_amount")
    by_task = ScoredPiece(
        entry=candidate(world, "shop/money.py", 1),
        view=scored.view,
        piece=scored.piece,
        score=scored.score,
    )
    by_plan = ScoredPiece(
        entry=candidate(world, "shop/money.py", 0),
        view=scored.view,
        piece=scored.piece,
        score=scored.score,
    )
    assert by_plan.rank < by_task.rank < scored.rank


def test_a_short_piece_is_judged_by_its_code_and_a_long_one_by_its_nearest_lines(make: Make) -> None:
    world = make({"small.py": "def short():\n    return 1\n", "big.py": large_module(1, BODY_LINES)})
    files = in_scope(world, "small.py", "big.py", task="step 7 of task_0")
    short, long = named(files, "short"), named(files, "task_0")
    assert short.as_option(files.terms).text == "def short():\n    return 1\n"
    head, doc, *lines = long.as_option(files.terms).text.splitlines()
    assert (head, doc) == ("def task_0(value):", "    Do number 0.")
    assert 0 < len(lines) <= LINES_SHOWN
    assert long.as_option(files.terms).key == f"big.py:{long.piece.start_line} :: task_0"


def test_a_selected_piece_carries_its_lines_and_its_outline(make: Make) -> None:
    scored = named(in_scope(make(SHOP), "shop/money.py"), "round_amount")
    chosen = scored.select("supporting", "judged read")
    assert (chosen.symbol, chosen.start_line, chosen.end_line) == ("round_amount", 4, 6)
    assert chosen.outline == "def round_amount(value):\n    Round to cents.\n"
    assert scored.text == 'def round_amount(value):\n    """Round to cents."""\n    return round(value, 2)\n'


def test_words_of_failing_tests_weigh_less_than_the_tasks_own(make: Make) -> None:
    world = make(SHOP, imports=IMPORTS)
    query = TaskQuery(test_names=("tests/test_cart.py::test_total_price_counts",))
    files = in_scope(world, "shop/cart.py", query=query, task="cart")
    terms = weighted_terms(context_request(task="cart"), query, files.tests)
    assert terms["cart"] > TEST_TERM_WEIGHT
    assert terms["price"] == TEST_TERM_WEIGHT
    assert "total_price" in words_of(files.tests)


def test_a_file_of_tests_is_told_by_its_path(make: Make) -> None:
    world = make(SHOP)
    assert is_test(candidate(world, "tests/test_cart.py"))
    assert not is_test(candidate(world, "shop/cart.py"))

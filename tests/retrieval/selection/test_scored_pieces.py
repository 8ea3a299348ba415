from collections.abc import Callable

import pytest
from tests.retrieval.shop import IMPORTS, SHOP, large_module
from tests.retrieval.world import World, context_request

from clean_room_agent.artifacts.context import TaskQuery
from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.db.curated.files import FileRow
from clean_room_agent.retrieval.code.pieces import Definition, Piece, PieceKind
from clean_room_agent.retrieval.context_files import FileText
from clean_room_agent.retrieval.selection.scored_pieces import (
    BODY_LINES,
    LINES_SHOWN,
    TEST_TERM_WEIGHT,
    FilesInScope,
    Hints,
    ScoredPiece,
    files_in_scope,
    holds_frame,
    is_named,
    is_named_outright,
    is_test,
    matches_name,
    score_pieces,
    weighted_terms,
    words_of,
)
from clean_room_agent.retrieval.stage import Candidate, StageContext
from clean_room_agent.retrieval.stage_source import FileView

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


NO_HINTS = Hints(planned=frozenset(), named=frozenset(), frames=(), wants_tests=False)
LINES = ("def add(item):", "    keep(item)", "def total():", "    return add(1)")


def piece(name: str, start: int, end: int, kind: PieceKind = "symbol") -> Piece:
    return Piece(name=name, kind=kind, start_line=start, end_line=end, signature="")


def definition(name: str, start: int, end: int) -> Definition:
    return Definition(
        symbol_id=start, name=name, kind="function", start_line=start, end_line=end, signature=""
    )


def view(path: str = "cart.py") -> FileView:
    row = FileRow(id=1, path=path, language="python", content_hash="", size_bytes=0, parse_error=None)
    return FileView(
        row=row,
        text=FileText(path=path, lines=LINES, content_hash=""),
        definitions=(definition("add", 1, 2), definition("total", 3, 4)),
        pieces=(piece("add", 1, 2), piece("total", 3, 4)),
    )


def hints(**fields: object) -> Hints:
    values: dict[str, object] = {
        "planned": frozenset(),
        "named": frozenset(),
        "frames": (),
        "wants_tests": False,
    }
    return Hints(**{**values, **fields})  # type: ignore[arg-type]


def test_the_piece_whose_name_is_asked_for_is_nearer_than_one_that_uses_it() -> None:
    scores = score_pieces([view()], {"add": 1.0}, NO_HINTS)
    assert scores["cart.py", 1] == 1.0
    assert 0 < scores["cart.py", 3] < 1.0


def test_without_terms_or_hints_nothing_is_near() -> None:
    assert set(score_pieces([view()], {}, NO_HINTS).values()) == {0.0}
    assert score_pieces([], {"add": 1.0}, NO_HINTS) == {}


@pytest.mark.parametrize(
    "found",
    [
        hints(planned=frozenset({"total"})),
        hints(named=frozenset({"total"})),
        hints(frames=(StackFrame(path="cart.py", line=4, function=""),)),
        hints(test_words=frozenset({"total"})),
    ],
)
def test_each_hint_brings_its_piece_to_the_top_where_words_say_nothing(found: Hints) -> None:
    scores = score_pieces([view()], {}, found)
    assert scores == {("cart.py", 1): 0.0, ("cart.py", 3): 1.0}


def test_a_piece_of_a_test_counts_little_unless_the_task_is_about_tests() -> None:
    views = [view(), view("tests/test_cart.py")]
    usual = score_pieces(views, {"add": 1.0}, NO_HINTS)
    assert usual["tests/test_cart.py", 1] == pytest.approx(usual["cart.py", 1] / 10)
    wanted = score_pieces(views, {"add": 1.0}, hints(wants_tests=True))
    assert wanted["tests/test_cart.py", 1] == wanted["cart.py", 1]


def test_a_name_means_a_definition_by_its_last_parts() -> None:
    assert matches_name("Cart.add", frozenset({"add"}))
    assert matches_name("Shop.Cart.add", frozenset({"Cart.add"}))
    assert not matches_name("Cart.readd", frozenset({"add"}))
    assert not matches_name("add", frozenset({"Cart.add"}))


def test_other_code_is_named_by_nothing() -> None:
    assert not is_named(piece("(imports)", 1, 1, "imports"), frozenset({"(imports)"}))


def test_the_head_of_a_large_class_is_named_and_not_meant_to_be_shown_for_it() -> None:
    head = piece("Cart (head)", 1, 2, "head")
    assert is_named(head, frozenset({"Cart"}))
    assert not is_named_outright(head, hints(named_outright=frozenset({"Cart"})))
    assert is_named_outright(piece("Cart", 1, 2), hints(named_outright=frozenset({"Cart"})))


def test_a_frame_lies_in_the_lines_of_its_own_file() -> None:
    frames = (StackFrame(path="cart.py", line=2, function=""),)
    assert holds_frame("cart.py", piece("add", 1, 2), frames)
    assert not holds_frame("cart.py", piece("total", 3, 4), frames)
    assert not holds_frame("other.py", piece("add", 1, 2), frames)

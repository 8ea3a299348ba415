import pytest

from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.db.curated.files import FileRow
from clean_room_agent.retrieval.code.pieces import Definition, Piece, PieceKind
from clean_room_agent.retrieval.context_files import FileText
from clean_room_agent.retrieval.selection.relevance import (
    Hints,
    holds_frame,
    is_named,
    is_named_outright,
    matches_name,
    score_pieces,
)
from clean_room_agent.retrieval.stage_source import FileView

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

import math
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.retrieval.shop import IMPORTS, SHOP, large_module
from tests.retrieval.world import World, context_request

from clean_room_agent.artifacts.context import TaskQuery
from clean_room_agent.artifacts.evidence import StackFrame
from clean_room_agent.db.curated.files import FileRow
from clean_room_agent.indexer.terms import count_terms
from clean_room_agent.retrieval.pieces import CodePiece, IndexedDefinition, PieceKind
from clean_room_agent.retrieval.scored_pieces import (
    BODY_LINES,
    LINES_SHOWN,
    NOTES_SHOWN,
    TEST_TERM_WEIGHT,
    FilesInScope,
    PieceHints,
    ScoredPiece,
    files_in_scope,
    holds_frame,
    is_named,
    is_named_outright,
    matches_name,
    names_outline,
    nearest_lines,
    score_pieces,
    summary,
    weighted_terms,
    words_of,
)
from clean_room_agent.retrieval.stage import Candidate, StageContext
from clean_room_agent.retrieval.stage_source import FileText, FileView

LINES = ["total = 0", "    for price in prices:", "        total += price", "", "return round(total)"]
Make = Callable[..., World]
NO_HINTS = PieceHints(planned=frozenset(), named=frozenset(), frames=(), wants_tests=False)
LINES_OF_SCORED_PIECES = ("def add(item):", "    keep(item)", "def total():", "    return add(1)")


def test_the_lines_that_hold_what_is_asked_for_come_in_the_order_of_the_file() -> None:
    assert nearest_lines(LINES, {"price": 1.0, "round": 1.0}, most=3) == (
        (2, "for price in prices:"),
        (3, "total += price"),
        (5, "return round(total)"),
    )


def test_of_many_lines_those_with_the_rarest_words_are_shown() -> None:
    assert nearest_lines(LINES, {"total": 1.0, "round": 1.0}, most=1) == ((5, "return round(total)"),)


def test_a_word_that_weighs_more_counts_more() -> None:
    lines = ["alpha", "beta"]
    assert nearest_lines(lines, {"alpha": 0.3, "beta": 1.0}, most=1) == ((2, "beta"),)
    assert nearest_lines(lines, {"alpha": 1.0, "beta": 1.0}, most=1) == ((1, "alpha"),)


def nearest_by_definition(lines: list[str], terms: dict[str, float], *, most: int) -> list[int]:
    bags = [count_terms(line).keys() & terms.keys() for line in lines]
    held = Counter(term for bag in bags for term in bag)
    scores = [sum(terms[term] / math.log(2 + held[term]) for term in sorted(bag)) for bag in bags]
    best = sorted((place for place, bag in enumerate(bags) if bag), key=lambda at: (-scores[at], at))
    return sorted(place + 1 for place in best[:most])


@given(
    st.lists(st.text(alphabet="aByé3 _-=", max_size=12), max_size=12),
    st.dictionaries(
        st.sampled_from(["a", "by", "bi", "ab", "aa", "é", "a3", "ab_y"]), st.floats(0.1, 2), max_size=4
    ),
    st.integers(1, 4),
)
def test_no_line_with_a_wanted_term_is_overlooked(
    lines: list[str], terms: dict[str, float], most: int
) -> None:
    found = [number for number, _ in nearest_lines(lines, terms, most=most)]
    assert found == nearest_by_definition(lines, terms, most=most)


@given(
    st.lists(st.text(alphabet="ab _=", max_size=12), max_size=12),
    st.dictionaries(st.sampled_from(["a", "b", "aa", "ab"]), st.floats(0.1, 2), max_size=3),
    st.integers(1, 4),
)
def test_what_is_quoted_are_lines_of_the_file(lines: list[str], terms: dict[str, float], most: int) -> None:
    found = nearest_lines(lines, terms, most=most)
    assert len(found) <= most
    assert [number for number, _ in found] == sorted({number for number, _ in found})
    assert all(text == lines[number - 1].strip() for number, text in found)


def piece(**fields: object) -> CodePiece:
    values: dict[str, object] = {
        "name": "f",
        "kind": "symbol",
        "start_line": 1,
        "end_line": 2,
        "signature": "def f(a):",
    }
    return CodePiece(**{**values, **fields})  # type: ignore[arg-type]


def test_a_summary_has_signature_documentation_and_the_first_reasons() -> None:
    notes = tuple(f"(line {number}: because)" for number in range(NOTES_SHOWN + 2))
    shown = summary(piece(doc="Do it.\n\nWell.", notes=notes))
    assert shown.splitlines() == [
        "def f(a):",
        "    Do it.",
        "",
        "    Well.",
        *(f"    {note}" for note in notes[:NOTES_SHOWN]),
    ]


def view(*entries: tuple[str, str, int, int]) -> FileView:
    definitions = tuple(
        IndexedDefinition(symbol_id=start, name=name, kind=kind, start_line=start, end_line=end, signature="")
        for name, kind, start, end in entries
    )
    row = FileRow(id=1, path="a.py", language="python", content_hash="", size_bytes=0, parse_error=None)
    text = FileText(path="a.py", lines=("x",) * 9, content_hash="")
    return FileView(row=row, text=text, definitions=definitions, pieces=())


def test_an_outline_names_the_nearest_definitions_in_the_order_of_their_lines() -> None:
    entries = view(
        ("A", "class", 1, 6), ("A.f", "method", 2, 3), ("g", "function", 7, 8), ("LIMIT", "variable", 9, 9)
    )
    assert names_outline(entries, lambda entry: -entry.start_line, most=9) == "1-6 A\n2-3 A.f\n7-8 g\n"
    assert (
        names_outline(entries, lambda entry: entry.start_line, most=2)
        == "2-3 A.f\n7-8 g\n(1 more definitions)\n"
    )


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
    files = in_scope(world, "small.py", "big.py", task="step 7 of task_0, which is to do number 0")
    short, long = named(files, "short"), named(files, "task_0")
    assert short.as_option(files.terms).text == "def short():\n    return 1\n"
    head, doc, *lines = long.as_option(files.terms).text.splitlines()
    assert (head, doc) == ("def task_0(value):", "    Do number 0.")
    assert 0 < len(lines) <= LINES_SHOWN
    assert not [line for line in lines if "def task_0" in line or "Do number 0" in line]
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


def piece_of_scored_pieces(name: str, start: int, end: int, kind: PieceKind = "symbol") -> CodePiece:
    return CodePiece(name=name, kind=kind, start_line=start, end_line=end, signature="")


def definition(name: str, start: int, end: int) -> IndexedDefinition:
    return IndexedDefinition(
        symbol_id=start, name=name, kind="function", start_line=start, end_line=end, signature=""
    )


def view_of_scored_pieces(path: str = "cart.py") -> FileView:
    row = FileRow(id=1, path=path, language="python", content_hash="", size_bytes=0, parse_error=None)
    return FileView(
        row=row,
        text=FileText(path=path, lines=LINES_OF_SCORED_PIECES, content_hash=""),
        definitions=(definition("add", 1, 2), definition("total", 3, 4)),
        pieces=(piece_of_scored_pieces("add", 1, 2), piece_of_scored_pieces("total", 3, 4)),
    )


def hints(**fields: object) -> PieceHints:
    values: dict[str, object] = {
        "planned": frozenset(),
        "named": frozenset(),
        "frames": (),
        "wants_tests": False,
    }
    return PieceHints(**{**values, **fields})  # type: ignore[arg-type]


def test_the_piece_whose_name_is_asked_for_is_nearer_than_one_that_uses_it() -> None:
    scores = score_pieces([view_of_scored_pieces()], {"add": 1.0}, NO_HINTS)
    assert scores["cart.py", 1] == 1.0
    assert 0 < scores["cart.py", 3] < 1.0


@pytest.mark.parametrize(
    "found",
    [
        hints(planned=frozenset({"total"})),
        hints(named=frozenset({"total"})),
        hints(frames=(StackFrame(path="cart.py", line=4, function=""),)),
        hints(test_words=frozenset({"total"})),
    ],
)
def test_each_hint_brings_its_piece_to_the_top_where_words_say_nothing(found: PieceHints) -> None:
    scores = score_pieces([view_of_scored_pieces()], {}, found)
    assert scores == {("cart.py", 1): 0.0, ("cart.py", 3): 1.0}


def test_a_piece_of_a_test_counts_little_unless_the_task_is_about_tests() -> None:
    views = [view_of_scored_pieces(), view_of_scored_pieces("tests/test_cart.py")]
    usual = score_pieces(views, {"add": 1.0}, NO_HINTS)
    assert usual["tests/test_cart.py", 1] == pytest.approx(usual["cart.py", 1] / 10)
    wanted = score_pieces(views, {"add": 1.0}, hints(wants_tests=True))
    assert wanted["tests/test_cart.py", 1] == wanted["cart.py", 1]


def test_a_name_means_a_definition_by_its_last_parts() -> None:
    assert matches_name("Cart.add", frozenset({"add"}))
    assert matches_name("Shop.Cart.add", frozenset({"Cart.add"}))
    assert not matches_name("Cart.readd", frozenset({"add"}))
    assert not matches_name("add", frozenset({"Cart.add"}))


def test_the_head_of_a_large_class_is_named_and_not_meant_to_be_shown_for_it() -> None:
    head = piece_of_scored_pieces("Cart (head)", 1, 2, "head")
    assert is_named(head, frozenset({"Cart"}))
    assert not is_named_outright(head, hints(named_outright=frozenset({"Cart"})))
    assert is_named_outright(piece_of_scored_pieces("Cart", 1, 2), hints(named_outright=frozenset({"Cart"})))


def test_a_frame_lies_in_the_lines_of_its_own_file() -> None:
    frames = (StackFrame(path="cart.py", line=2, function=""),)
    assert holds_frame("cart.py", piece_of_scored_pieces("add", 1, 2), frames)
    assert not holds_frame("cart.py", piece_of_scored_pieces("total", 3, 4), frames)
    assert not holds_frame("other.py", piece_of_scored_pieces("add", 1, 2), frames)

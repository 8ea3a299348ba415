import pytest

from clean_room_agent.indexer.terms import terms_of
from clean_room_agent.query.search_query import query_terms, surface_forms


def test_the_first_line_weighs_twice_and_repeats_are_damped() -> None:
    weights = query_terms("Fix rounding\n\nrounding rounding totals")
    assert weights["fix"] == 2
    assert weights["total"] == 1
    assert weights["round"] == pytest.approx(2 + 1 + 0.6931, abs=1e-3)


def test_compounds_weigh_twice_beside_their_parts() -> None:
    assert query_terms("get_invoice") == {"get": 2, "get_invoice": 4, "invoic": 2}


def test_terms_are_sorted_so_that_sums_do_not_depend_on_hashing() -> None:
    assert list(query_terms("zebra apple mango")) == ["appl", "mango", "zebra"]


def test_terms_are_called_what_the_text_calls_them() -> None:
    spoken = surface_forms("Ways to parse_reply: parsing replies")
    assert spoken["parse_reply"] == "parse_reply"
    assert spoken[next(iter(terms_of("ways")))] == "ways"
    assert spoken[next(iter(terms_of("replies")))] == "reply"

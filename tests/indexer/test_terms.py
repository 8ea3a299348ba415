import pytest
from hypothesis import given
from hypothesis import strategies as st

from clean_room_agent.indexer.terms import count_terms, stem, terms_of


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"), ("ponies", "poni"), ("cats", "cat"), ("agreed", "agre"), ("plastered", "plaster"),
        ("motoring", "motor"), ("conflated", "conflat"), ("hopping", "hop"), ("filing", "file"), ("happy", "happi"),
        ("sky", "sky"), ("relational", "relat"), ("digitizer", "digit"), ("triplicate", "triplic"),
        ("electrical", "electr"), ("adjustment", "adjust"), ("adoption", "adopt"), ("controll", "control"),
        ("rate", "rate"), ("cease", "ceas"), ("generalizations", "gener"), ("is", "is"), ("größe", "größe"),
    ],
)  # fmt: skip
def test_stems_are_porters(word: str, expected: str) -> None:
    assert stem(word) == expected


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=20))
def test_a_stem_is_never_empty_and_hardly_longer(word: str) -> None:
    assert 0 < len(stem(word)) <= len(word) + 1


@pytest.mark.parametrize(
    ("word", "terms"),
    [
        ("parse_args", ("pars", "arg", "parse_args")),
        ("parseArgs", ("pars", "arg", "parseargs")),
        ("HTTPServer", ("http", "server", "httpserver")),
        ("__init__", ("init",)),
        ("the", ()),
        ("x", ()),
        ("utf8", ("utf", "utf8")),
        ("Größe", ("größe",)),
        ("größe_mal_2", ("größe", "mal", "größe_mal_2")),
        ("a" * 65, ()),
    ],
)
def test_identifiers_are_split_and_kept(word: str, terms: tuple[str, ...]) -> None:
    assert terms_of(word) == terms


def test_terms_are_counted_over_all_their_words() -> None:
    assert count_terms("running run_fast, RUN 42") == {"run": 3, "fast": 1, "run_fast": 1}

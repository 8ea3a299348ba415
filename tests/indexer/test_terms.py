import pytest

from clean_room_agent.indexer.terms import stem, terms_of


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

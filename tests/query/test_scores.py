import contextlib
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.index_dump import index
from testing.repositories import commit, make_repository

from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.curated import symbols
from clean_room_agent.db.curated.files import list_files
from clean_room_agent.query.history import CommitHistory
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.query.scores import SATURATION, ChunkScores, DefinitionScore, FieldScores

FILES = {
    "a.py": '"""Parse."""\ndef parse(text):\n    return text\n',
    "b.py": "def other(text):\n    return parse(text)\n",
    "c.py": "def third(text):\n    return text\n",
}
A, B, C = 1, 2, 3
CHUNKED_FILES = {
    "one.py": (
        "def parse_date(text):\n    return split_date(text)\n\n\n"
        "def other(text):\n    return text\n\n\n"
        "def format_date(day):\n    return day\n"
    ),
    "far.py": "def other(text):\n    return text\n",
    "note.md": "parse date\n",
}


@pytest.fixture(scope="module")
def fields(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FieldScores]:
    top: Path = make_repository(tmp_path_factory.mktemp("fields") / "repo", FILES)
    commit(top, {"c.py": FILES["c.py"] + "\n"}, "Parse no more")
    index(top)
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        assert [file.path for file in list_files(conn)] == ["a.py", "b.py", "c.py"]
        yield FieldScores(conn, CommitHistory(conn))


def test_a_definition_counts_more_than_a_use_and_that_more_than_a_message(fields: FieldScores) -> None:
    gains = fields.gains("pars", 1.0).gains
    assert gains[A] > gains[B] > gains[C] > 0


def test_a_gain_grows_with_the_weight_and_never_beyond_weight_times_rarity(fields: FieldScores) -> None:
    once, twice = fields.gains("pars", 1.0).gains, fields.gains("pars", 2.0).gains
    assert {file_id: 2 * gain for file_id, gain in once.items()} == pytest.approx(twice)
    everywhere = math.log(1 + 0.5 / 3.5)
    assert max(once.values()) < everywhere
    assert SATURATION > 0


def test_the_fields_that_hold_a_term_are_named_the_weightiest_first(fields: FieldScores) -> None:
    term = fields.gains("pars", 1.0)
    assert fields.holders(term, A) == ("symbols", "body", "docstrings")
    assert fields.holders(term, B) == ("body",)
    assert fields.holders(term, C) == ("history",)


def test_a_term_that_no_file_holds_is_of_no_worth(fields: FieldScores) -> None:
    assert fields.rarity("nowhere") == 0.0
    assert fields.gains("nowhere", 1.0).gains == {}


def test_among_few_files_every_term_is_distinctive(fields: FieldScores) -> None:
    assert fields.is_distinctive("text")


def score(kb: KnowledgeBase, path: str, **weights: float) -> DefinitionScore | None:
    file = kb.get_file_by_path(path)
    assert file is not None
    return ChunkScores(kb._conn).score({file.id: path}, weights).get(file.id)


def test_the_definition_that_says_most_is_the_nearest(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", CHUNKED_FILES)
    index(top)
    with contextlib.closing(get_connection("curated", repo_path=top, read_only=True)) as conn:
        kb = KnowledgeBase(conn)
        found = score(kb, "one.py", pars=1.0, date=1.0)
        only = score(kb, "one.py", format=1.0)
        assert found is not None
        assert only is not None
        file = kb.get_file_by_path("one.py")
        assert file is not None
        names = {
            one.best: symbols.get_symbol(conn, symbols.first_symbol_id(file.id) + one.best)
            for one in (found, only)
        }
        assert [symbol.name if symbol else "" for symbol in names.values()] == ["parse_date", "format_date"]
        more = score(kb, "one.py", pars=2.0, date=2.0)
        assert more is not None
        assert more.score == 2 * found.score
        assert score(kb, "far.py", pars=1.0, date=1.0) is None
        assert score(kb, "note.md", pars=1.0) is None
        assert score(kb, "one.py") is None

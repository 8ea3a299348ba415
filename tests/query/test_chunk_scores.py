import contextlib
from pathlib import Path

from testing.index_dump import index
from testing.repositories import make_repository

from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.curated import symbols
from clean_room_agent.query.chunk_scores import ChunkScores, DefinitionScore
from clean_room_agent.query.knowledge import KnowledgeBase

FILES = {
    "one.py": (
        "def parse_date(text):\n    return split_date(text)\n\n\n"
        "def other(text):\n    return text\n\n\n"
        "def format_date(day):\n    return day\n"
    ),
    "far.py": "def other(text):\n    return text\n",
    "note.md": "parse date\n",
}


def score(kb: KnowledgeBase, path: str, **weights: float) -> DefinitionScore | None:
    file = kb.get_file_by_path(path)
    assert file is not None
    return ChunkScores(kb._conn).score({file.id: path}, weights).get(file.id)


def test_the_definition_that_says_most_is_the_nearest(tmp_path: Path) -> None:
    top = make_repository(tmp_path / "repo", FILES)
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

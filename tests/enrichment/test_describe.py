import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from testing.client.scripted_transport import Scripted, ScriptedTransport
from testing.index_dump import index
from testing.repositories import make_repository
from tests.retrieval.world import RecordSink, clock

from clean_room_agent.db.connection import connect_file, get_connection
from clean_room_agent.db.curated import files, metadata
from clean_room_agent.db.curated.files import FileRow
from clean_room_agent.db.curated.metadata import FileMetadataRow
from clean_room_agent.db.raw.indexing import (
    ENRICHMENT_OUTPUTS,
    DescriptionRow,
    EnrichmentRow,
    append_enrichment,
    list_descriptions,
    mark_promoted,
)
from clean_room_agent.db.raw.record import Record
from clean_room_agent.enrichment.describe import Described, Describer, find_due_files, promote
from clean_room_agent.errors import ServerFailed
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.model_config import BudgetConfig, ModelsConfig
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.query.knowledge import KnowledgeBase

FILES = {
    "cart.py": "import money\n",
    "money.py": "ZERO = 0\n",
    "shop.py": "import money\nimport cart\n",
    "empty.py": "",
    "notes.md": "A shop.\n",
    ".env": "KEY=1\n",
}
ANSWER = {
    "complexity_notes": "",
    "concepts": ["cart"],
    "domain": "shop",
    "module": "shop",
    "public_api_surface": [],
    "purpose": "Hold a cart.",
}
PASS = "11111111-2222-4333-8444-555555555555"


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_repository(tmp_path_factory.mktemp("describe") / "repo", FILES)
    index(made)
    return made


@pytest.fixture
def kb(top: Path) -> Iterator[KnowledgeBase]:
    conn = get_connection("curated", repo_path=top, read_only=True)
    yield KnowledgeBase(conn)
    conn.close()


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    opened = Record.open(tmp_path, clock=clock)
    yield opened
    opened.close()


def described(kb: KnowledgeBase, path: str) -> DescriptionRow:
    file = kb.get_file_by_path(path)
    assert file is not None
    return DescriptionRow(
        id=1, path=path, content_hash=file.content_hash, promoted=False, purpose="p", module="", domain="",
        concepts=(), public_api_surface=(), complexity_notes="",
    )  # fmt: skip


def paths(files: list[FileRow]) -> list[str]:
    return [file.path for file in files]


def describe(
    kb: KnowledgeBase, top: Path, record: Record, answer: Scripted | ServerFailed
) -> list[Described]:
    def scripted(_: ChatRequest) -> Scripted:
        if isinstance(answer, ServerFailed):
            raise answer
        return answer

    router = ModelRouter(
        ModelsConfig(base_url="http://127.0.0.1:1", coding="c", reasoning="r", retries=0),
        BudgetConfig(context_window=8192, reserved_tokens=2048),
    )
    models = ModelClient(router, ScriptedTransport(scripted), RecordSink(record), clock)
    describer = Describer(kb=kb, root=top, models=models, model_tag="r", record=record, pass_id=PASS)
    _, due = find_due_files(kb, (), every=False)
    return list(describer.describe(due, parallel=1))


def test_code_is_due_the_most_imported_first_and_no_empty_file(kb: KnowledgeBase) -> None:
    assert paths(find_due_files(kb, (), every=False)[1]) == ["money.py", "cart.py", "shop.py"]


def test_all_text_files_are_due_on_request_but_none_that_holds_secrets(kb: KnowledgeBase) -> None:
    assert paths(find_due_files(kb, (), every=True)[1]) == ["money.py", "cart.py", "shop.py", "notes.md"]


def test_what_is_described_as_it_is_now_is_not_due(kb: KnowledgeBase) -> None:
    known, due = find_due_files(kb, [described(kb, "cart.py")], every=False)
    assert (paths(known), paths(due)) == (["cart.py"], ["money.py", "shop.py"])


def test_each_file_is_described_and_its_answer_on_record(
    kb: KnowledgeBase, top: Path, record: Record
) -> None:
    assert describe(kb, top, record, json.dumps(ANSWER)) == [
        Described(path=path, purpose="Hold a cart.") for path in ("money.py", "cart.py", "shop.py")
    ]
    assert [row.path for row in record.write(list_descriptions)] == ["cart.py", "money.py", "shop.py"]


def test_a_server_that_fails_at_a_file_is_asked_about_the_next(
    kb: KnowledgeBase, top: Path, record: Record
) -> None:
    failed = describe(kb, top, record, ServerFailed("out of memory"))
    assert [file.path for file in failed] == ["money.py", "cart.py", "shop.py"]
    assert all("out of memory" in file.reason for file in failed)


INSERT_FILE = """
INSERT INTO files (id, repo_id, path, language, content_hash, size_bytes) VALUES (?, ?, ?, 'python', ?, 1)
"""
PATHS = ("a.py", "b.py", "c.py")


@pytest.fixture
def curated(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(connect_file("curated", tmp_path / "curated.sqlite")) as conn:
        repo = files.put_repo(conn, path="/r", remote_url=None, indexed_at="2026-01-02T03:04:05Z")
        for number, path in enumerate(PATHS, start=1):
            conn.execute(INSERT_FILE, (number, repo, path, f"{path} now"))
        yield conn


def description(number: int, path: str, content: str = "now", *, promoted: bool = False) -> DescriptionRow:
    return DescriptionRow(
        id=number,
        path=path,
        content_hash=f"{path} {content}",
        purpose=f"purpose {number}",
        module="m",
        domain="Money",
        concepts=("ä", "b"),
        public_api_surface=(),
        complexity_notes="",
        promoted=promoted,
    )


def purposes(curated: sqlite3.Connection) -> dict[int, str | None]:
    return {row.file_id: row.purpose for row in metadata.list_metadata(curated)}


def test_current_descriptions_come_in_and_others_do_not(curated: sqlite3.Connection) -> None:
    known = [description(1, "a.py"), description(2, "b.py", "before"), description(3, "gone.py")]
    done, ids = promote(curated, known)
    assert (done.promoted, done.unchanged, done.outdated, ids) == (1, 0, ("b.py",), (1,))
    assert purposes(curated) == {1: "purpose 1"}


def test_promoting_again_changes_nothing(curated: sqlite3.Connection) -> None:
    known = [description(1, "a.py")]
    promote(curated, known)
    before = curated.total_changes
    done, ids = promote(curated, [replace(known[0], promoted=True)])
    assert (done.promoted, done.unchanged, ids) == (0, 1, ())
    assert curated.total_changes == before


def test_a_newer_description_takes_the_place_of_the_old_one(curated: sqlite3.Connection) -> None:
    promote(curated, [description(1, "a.py")])
    done, ids = promote(curated, [description(1, "a.py"), description(5, "a.py")])
    assert (done.promoted, ids) == (1, (5,))
    assert purposes(curated) == {1: "purpose 5"}


def test_a_file_that_changed_loses_its_description(curated: sqlite3.Connection) -> None:
    promote(curated, [description(1, "a.py"), description(2, "b.py")])
    curated.execute("UPDATE files SET content_hash = 'new' WHERE path = 'a.py'")
    assert promote(curated, [description(1, "a.py"), description(2, "b.py")])[0].outdated == ("a.py",)
    assert purposes(curated) == {2: "purpose 2"}


def test_descriptions_that_the_record_knows_nothing_of_stay(curated: sqlite3.Connection) -> None:
    own = FileMetadataRow(
        file_id=3,
        purpose="by hand",
        module=None,
        domain=None,
        concepts=(),
        public_api_surface=(),
        complexity_notes=None,
    )
    metadata.put_metadata(curated, [own])
    promote(curated, [description(1, "a.py")])
    assert metadata.get_metadata(curated, 3) == own


def test_nothing_comes_in_where_something_fails(curated: sqlite3.Connection) -> None:
    curated.execute(
        "CREATE TRIGGER no_b BEFORE INSERT ON file_metadata WHEN NEW.file_id = 2 "
        "BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with pytest.raises(sqlite3.IntegrityError):
        promote(curated, [description(1, "a.py"), description(2, "b.py")])
    assert purposes(curated) == {}


def test_what_is_promoted_is_found_whatever_the_case(curated: sqlite3.Connection) -> None:
    promote(curated, [description(1, "a.py")])
    for wanted in (
        {"domain": "money"},
        {"module": "M"},
        {"concept": "B"},
        {"domain": "MONEY", "concept": "ä"},
    ):
        given = {"domain": None, "module": None, "concept": None} | wanted
        found = metadata.search_by_metadata(curated, **given)
        assert [file.path for file in found] == ["a.py"], wanted


def test_of_several_descriptions_of_one_content_the_newest_is_listed(tmp_path: Path) -> None:
    def row(content_hash: str, purpose: str) -> EnrichmentRow:
        return EnrichmentRow(
            file_id=1,
            path="a.py",
            content_hash=content_hash,
            model="m",
            purpose=purpose,
            module="",
            domain="",
            raw_prompt="?",
            raw_response="!",
            timestamp="2026-01-02T03:04:05Z",
        )

    with contextlib.closing(connect_file("raw", tmp_path / "raw.sqlite")) as conn:
        ids = [append_enrichment(conn, row(*said)) for said in (("x", "1"), ("y", "2"), ("x", "3"))]
        assert [each.purpose for each in list_descriptions(conn)] == ["2", "3"]
        mark_promoted(conn, ids[1:])
        assert [each.promoted for each in ENRICHMENT_OUTPUTS.select(conn, "ORDER BY path, id")] == [
            False,
            True,
            True,
        ]

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from testing.client.scripted_transport import Scripted, ScriptedTransport
from testing.index_dump import index
from testing.repositories import make_repository
from tests.retrieval.world import RecordSink, clock

from clean_room_agent.db.connection import get_connection
from clean_room_agent.db.curated.files import FileRow
from clean_room_agent.db.raw.indexing import DescriptionRow, list_descriptions
from clean_room_agent.db.raw.record import Record
from clean_room_agent.enrichment.describe import (
    FAILURES_IN_A_ROW,
    Described,
    Describer,
    find_due_files,
)
from clean_room_agent.errors import ServerFailed
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.config import BudgetConfig, ModelsConfig
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
    kb: KnowledgeBase, top: Path, record: Record, answer: Scripted | ServerFailed, *, max_unreadable: int = 5
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
    return list(describer.describe(due, parallel=1, max_unreadable=max_unreadable))


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


def test_after_too_many_unreadable_answers_no_further_file_is_asked_about(
    kb: KnowledgeBase, top: Path, record: Record
) -> None:
    (file,) = describe(kb, top, record, "a cart", max_unreadable=1)
    assert file.reason.startswith("the answer cannot be read: ")


def test_a_server_that_keeps_failing_is_an_error(kb: KnowledgeBase, top: Path, record: Record) -> None:
    assert FAILURES_IN_A_ROW == 3
    with pytest.raises(ServerFailed, match="out of memory"):
        describe(kb, top, record, ServerFailed("out of memory"))

"""A tiny indexed repository, and everything a retriever needs around it, with a scripted model."""

import ast
import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from testing.client.scripted_transport import Scripted, ScriptedTransport

from clean_room_agent.artifacts.context import ContextRequest
from clean_room_agent.artifacts.model_calls import AnswerReading, ModelCall
from clean_room_agent.db.connection import connect_file
from clean_room_agent.db.curated import files, postings, symbols
from clean_room_agent.db.curated.names import Resolution, insert_resolutions
from clean_room_agent.db.raw.calls import ReadingRow, append_call, append_reading
from clean_room_agent.db.raw.passes import DecisionRow, list_decisions
from clean_room_agent.db.raw.record import Record
from clean_room_agent.db.rows import Connection
from clean_room_agent.db.session import Session
from clean_room_agent.indexer.terms import count_terms
from clean_room_agent.llm.client import ModelClient
from clean_room_agent.llm.model_config import BudgetConfig, ModelsConfig
from clean_room_agent.llm.router import ModelRouter
from clean_room_agent.llm.transport import ChatRequest
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.retrieval.retrieval_config import JudgmentsConfig, RetrievalConfig
from clean_room_agent.retrieval.retriever import Retriever
from clean_room_agent.retrieval.stage_source import RepositorySource

TASK = "11111111-2222-4333-8444-555555555555"
NOTHING_CHOSEN = {
    "task_analysis": '{"intent": "", "areas": [], "keywords": [], "symbols": []}',
    "scope_batch": '{"relevant": []}',
    "scope_judgment": "no",
    "precision_batch": '{"change": []}',
    "piece_judgment": "skip",
    "refilter": '{"keep": []}',
}

CANDIDATE = re.compile(r"^=+ candidate (\d+): (.*)$", re.MULTILINE)


def clock() -> str:
    return "2026-01-01T00:00:00Z"


class RecordSink:
    """Calls go into the record, so that decisions may name them."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def record(self, call: ModelCall) -> int:
        return self._record.write(append_call, call)

    def reading(self, call_id: int, reading: AnswerReading, fault: str) -> None:
        row = ReadingRow(call_id=call_id, reading=reading, fault=fault, timestamp=clock())
        self._record.write(append_reading, row)


def index_folder(conn: Connection, root: Path, imports: Mapping[str, tuple[str, ...]]) -> None:
    """What the indexer would write, as far as retrieval reads it: Python definitions, docstrings, terms, imports."""
    repo = files.put_repo(conn, path=str(root), remote_url=None, indexed_at=clock())
    ids = {}
    for path in sorted(place.relative_to(root).as_posix() for place in root.rglob("*") if place.is_file()):
        if path.startswith(".clean_room"):
            continue
        data = (root / path).read_bytes()
        file_id = ids[path] = files.next_file_id(conn)
        new = files.NewFileRow(
            path=path, language="python" if path.endswith(".py") else "text", mtime_ns=0, inode=0,
            content_hash=hashlib.sha256(data).hexdigest(), size_bytes=len(data), parse_error=None,
        )  # fmt: skip
        files.insert_files(conn, repo, [(file_id, new)])
        text = data.decode("utf-8", "replace")
        if path.endswith(".py"):
            _add_symbols(conn, file_id, ast.parse(text), text.split("\n"))
        _add_terms(conn, file_id, path, text)
    edges = [(ids[source], ids[target], "import") for source in sorted(imports) for target in imports[source]]
    insert_resolutions(conn, [Resolution(dependencies=edges)])


def _add_symbols(
    conn: Connection,
    file_id: int,
    node: ast.AST,
    lines: list[str],
    *,
    owner: str = "",
    parent: int | None = None,
) -> None:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.ClassDef):
            continue
        place = len(symbols.list_symbol_ids(conn, file_id))
        symbol_id = symbols.first_symbol_id(file_id) + place
        name = f"{owner}.{child.name}" if owner else child.name
        kind = "class" if isinstance(child, ast.ClassDef) else "method" if owner else "function"
        start = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
        lasts = (start, child.end_lineno or start, lines[child.lineno - 1].strip(), parent)
        symbols.insert_symbols(conn, [(symbol_id, file_id, place, child.name, name, kind, *lasts)])
        doc = ast.get_docstring(child)
        if doc:
            symbols.insert_docstrings(conn, [(symbol_id, symbol_id, file_id, doc, "plain", None)])
        _add_symbols(conn, file_id, child, lines, owner=name, parent=symbol_id)


def _add_terms(conn: Connection, file_id: int, path: str, text: str) -> None:
    in_path, body = count_terms(path), count_terms(text)
    postings.replace_files(conn, {file_id: postings.SearchFile((in_path, {}, {}, {}, body), [], [])})


class World(Struct, kw_only=True):
    """An indexed repository with a retriever and what it wrote."""

    root: Path
    index: Connection
    record: Record
    session: Session
    models: ModelClient
    transport: ScriptedTransport
    raw: Connection

    def retriever(
        self, *, stages: tuple[str, ...] = ("scope", "precision"), use_model: bool = True, **judgments: object
    ) -> Retriever:
        """One question for many, unless `judgments` says otherwise."""
        chosen = msgspec.convert({"route": "batch", **judgments}, JudgmentsConfig)
        config = RetrievalConfig(stages=stages, judgments=chosen, use_model=use_model)
        return Retriever(
            kb=KnowledgeBase(self.index), root=self.root, models=self.models, record=self.record,
            session=self.session, config=config,
        )  # fmt: skip

    def source(self) -> RepositorySource:
        return RepositorySource(KnowledgeBase(self.index), self.root, lambda text: len(text.split()))

    def close(self) -> None:
        self.session.close()
        self.record.close()
        self.raw.close()
        self.index.close()

    def decisions(self, pass_id: str) -> tuple[DecisionRow, ...]:
        return list_decisions(self.raw, pass_id)

    def asked(self, prompt: str) -> list[ChatRequest]:
        return [request for request in self.transport.requests if request.identity.prompt == prompt]


def make_world(
    tmp_path: Path,
    contents: Mapping[str, str | bytes],
    answers: Mapping[str, str | Callable[[ChatRequest], Scripted]] | None = None,
    *,
    imports: Mapping[str, tuple[str, ...]] | None = None,
    window: int = 8192,
    reserved: int = 2048,
) -> World:
    """The given files, written and indexed, with a model that is scripted by prompt name (default: it chooses nothing)."""
    root = tmp_path / "repo"
    root.mkdir()
    for path, text in contents.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text if isinstance(text, bytes) else text.encode())
    script = {**NOTHING_CHOSEN, **(answers or {})}

    def answer(request: ChatRequest) -> Scripted:
        reply = script[request.identity.prompt]
        return reply(request) if callable(reply) else reply

    transport = ScriptedTransport(answer)
    index = connect_file("curated", tmp_path / "curated.sqlite")
    index_folder(index, root, imports or {})
    record = Record.open(root, clock=clock)
    router = ModelRouter(
        ModelsConfig(base_url="http://127.0.0.1:1", coding="coder", reasoning="thinker"),
        BudgetConfig(context_window=window, reserved_tokens=reserved),
    )
    return World(
        root=root, index=index, record=record, transport=transport,
        session=Session.open(root, TASK, clock=clock),
        models=ModelClient(router, transport, RecordSink(record), clock),
        raw=connect_file("raw", root / ".clean_room" / "raw.sqlite", read_only=True),
    )  # fmt: skip


def numbers_of(request: ChatRequest, *words: str) -> list[int]:
    """The numbers of the options in a batch prompt whose head holds one of the words."""
    heads = CANDIDATE.findall(request.prompt)
    return [int(number) for number, head in heads if any(word in head for word in words)]


def context_request(**fields: object) -> ContextRequest:
    values: dict[str, object] = {
        "pass_id": f"{TASK}:impl:p1:s1",
        "mode": "implement",
        "role": "coding",
        "task": "Fix it",
    }
    return ContextRequest(**{**values, **fields})  # type: ignore[arg-type]

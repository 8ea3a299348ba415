"""The product's deterministic path from a task to files, and nothing beside it."""

from pathlib import Path

from clean_room_agent.artifacts.context import ContextRequest
from clean_room_agent.db.connection import get_connection
from clean_room_agent.query.knowledge import KnowledgeBase
from clean_room_agent.retrieval.analysis import analyse
from clean_room_agent.retrieval.candidates import find_candidates
from clean_room_agent.retrieval.stage_source import RepositorySource


def open_index(top: Path) -> KnowledgeBase:
    """The checkout's index, open until the process ends."""
    return KnowledgeBase(get_connection("curated", repo_path=top, read_only=True))


def candidates(kb: KnowledgeBase, top: Path, text: str) -> tuple[str, ...]:
    """What `cra retrieve TEXT --no-model` chooses from, in its order."""
    request = ContextRequest(pass_id="benchmark", mode="implement", role="coding", task=text)
    source = RepositorySource(kb, top, len)
    found, _ = find_candidates(request, analyse(request, source).query, source)
    return tuple(candidate.path for candidate in found)

"""Postings and field lengths of files, from what they say and from what past commits say of them."""

from collections.abc import Iterable, Mapping

from clean_room_agent.db.curated import history, postings
from clean_room_agent.db.curated.postings import FieldValues, PostingTuple
from clean_room_agent.db.rows import Connection
from clean_room_agent.indexer.extract import TermFacts
from clean_room_agent.indexer.terms import count_terms

MAX_FILES = 30
"""Commits that touched more files say little of each."""
MAX_COMMITS = 300
"""The newest of a file's commits that are heard."""
ContentValues = tuple[float, float, float, float, float]


def write_postings(
    conn: Connection, terms: Mapping[int, TermFacts], stale: Iterable[int], *, blank: bool
) -> None:
    """Postings and lengths of the given files are what their content and their past give.

    Args:
        conn: open, in a transaction; files and history are up to date.
        terms: what the files with new content say, by id.
        stale: further files, whose past alone changed.
        blank: whether there are no postings yet.
    """
    past = _Past(conn)
    rows: list[PostingTuple] = []
    lengths: list[tuple[int, float, float, float, float, float, float]] = []
    changed = sorted({*terms, *stale})
    for file_id in changed:
        content = terms.get(file_id)
        fields = _merge(_known(conn, file_id) if content is None else content, past.terms_of(file_id))
        rows.extend((term, file_id, *values) for term, values in fields.items())
        sums = [sum(column) for column in zip(*(fields[term] for term in sorted(fields)), strict=True)]
        lengths.append((file_id, *(sums or [0.0] * len(postings.FIELDS))))
    if not blank:
        postings.delete_postings(conn, changed)
    rows.sort()
    postings.insert_postings(conn, rows)
    postings.insert_lengths(conn, lengths)


def _known(conn: Connection, file_id: int) -> dict[str, ContentValues]:
    found = postings.read_file_postings(conn, file_id)
    return {term: values[:5] for term, values in found.items() if any(values[:5])}


def _merge(content: Mapping[str, ContentValues], past: Mapping[str, float]) -> dict[str, FieldValues]:
    merged: dict[str, FieldValues] = {
        term: (*values, past.get(term, 0.0)) for term, values in content.items()
    }
    for term, weight in past.items():
        if term not in merged:
            merged[term] = (0, 0, 0, 0, 0, weight)
    return merged


class _Past:
    """What the messages of past commits say of files; each message is read once."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._messages: dict[int, dict[str, float]] = {}

    def terms_of(self, file_id: int) -> dict[str, float]:
        """Term -> frequency in the file's newest messages, a commit of n files counting 1/sqrt(n)."""
        weights: dict[str, float] = {}
        found = history.list_messages_of_file(self._conn, file_id, max_files=MAX_FILES, limit=MAX_COMMITS)
        for commit_id, message, files_changed in found:
            terms = self._messages.get(commit_id)
            if terms is None:
                share = max(files_changed, 1) ** -0.5
                terms = {term: count * share for term, count in count_terms(message).items()}
                self._messages[commit_id] = terms
            for term, weight in terms.items():
                weights[term] = weights.get(term, 0.0) + weight
        return weights

"""The commit and the limits that the indexed history was read with."""

from msgspec import Struct

from clean_room_agent.db.curated import files
from clean_room_agent.db.rows import Connection
from clean_room_agent.json_values import from_json, to_json

HEAD_KEY = "history_head"


class HistoryState(Struct, frozen=True, kw_only=True, array_like=True):
    """What the indexed history covers; it can be continued as long as the limits stay the same."""

    head: str | None
    """The commit; None: there was none, or none was wanted."""
    bound: int
    """`[index].history`."""
    pair_bound: int
    """`[index].pair_bound`."""
    graph: str
    """See `git.log.graph_marks`."""
    line_counts: bool
    """Whether the changed lines of the commits are counted."""


def read_state(conn: Connection) -> HistoryState | None:
    """Return what `keep_state` stored; None in a new index."""
    text = files.get_index_state(conn, HEAD_KEY)
    return None if text is None else from_json(text, HistoryState)


def keep_state(conn: Connection, kept: HistoryState) -> None:
    """Store the state for `read_state`."""
    files.put_index_state(conn, HEAD_KEY, to_json(kept))

"""The commit and the limits that the indexed history was read with."""

import json
from dataclasses import dataclass

from clean_room_agent.db.curated import files
from clean_room_agent.db.rows import Connection

HEAD_KEY = "history_head"
COUNTED_COMMITS = 1000
"""The newest commits, whose changed lines are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryState:
    """What the indexed history covers; it can be continued as long as the limits stay the same."""

    head: str | None
    """The commit; None: there was none, or none was wanted."""
    bound: int
    """`[index].history`."""
    pair_bound: int
    """`[index].pair_bound`."""
    graph: str
    """See `git.log.graph_marks`."""
    all_lines: bool
    """Whether the lines of all commits are counted, not only of the newest."""


def read_state(conn: Connection) -> HistoryState | None:
    """Return what `keep_state` stored; None in a new index."""
    text = files.get_index_state(conn, HEAD_KEY)
    if text is None:
        return None
    head, bound, pair_bound, graph, all_lines = json.loads(text)
    return HistoryState(head=head, bound=bound, pair_bound=pair_bound, graph=graph, all_lines=all_lines)


def keep_state(conn: Connection, kept: HistoryState) -> None:
    """Store the state for `read_state`."""
    fields = [kept.head, kept.bound, kept.pair_bound, kept.graph, kept.all_lines]
    files.put_index_state(conn, HEAD_KEY, json.dumps(fields))

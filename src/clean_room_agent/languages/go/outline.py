"""The outline of a file of Go tests."""

from collections.abc import Iterator
from functools import cache

import tree_sitter_go
from tree_sitter import Language, Node, Query, QueryCursor

from clean_room_agent.languages.outline import MAX_DEPTH, Outliner
from clean_room_agent.languages.parsed import text_of


class GoOutliner(Outliner):
    """A test is a function, and uses what it names."""

    def names(self, root: Node, source: bytes) -> Iterator[tuple[int, str]]:
        """Names of values and types; a field only counts by what it is a field of."""
        cursor = QueryCursor(_name_query())
        cursor.set_max_start_depth(MAX_DEPTH)
        for node in cursor.captures(root).get("name", ()):
            yield node.start_point[0] + 1, text_of(source, node)


@cache
def _name_query() -> Query:
    return Query(Language(tree_sitter_go.language()), "[(identifier) (type_identifier)] @name")

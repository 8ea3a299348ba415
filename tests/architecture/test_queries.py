"""A law of the product, seen in its sources: what is cut is sorted first."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.syntax_trees import nodes, sources_with

SOURCES = Path(__file__).parents[2] / "src" / "clean_room_agent"


def sql_texts() -> Iterator[tuple[str, str]]:
    """(file, text) of every string in the sources that holds a query; f-strings with their values left out."""
    for path in sources_with(SOURCES, "LIMIT"):
        for node in nodes(path):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            words = [
                part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
            text = " ".join(words)
            if re.search(r"(?<!')\bLIMIT\b(?! =)", text):
                yield path.relative_to(SOURCES).as_posix(), text


def test_a_query_that_is_cut_is_sorted_first() -> None:
    texts = sorted(set(sql_texts()))
    unsorted = [(name, text) for name, text in texts if not re.search(r"ORDER BY.*LIMIT", text, re.DOTALL)]
    # Whether there is a row at all has no order, and `Table.first` is given its order, or one row, by its callers.
    assert {text for _, text in unsorted} <= {"SELECT 1 FROM file_metadata LIMIT 1", " LIMIT 1"}
    assert len(texts) > 10

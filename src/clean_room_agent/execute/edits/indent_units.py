r"""The units of indentation, a tab or some blanks: those of a file, and an answer's, translated into them.

Example: a file of tabs, and an answer of blanks; what is no whole unit, an alignment, goes no deeper than the line above.

    |    for one in many:            ->  |\tfor one in many:
    |        add(one,                    |\t\tadd(one,
    |            2)                      |\t\t\t2)
    |          # all                     |\t\t  # all
"""

from collections import Counter
from collections.abc import Collection
from math import gcd

from clean_room_agent.execute.edits.search_replace import find, indentation
from clean_room_agent.syntax import is_bare_string, nodes_of, tree_of, walk

CLEAR = 0.75
"""Of the blocks of a file that has lines of both kinds, so many begin with its unit."""


def units_of(path: str, file: str, search: str, replacement: str) -> tuple[str, str]:
    """Search text and replacement of an answer, indented by the file's unit in place of their own; lines that the file has, and what
    strings hold, stay. As they are where a unit is not known, or where both are blanks and the search text is found.
    """
    theirs = indent_unit(file)
    if not theirs:
        return search, replacement
    found = bool(search.strip() and find(file, search).hits)
    ours = (
        indent_unit(search, replacement, of_blocks=True)
        or _unit_beside(file, search, replacement if found else search, theirs)
        or indent_unit(search, replacement)
    )
    if ours in {"", theirs} or (theirs[0] == ours[0] and (found or not search.strip())):
        return search, replacement
    there = frozenset(file.split("\n"))
    return (
        search if found else _convert_indentation(path, search, ours, theirs, there),
        _convert_indentation(path, replacement, ours, theirs, there),
    )


def indent_unit(*texts: str, of_blocks: bool = False) -> str:
    """One level of indentation: a tab, or by how many blanks most blocks are deeper than the line that opens them; without a
    block, what the indentations have in common, which may be of an alignment, unless only those `of_blocks` count. "" if it is not
    clear, or single blanks.
    """
    deeper: Counter[str] = Counter()
    found: set[str] = set()
    for text in texts:
        above, opens = "", False
        for line in text.split("\n"):
            body = line.strip()
            if not body or body.startswith("*"):  # within a comment of JavaScript
                continue
            lead = line[: len(line) - len(line.lstrip())]
            found.add(lead)
            if opens and lead != above and lead.startswith(above):
                deeper[lead.removeprefix(above)] += 1
            above, opens = lead, body.endswith((":", "{"))
    found.discard("")
    kinds = {lead[0] for lead in found}
    if "\t" in kinds and (kinds == {"\t"} or deeper["\t"] > CLEAR * deeper.total()):
        return "\t"
    spaces = Counter({lead: count for lead, count in deeper.items() if set(lead) == {" "}})
    if any(set(lead) != {" "} for lead in found) and not spaces.total() > CLEAR * deeper.total():
        return ""
    common = "" if of_blocks else " " * gcd(*map(len, found))
    unit = spaces.most_common(1)[0][0] if spaces else common
    return unit if len(unit) > 1 else ""


def rows_in_strings(path: str, code: str) -> frozenset[int]:
    """The 0-based rows that begin within a string, so that their blanks belong to it; docstrings left out."""
    tree, nodes = tree_of(code.encode("utf-8", "replace"), path), nodes_of(path)
    rows: set[int] = set()
    for node in [] if tree is None else walk(tree.root_node):
        if node.type in nodes.strings and not (node.parent is not None and is_bare_string(node.parent)):
            rows.update(range(node.start_point.row + 1, node.end_point.row + 1))
    return frozenset(rows)


def _unit_beside(file: str, search: str, text: str, theirs: str) -> str:
    """The unit of a text that begins as deep as the line of the file that the search text begins with; "" if it is not clear, or the
    file's.
    """
    first = next((line.strip() for line in search.split("\n") if line.strip()), "")
    leads = {indentation(line) for line in file.split("\n") if line.strip() == first}
    lead, own = next(iter(leads), ""), indentation(text)
    depth = len(lead) // len(theirs)
    if len(leads) != 1 or lead != theirs * depth or not own or own[0] == theirs[0] or len(set(own)) > 1:
        return ""
    return own[: len(own) // depth] if depth and len(own) % depth == 0 else ""


def _convert_indentation(path: str, text: str, unit: str, other: str, there: Collection[str]) -> str:
    fixed = rows_in_strings(path, text)
    lines = text.split("\n")
    above = 0
    for number, line in enumerate(lines):
        lead = len(line) - len(line.lstrip())
        depth = 0
        while line.strip() and line.startswith(unit, depth * len(unit)):
            depth += 1
        if number in fixed or line in there or not line.strip():
            continue
        if depth * len(unit) < lead:  # an alignment
            depth = min(depth, above)
        lines[number] = other * depth + line[depth * len(unit) :]
        above = depth
    return "\n".join(lines)

import random
from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

from clean_room_agent.git.log import LogEntry
from clean_room_agent.indexer.history.delta import is_line, splice

Graph = Mapping[str, tuple[int, tuple[str, ...]]]
"""Commit -> date, parents."""


def walk(graph: Graph, head: str) -> Iterator[str]:
    """As git walks: the newest at hand, of equals the first that was at hand."""
    heap = [(-graph[head][0], 0, head)]
    seen = {head}
    while heap:
        name = heappop(heap)[2]
        yield name
        for parent in graph[name][1]:
            if parent not in seen:
                heappush(heap, (-graph[parent][0], len(seen), parent))
                seen.add(parent)


def make_graph(seed: int) -> Graph:
    """Forty commits on any earlier ones; some clocks are wrong."""
    choose = random.Random(seed)
    graph: dict[str, tuple[int, tuple[str, ...]]] = {"c0": (0, ())}
    for number in range(1, 40):
        near = [f"c{parent}" for parent in range(max(0, number - 6), number)]
        parents = choose.sample(near, min(len(near), choose.choice([1, 1, 1, 2])))
        graph[f"c{number}"] = (number // 2 + choose.choice([0, 0, 0, 0, 0, -6]), tuple(parents))
    return graph


def test_what_follows_a_splice_is_the_same_in_both_walks() -> None:
    for seed in range(100):
        graph = make_graph(seed)
        head, known = "c39", f"c{20 + seed % 19}"
        new, old = list(walk(graph, head)), list(walk(graph, known))
        added, gone = set(new) - set(old), set(old) - set(new)
        joints = {parent for name in added | gone for parent in graph[name][1]} - added - gone
        ways = splice(walk(graph, head), walk(graph, known), added=added, gone=gone, joints=joints)
        if ways is not None:
            assert (*ways[0], *old[len(ways[1]) :]) == tuple(new), seed
            kept = [name for name in ways[1] if name not in gone]
            assert [name for name in ways[0] if name not in added] == kept, seed


def test_most_histories_can_be_spliced_even_where_clocks_are_wrong() -> None:
    spliced = 0
    for seed in range(100):
        graph = make_graph(seed)
        new, old = list(walk(graph, "c39")), list(walk(graph, "c35"))
        added, gone = set(new) - set(old), set(old) - set(new)
        joints = {parent for name in added | gone for parent in graph[name][1]} - added - gone
        spliced += splice(iter(new), iter(old), added=added, gone=gone, joints=joints) is not None
    assert spliced > 50


def test_a_line_of_single_parents_is_known_as_one() -> None:
    def entry(name: str, parents: str) -> LogEntry:
        return LogEntry(name, parents, 0, "", "", 0, [], [])

    line = {"c": entry("c", "b"), "b": entry("b", "a")}
    assert is_line(line, head="c", known="a")
    assert not is_line(line, head="c", known="z")
    assert not is_line({"c": entry("c", "b a"), "b": entry("b", "a")}, head="c", known="a")
    assert not is_line({}, head="a", known="a")

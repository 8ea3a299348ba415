"""Where added commits stand in the order of a history, and what their renames move."""

import random
from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

from clean_room_agent.git.log import LogEntry
from clean_room_agent.indexer.history.rows import PastPlaces
from clean_room_agent.indexer.history.sync import NO_BOUND, Move, Step, find_moves, is_line, splice

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


def spliced(graph: Graph, known: str) -> tuple[str, ...] | None:
    added = set(walk(graph, "c39")) - set(walk(graph, known))
    joints = {known, *(parent for name in added for parent in graph[name][1])} - added
    return splice(walk(graph, "c39"), walk(graph, known), added=added, joints=joints)


def test_what_follows_a_splice_is_the_same_in_both_walks() -> None:
    found = 0
    for seed in range(100):
        graph, known = make_graph(seed), f"c{20 + seed % 19}"
        new, old = list(walk(graph, "c39")), list(walk(graph, known))
        order = spliced(graph, known)
        assert order is None or known in new, seed
        if order is not None:
            found += 1
            kept = [name for name in order if name in old]
            assert (*order, *old[len(kept) :]) == tuple(new), seed
            assert kept == old[: len(kept)], seed
    assert found > 30


def test_a_line_of_single_parents_is_known_as_one() -> None:
    def entry(name: str, parents: str) -> LogEntry:
        return LogEntry(name, parents, 0, "", "", 0, [], [])

    line = {"c": entry("c", "b"), "b": entry("b", "a")}
    assert is_line(line, head="c", known="a")
    assert not is_line(line, head="c", known="z")
    assert not is_line({"c": entry("c", "b a"), "b": entry("b", "a")}, head="c", known="a")
    assert not is_line({}, head="a", known="a")


def step(*, old: bool = True, number: int | None = None, **renames: str) -> Step:
    return Step(in_old=old, id=number, renames=list(renames.items()))


def test_renames_are_followed_backwards_to_the_files_of_today() -> None:
    places = PastPlaces({"c": 1, "a": 2})
    assert places["b"] == -1
    places.follow([("b", "c")])
    places.follow([("a", "b")])
    assert [places[path] for path in ("a", "b", "c", "d")] == [1, 1, 1, -2]
    assert places.lost == ["b", "d"]


def test_names_exchanged_in_one_commit_are_exchanged_before_it() -> None:
    places = PastPlaces({"a": 1, "b": 2})
    places.follow([("a", "b"), ("b", "a")])
    assert (places["a"], places["b"]) == (2, 1)


def test_a_new_rename_moves_the_whole_past() -> None:
    steps = [step(old=False, a="b"), step(number=20), step(number=10, x="a")]
    assert find_moves(steps) == [Move("a", "b", 10, NO_BOUND), Move("a", "b", 0, 9)]


def test_a_rename_between_known_commits_moves_what_is_older() -> None:
    steps = [step(number=30), step(old=False, a="b"), step(number=20)]
    assert find_moves(steps) == [Move("a", "b", 0, 29)]


def test_a_rename_before_a_known_one_leaves_two_pasts_that_cannot_be_told_apart() -> None:
    steps = [step(number=30, x="a"), step(old=False, a="q"), step(number=20)]
    assert find_moves(steps) == [Move("a", None, 0, 29)]

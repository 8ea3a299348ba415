"""Puts items into groups and in order, by a yes or no about each pair of them."""

from collections.abc import Iterable, Sequence

from clean_room_agent.artifacts.plans import PlanVerdict


def groups(count: int, together: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """The numbers `0..count-1` in groups (connected components of `together`), in order of their first number."""
    above = list(range(count))

    def root(number: int) -> int:
        while above[number] != number:
            above[number] = above[above[number]]
            number = above[number]
        return number

    for one, other in together:
        first, second = sorted((root(one), root(other)))
        above[second] = first
    found: dict[int, list[int]] = {}
    for number in range(count):
        found.setdefault(root(number), []).append(number)
    return tuple(map(tuple, found.values()))


def at_most(grouped: Sequence[tuple[int, ...]], most: int) -> tuple[tuple[int, ...], ...]:
    """At most so many groups; the last of too many are merged."""
    if len(grouped) <= most:
        return tuple(grouped)
    last = tuple(sorted(number for group in grouped[most - 1 :] for number in group))
    return (*grouped[: most - 1], last)


def needs_of(
    names: Sequence[str], verdicts: Iterable[PlanVerdict]
) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """What each of the names needs, by the verdicts on `a b` (a needs b); and a note on each dependency that was left
    out.

    A cycle loses its least certain dependency. What was decided without a model is the most certain, then what the
    model said most clearly, then what was asked first.
    """
    said = [verdict for verdict in verdicts if verdict.yes]
    certain = sorted(
        range(len(said)), key=lambda place: (said[place].call_id is not None, -_clearness(said[place]), place)
    )
    needs: dict[str, set[str]] = {name: set() for name in names}
    notes = []
    for place in certain:
        user, needed = said[place].item.split(" ")
        if user in _reached(needs, needed):
            notes.append(
                f"{user} does not wait for {needed}: {needed} needs {user} already, and they cannot both come first"
            )
        else:
            needs[user].add(needed)
    return {name: tuple(other for other in names if other in needs[name]) for name in names}, tuple(notes)


def _clearness(verdict: PlanVerdict) -> float:
    return 0.0 if verdict.calibrated is None else verdict.calibrated


def _reached(needs: dict[str, set[str]], start: str) -> set[str]:
    """The name itself, and everything that it needs, directly or not."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += needs[name]
    return found

"""Symbols of two sides, compared: what agrees, and why the rest does not."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from benchmarks.symbols.peers import Named, Thing

MISSING = "not named by us"
LINES = "other lines"
KIND = "another kind"


class Reason(Struct, frozen=True, kw_only=True):
    """A difference that was looked at: how it is known, and whether it is left out of the percentage."""

    title: str
    applies: Callable[["Difference"], bool]
    is_subtracted: bool
    why: str


class Difference(Struct, frozen=True, kw_only=True):
    """A thing that the peer names and we do not, or not so."""

    path: str
    theirs: Thing
    ours: Thing | None
    """Of the same name and nearest in place."""
    what: str
    tail: tuple[str, ...]
    """The lines that ours has behind the end of theirs."""
    is_confirmed: bool
    """Whether the first peer names something of this name on this line."""


class Comparison(Struct, frozen=True, kw_only=True):
    """One repository against one peer."""

    named: int
    agreed: int
    differences: tuple[Difference, ...]
    only_ours: tuple[tuple[str, Thing], ...]

    def explained(self, reasons: Sequence[Reason]) -> Mapping[str, list[Difference]]:
        """The differences by the title of the first reason that applies; "" for none."""
        found: dict[str, list[Difference]] = defaultdict(list)
        for one in self.differences:
            found[next((reason.title for reason in reasons if reason.applies(one)), "")].append(one)
        return found

    def share(self, reasons: Sequence[Reason]) -> float:
        """Percent agreed of what the peer names, less what reasons subtract."""
        explained = self.explained(reasons)
        subtracted = sum(len(explained.get(reason.title, [])) for reason in reasons if reason.is_subtracted)
        counted = self.named - subtracted
        return 100.0 * self.agreed / counted if counted else 100.0


def compare(
    ours: Named, theirs: Named, *, lines: Callable[[str], Sequence[str]], judge: Named | None = None
) -> Comparison:
    """Each thing that `theirs` names agrees if we name it once more with the same name, kind and lines.

    Where the peer does not say where decorators begin or where a thing ends, its line must lie within ours.

    Args:
        ours: by path.
        theirs: by path; files that the peer did not read are not compared, nor kinds that it never names.
        lines: the lines of the file at a path.
        judge: what the first peer names, to tell errors of the second; None for the first itself.
    """
    agreed = named = 0
    kinds = {thing.kind for things in theirs.values() for thing in things}
    differences: list[Difference] = []
    only_ours: list[tuple[str, Thing]] = []
    for path in sorted(theirs.keys() & ours.keys()):
        left = defaultdict(list)
        for thing in ours[path]:
            left[thing.name].append(thing)
        for thing in theirs[path]:
            named += 1
            match = next(
                (one for one in left[thing.name] if _agrees(one, thing, is_exact=judge is None)), None
            )
            if match is not None:
                left[thing.name].remove(match)
                agreed += 1
            else:
                differences.append(_difference(path, thing, left[thing.name], judge, lines))
        only_ours.extend((path, one) for things in left.values() for one in things if one.kind in kinds)
    return Comparison(named=named, agreed=agreed, differences=tuple(differences), only_ours=tuple(only_ours))


def _agrees(ours: Thing, theirs: Thing, *, is_exact: bool) -> bool:
    if ours.kind != theirs.kind:
        return False
    if is_exact:
        return (ours.start, ours.end) == (theirs.start, theirs.end)
    return ours.start <= theirs.start <= ours.end and theirs.end in {0, ours.end}


def _difference(
    path: str,
    theirs: Thing,
    same_name: Iterable[Thing],
    judge: Named | None,
    lines: Callable[[str], Sequence[str]],
) -> Difference:
    near = [one for one in same_name if one.start <= theirs.start <= one.end]
    ours = min(near, key=lambda one: theirs.start - one.start, default=None)
    what = MISSING if ours is None else KIND if ours.kind != theirs.kind else LINES
    tail = () if ours is None or not theirs.end else tuple(lines(path)[theirs.end : ours.end])
    confirmed = judge is None or any(
        one.name == theirs.name and one.start <= theirs.start <= one.end for one in judge.get(path, ())
    )
    return Difference(path=path, theirs=theirs, ours=ours, what=what, tail=tail, is_confirmed=confirmed)

"""Stores texts with common beginnings so that each beginning is stored once: a text is a chain of beginnings and its
own rest.

Of the three texts `a b c`, `a b d` and `a x` (a letter is a line), `a` is the beginning of all and `b` follows it in two:

    1: a          used by 3
    2: b          after 1, used by 2
    first text    1, 2, then c

A beginning is stored separately if that is worth a reference; shorter common lines stay with each text.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

WORTH = 240
"""Characters from which on a common beginning is stored separately."""


class Beginning(Struct, frozen=True, kw_only=True):
    """Lines with which several texts begin, after those of `chain`."""

    number: int
    """1-based."""
    chain: tuple[int, ...]
    """The beginnings before it."""
    first_line: int
    """1-based, in each text that has it."""
    text: str
    uses: int
    """Texts that have it."""

    @property
    def last_line(self) -> int:
        """1-based, inclusive."""
        return self.first_line + self.text.count("\n")


class OwnText(Struct, frozen=True, kw_only=True):
    """One text: the beginnings in order, then its own lines."""

    chain: tuple[int, ...]
    first_line: int
    """Of its own lines, 1-based."""
    lines: tuple[str, ...]
    """May be empty if another text is the same, or continues from here."""

    @property
    def text(self) -> str:
        """Its own lines as one text."""
        return "\n".join(self.lines)


class _Group(Struct):
    """Texts that agree on all lines before `done`; the lines before `stored` are in `chain`."""

    members: list[int]
    """Sorted by their lines, so that the first and the last differ earliest."""
    chain: tuple[int, ...]
    stored: int
    done: int


def share_beginnings(texts: Mapping[int, str]) -> tuple[tuple[Beginning, ...], dict[int, OwnText]]:
    """The stored beginnings in order, and the composition of each text by its key."""
    lines = {key: text.split("\n") for key, text in texts.items()}
    members = sorted(lines, key=lambda key: lines[key])
    groups = [_Group(members=members, chain=(), stored=0, done=0)] if lines else []
    found: list[Beginning] = []
    own: dict[int, OwnText] = {}
    while groups:
        group = groups.pop()
        if len(group.members) == 1:
            own[group.members[0]] = _own(lines[group.members[0]], group)
            continue
        first = lines[group.members[0]]
        end = _agree(first, lines[group.members[-1]], group.done)
        if sum(map(len, first[group.stored : end])) >= WORTH:
            found.append(
                Beginning(
                    number=len(found) + 1,
                    chain=group.chain,
                    first_line=group.stored + 1,
                    text="\n".join(first[group.stored : end]),
                    uses=len(group.members),
                )
            )
            group = _Group(
                members=group.members, chain=(*group.chain, found[-1].number), stored=end, done=end
            )
        groups += _branches(lines, group, end, own)
    return tuple(found), own


def _agree(one: Sequence[str], other: Sequence[str], start: int) -> int:
    """How many lines both have in common at the beginning; the first `start` are known to be."""
    end = start
    while end < min(len(one), len(other)) and one[end] == other[end]:
        end += 1
    return end


def _branches(
    lines: Mapping[int, Sequence[str]], group: _Group, end: int, own: dict[int, OwnText]
) -> list[_Group]:
    """The members by their next line, the oldest last; those that end here are put into `own`."""
    nexts: dict[str, list[int]] = {}
    for key in group.members:
        if len(lines[key]) == end:
            own[key] = _own(lines[key], group)
        else:
            nexts.setdefault(lines[key][end], []).append(key)
    return [
        _Group(members=members, chain=group.chain, stored=group.stored, done=end)
        for members in sorted(nexts.values(), key=min, reverse=True)
    ]


def _own(lines: Sequence[str], group: _Group) -> OwnText:
    return OwnText(chain=group.chain, first_line=group.stored + 1, lines=tuple(lines[group.stored :]))

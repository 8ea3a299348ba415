"""What a prompt shows of a repository's files, found by the lines themselves: all knowledge of how prompts are laid out.

A prompt's lines are matched against the files whose paths it names. No heading and no frame is read, so a prompt may
be laid out anew: what counts is that lines of code stand in it as they stand in the file, whole. They may be indented
otherwise, numbered ("12 | x"), marked ("> x"), or told as a place ("a.py:12: x").
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from testing.servers.ollama_script import count_tokens

from benchmarks.context.snapshot import Snapshot

PATH = re.compile(r"[\w./@+-]*\w\.\w+")
PLACE = re.compile(r"^[\s>*-]*(?P<path>[\w./@+-]+\.\w+):(?P<line>\d+)(?::\d+)?[\s:|-]+(?P<code>.*)$")
NUMBERED = re.compile(r"^[\s>*]*(?P<line>\d+)\s*[|:\t│→]\s?(?P<code>.*)$")
MARKED = re.compile(r"^\s*[>*]\s(?P<code>.*)$")
LETTER = re.compile(r"\w")
MIN_LETTERS = 8
"""Letters and digits that a run of lines has at least: less stands in many a place that is not shown."""
MAX_STARTS = 400
"""Places that are looked at where a run of lines may begin: `return None` stands in many."""


class Block(Struct, frozen=True, kw_only=True):
    """Successive lines of a file that a prompt shows. Lines are 1-based and inclusive."""

    path: str
    first: int
    last: int
    at: int
    """0-based line of the prompt."""
    text: str
    """As the prompt has it."""


class Reading(Struct, frozen=True, kw_only=True):
    """A prompt, taken apart."""

    text: str
    """The whole prompt."""
    blocks: tuple[Block, ...]
    other: tuple[str, ...]
    """The prompt's lines that are neither of a block of several lines nor of the task; the others are ""."""

    def shown(self, path: str) -> frozenset[int]:
        """The file's lines that stand in the prompt."""
        return frozenset(
            line for block in self.blocks if block.path == path for line in range(block.first, block.last + 1)
        )

    @property
    def tokens(self) -> int:
        """Of all lines of code, without line breaks, by the stand-in server's own count."""
        return sum(count_tokens(line) for block in self.blocks for line in block.text.split("\n"))

    def tokens_of(self, wanted: Mapping[str, frozenset[int]]) -> int:
        """Of the lines of code that are among those wanted."""
        total = 0
        for block in self.blocks:
            lines = wanted.get(block.path, frozenset())
            for number, text in enumerate(block.text.split("\n"), block.first):
                total += count_tokens(text) if number in lines else 0
        return total


class _Line(Struct, frozen=True, kw_only=True):
    """A line of the prompt in the ways in which it may be one of a file."""

    text: str
    """Without what stands before and after the code."""
    place: tuple[str, int] | None
    """Path ("" where it is not said) and number, where the line tells them."""


def read_blocks(prompt: str, snapshot: Snapshot, task: str = "") -> Reading:
    """The prompt's code, by the snapshot's files. What is shown twice is two blocks."""
    asked = set(task.split("\n"))
    raw = prompt.split("\n")
    named = {path for path in PATH.findall(prompt) if path in snapshot.paths}
    matcher = _Matcher(snapshot, sorted(named))
    told = [_told(line, snapshot) for line in raw]
    blocks: list[Block] = []
    position = 0
    latest = ""
    while position < len(raw):
        latest = next((path for path in PATH.findall(raw[position]) if path in named), latest)
        block = matcher.longest(raw, told, position, latest, blocks[-1] if blocks else None)
        if block is None:
            position += 1
            continue
        blocks.append(block)
        position += block.last - block.first + 1
    inside = {
        n
        for block in blocks
        if block.last > block.first
        for n in range(block.at, block.at + block.last - block.first + 1)
    }
    other = tuple("" if n in inside or line in asked else line for n, line in enumerate(raw))
    return Reading(text=prompt, blocks=tuple(blocks), other=other)


def plain(line: str) -> str:
    """A line in the form in which lines are compared: a signature may be told without what opens its body."""
    return line.strip().removesuffix("...").rstrip(" :{")


def _told(line: str, snapshot: Snapshot) -> tuple[_Line, ...]:
    """As it stands; and with what a place, a number or a mark before the code would make of it."""
    ways = [_Line(text=plain(line), place=None)]
    if (found := PLACE.match(line)) and found["path"] in snapshot.paths:
        ways.append(_Line(text=plain(found["code"]), place=(found["path"], int(found["line"]))))
    elif found := NUMBERED.match(line):
        ways.append(_Line(text=plain(found["code"]), place=("", int(found["line"]))))
    elif found := MARKED.match(line):
        ways.append(_Line(text=plain(found["code"]), place=None))
    return tuple(ways)


class _Matcher:
    """The lines of some files, by what they say."""

    def __init__(self, snapshot: Snapshot, paths: Iterable[str]) -> None:
        self._lines = {path: [plain(line) for line in snapshot.lines(path)] for path in paths}
        self._places: dict[str, list[tuple[str, int]]] = {}
        for path, lines in self._lines.items():
            for number, line in enumerate(lines, 1):
                if LETTER.search(line):
                    self._places.setdefault(line, []).append((path, number))

    def longest(
        self,
        raw: Sequence[str],
        told: Sequence[tuple[_Line, ...]],
        position: int,
        latest: str,
        before: Block | None,
    ) -> Block | None:
        """The longest run of a file's lines that begins here; of equal ones that of the file named last."""
        best: tuple[int, bool, bool] = (0, False, False)
        found: Block | None = None
        for way in told[position]:
            for path, number in self._places.get(way.text, ())[:MAX_STARTS]:
                if way.place is not None and (number != way.place[1] or way.place[0] not in {"", path}):
                    continue
                length = self._length(told, position, path, number)
                after = before is not None and before.path == path and number > before.last
                rank = (length, path == latest, after)
                text = "\n".join(raw[position : position + length])
                if rank > best and (len(LETTER.findall(text)) >= MIN_LETTERS or way.place is not None):
                    best = rank
                    found = Block(path=path, first=number, last=number + length - 1, at=position, text=text)
        return found

    def _length(self, told: Sequence[tuple[_Line, ...]], position: int, path: str, number: int) -> int:
        """How many lines of the prompt are the file's from `number` on, without blank ones at the end."""
        lines = self._lines[path]
        length = whole = 0
        while position + length < len(told) and number + length <= len(lines):
            line = lines[number + length - 1]
            if all(way.text != line for way in told[position + length]):
                break
            length += 1
            whole = length if line else whole
        return whole

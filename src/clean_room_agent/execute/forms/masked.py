"""The form `masked`: something that ran is taken out, and a model that fills gaps writes it anew, knowing the goal.

The goal is told in several ways, of which each reaches faults that the others miss, and more than drawing again does. What can
be taken out:

    def mean(values):
        total = sum(values)          a line; what is right of `=`; the argument
        return total / len(values)   a line; what is returned; both lines together
                                     and a gap before, between and behind them
"""

import heapq
import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from msgspec import Struct

from clean_room_agent.artifacts.goals import GoalTest, gives
from clean_room_agent.artifacts.prompt_sources import PromptSource, SourcedText, compose, sourced
from clean_room_agent.execute.edits.search_replace import indentation
from clean_room_agent.execute.edits.static_checks import is_same_code, static_fault
from clean_room_agent.execute.forms.masks import Mask, masks_by_line, statement_at
from clean_room_agent.execute.forms.openings import Opening, answers_only, opening_of, with_line_inside
from clean_room_agent.execute.forms.place import (
    SAME,
    Assignment,
    Parsed,
    Place,
    Refused,
    Row,
    Shown,
    sampling_of,
    shown,
    wrapped,
)
from clean_room_agent.languages.outline import IDENTIFIERS
from clean_room_agent.languages.registry import language_at
from clean_room_agent.llm.filling import FillRequest
from clean_room_agent.llm.token_estimator import count_pieces, estimate
from clean_room_agent.syntax import node_text, walk

NEAR, WIDE = (150, 80), (500, 250)
"""Tokens of the lines before a mask, and behind it, that are shown, nearest first; behind it fewer, as some servers read less
there. Near ones were enough for 13 of the 14 planted faults that the first telling repaired with all of these lines, at half
the tokens in long definitions; the later tellings, which are few, show more.
"""
EXPLAINING = 80
"""Tokens of lines further above that say what stands near a mask."""
MOST_GOALS = 2
AGAIN = 3
"""Tellings of a gap whose answer broke something, told of that."""
WARM = 2
"""Drawn answers for a line, after the likeliest ones of all its masks."""
STRIDE = 3
NATURAL = 6
"""So many places later comes what else there is to ask of a line that the model would have written as it is."""
TEMPERATURE = 0.8
MOST_TOKENS = 160

COMMENTED = re.compile(
    r"(?:#|//)\s*(?:correct(?:ed)?|right|fix(?:ed)?|should be|now)\b(?: line)?\s*:\s*`?(\S.*?)`?",
    re.IGNORECASE,
)
"""What a model makes of being told what is wrong, in a comment: a comment that says what is right."""
QUOTED_OR_BRACKET = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[()\[\]{}]""")


class Telling(NamedTuple):
    """How a model that fills gaps is told what is wanted."""

    name: str
    comment: bool = False
    """What the call gives and should give, above the body."""
    example: bool = False
    """The call and its value as an example in the docstring."""
    test: bool = False
    """The call and its value as a test behind the definition."""
    task: bool = False
    """The user's words, above the body, and the tests that fail, in front of all."""
    wrong: bool = False
    """What was taken out, as a comment above the gap."""


COMMENT = Telling("comment", comment=True)
EXAMPLE = Telling("docstring", example=True)
TEST = Telling("test", test=True)
TASK = Telling("task", task=True)
WRONG = Telling("wrong", comment=True, wrong=True)
TELLINGS = (COMMENT, WRONG, EXAMPLE, TEST, TASK)
"""In order of promise."""


class MaskedRequest(Struct, frozen=True, kw_only=True):
    """One request, and what it is about."""

    mask: Mask
    telling: str
    draw: int
    """0: the likeliest answer; others are drawn."""
    fill: FillRequest
    opening: Opening | None = None
    """The block inside which the answer stands."""

    @property
    def item(self) -> str:
        """Tells the requests for a place apart."""
        return f"{(self.opening or self.mask).name} {self.telling} {self.draw}"


def requests(
    place: Place,
    text: str,
    assignment: Assignment,
    *,
    natural: Collection[Mask] = (),
    opened: Sequence[Opening] = (),
) -> Iterator[MaskedRequest]:
    """Requests for a place, the most promising first; none if it cannot be shown.

    Each executed line is asked for in several ways: what it returns, assigns or decides by, then the whole line, then both
    told in other ways, then its other parts, what may be missing beside it, it and its neighbours, and at last drawn answers.
    A next way of a line comes after the first ways of the `STRIDE` lines below it in rank. `natural` and `opened` are read as the
    iteration goes on: masks whose likeliest answer was what stands there, of whose lines what else there is to ask waits; and
    blocks that answers opened, of which each is asked next what is inside.
    """
    tellings = _usable_tellings(assignment)
    parsed = Parsed(place.path, text)
    builder = _builder(parsed, place, assignment, tellings[0])
    if builder is None:
        return
    asked: set[tuple[str, str, int, int]] = set()
    waiting = [
        (rank + STRIDE * way, rank, way, mask, telling, draw)
        for rank, masks in enumerate(masks_by_line(parsed, place))
        for way, (mask, telling, draw) in enumerate(_ways_to_ask(masks, tellings))
    ]
    heapq.heapify(waiting)
    put_off: set[tuple[int, int]] = set()
    inside: set[str] = set()
    while waiting:
        for opening in opened:
            if opening.name not in inside and not answers_only(opening, assignment.goals):
                inside.add(opening.name)
                yield builder.request(Mask.gap_before(parsed, opening.line), tellings[0], 0, opening)
        key, rank, way, mask, telling, draw = heapq.heappop(waiting)
        lines = {one.first_line for one in natural if one.first_line == one.last_line}
        if mask.first_line in lines and (rank, way) not in put_off:
            put_off.add((rank, way))
            heapq.heappush(waiting, (key + NATURAL, rank, way, mask, telling, draw))
            continue
        request = builder.request(mask, telling, draw)
        question = (request.fill.before, request.fill.after, request.fill.max_tokens, draw)
        if question not in asked:  # two ways of telling may be one, at a gap
            asked.add(question)
            yield request


def same_gap_requests(
    place: Place, text: str, assignment: Assignment, asked: MaskedRequest
) -> Iterator[MaskedRequest]:
    """The same gap with another assignment, told in the ways in which one can be repaired by a call that it gets wrong."""
    tellings = _usable_tellings(assignment)
    builder = _builder(Parsed(place.path, text), place, assignment, tellings[0])
    if builder is None:
        return
    for telling in tellings[:AGAIN]:
        yield builder.request(asked.mask, telling, 0, asked.opening)


def opened_by(place: Place, text: str, request: MaskedRequest, answer: str) -> Opening | None:
    """The block that the answer opens where one line was asked for; None if it opens none."""
    alone = request.mask.kind in {"line", "gap"} and request.opening is None
    return opening_of(Parsed(place.path, text), request.mask.first_line, answer) if alone else None


def apply(place: Place, text: str, mask: Mask, answer: str, opening: Opening | None = None) -> str | Refused:
    """The file with the answer in place of the mask, in the block that was opened for it if any; or why it is no candidate. What
    stands there already is none.
    """
    parsed = Parsed(place.path, text)
    refused: Refused | None = None
    if opening is not None:
        tried = [(mask, opening.around(answer))] if answer.strip() else []
    else:
        tried = [(mask, written) for written in _answer_readings(parsed, mask, answer)]
        tried += _around_what_stands_there(parsed, place, mask, answer)
    statement = next(statement_at(parsed, place, mask.first_line), mask) if mask.kind == "line" else mask
    if statement.first_line == mask.first_line < statement.last_line:  # models end what they have begun
        tried += [(statement, written) for _, written in tried]
    for replaced, written in tried:
        after = _replace_mask(parsed, replaced, written)
        if after == text or is_same_code(place.path, text, after):
            return Refused(reason=SAME)
        fault = static_fault(place.path, place.name, text, after)
        if not fault:
            return after
        refused = refused or Refused(reason=fault)
    return refused or Refused(reason="the answer adds nothing")


def _around_what_stands_there(
    parsed: Parsed, place: Place, mask: Mask, answer: str
) -> Iterator[tuple[Mask, str]]:
    """The line that was asked about, or the one behind a gap, inside the block that the answer opens."""
    if mask.kind not in {"line", "gap"} or mask.first_line > place.last_line:
        return
    opening = opening_of(parsed, mask.first_line, answer)
    written = None if opening is None else with_line_inside(parsed, opening)
    if written is not None:
        yield Mask.of_lines(parsed, "line", mask.first_line, mask.first_line), written


def gold(path: str, text: str, mask: Mask, right: str) -> str | None:
    """The answer that makes `right` of the file's `text`; None if these differ outside of the mask.

    Example: if `return a - b` is to be `return a + b` and `a - b` is the mask, ` a + b`, since the blank is not shown.
    """
    parsed, whole = Parsed(path, text), Parsed(path, right)
    end = len(whole.raw) - (len(parsed.raw) - mask.end)
    outside = (parsed.piece(0, mask.start), parsed.piece(mask.end, len(parsed.raw)))
    if end < mask.start or (whole.piece(0, mask.start), whole.piece(end, len(whole.raw))) != outside:
        return None
    if mask.kind == "gap":
        return whole.piece(mask.start, end).removesuffix("\n") or None
    return whole.piece(parsed.start(mask.first_line), end).removeprefix(_text_before_mask(parsed, mask))


def _ways_to_ask(masks: list[Mask], tellings: list[Telling]) -> Iterator[tuple[Mask, Telling, int]]:
    """The ways to ask for one line, given its masks: first what there is of it to ask for, then more of telling and drawing."""
    first, *others = masks
    line = next((mask for mask in masks if mask.kind == "line"), first)
    best, *more = tellings
    yield first, best, 0
    if line != first:
        yield line, best, 0
    for telling in more:
        yield first, telling, 0
        if line != first:
            yield line, telling, 0
    for mask in others:
        if mask != line:
            yield mask, best, 0
    for draw in range(1, WARM + 1):
        yield line, best, draw


def _usable_tellings(assignment: Assignment) -> list[Telling]:
    """Those that have something to tell."""
    has_task = bool(assignment.task.strip())
    has_calls = any(goal.call and goal.wanted for goal in assignment.goals)
    return [one for one in TELLINGS if (has_task if one.task else has_calls)] or [TASK]


class _Builder:
    """Builds the requests for one place."""

    def __init__(
        self,
        parsed: Parsed,
        visible: Shown,
        names: Mapping[str, list[int]],
        assignment: Assignment,
        *,
        first: Telling,
    ) -> None:
        """`names`: the lines of each name in the definition; `first`: the telling that each line is first asked for with."""
        self._names = names
        self._first = first
        self._parsed = parsed
        self._shown = visible
        self._assignment = assignment
        self._goals = [goal for goal in assignment.goals if goal.call and goal.wanted][:MOST_GOALS]
        language = language_at(parsed.path)
        assert language is not None, "what has a tree has a language"
        self._language = language
        self._line_tokens = cache(lambda line: estimate(f"{line}\n"))
        self._mark = f"{language.nodes.comment} "

    def request(
        self, mask: Mask, telling: Telling, draw: int, opening: Opening | None = None
    ) -> MaskedRequest:
        parsed, visible = self._parsed, self._shown
        body = visible.body
        before_it, behind_it = NEAR if telling == self._first else WIDE
        rows = [row for row in body if row.number < mask.first_line]
        near = self._rows_that_fit(rows[::-1], before_it)[::-1]
        above = (*self._rows_that_explain(mask, rows[: len(rows) - len(near)]), *near)
        behind = self._rows_that_fit([row for row in body if row.number > mask.last_line], behind_it)
        lead = (
            _text_before_mask(parsed, mask)
            if opening is None
            else f"{opening.header}\n{opening.inner.removesuffix(' ')}"
        )
        last_end = parsed.end(mask.last_line) if mask.kind != "gap" else mask.end
        rest = parsed.piece(mask.end, last_end)
        before = compose(
            (
                self._goal_test_code(telling),
                visible.sourced(visible.around),
                visible.sourced(visible.heads),
                visible.sourced(visible.top),
                visible.sourced(() if telling.example else visible.documented),
                self._evidence_above(telling),
                visible.sourced(above),
                self._wrong_lines_comment(mask, telling),
                self._sourced_line(lead, mask.first_line),
            )
        )
        after = compose(
            (
                self._sourced_line(f"{rest}\n", max(mask.last_line, mask.first_line)),
                visible.sourced(behind),
                self._evidence_below(telling),
            )
        )
        return MaskedRequest(
            mask=mask,
            telling=telling.name,
            draw=draw,
            opening=opening,
            fill=FillRequest(
                before=before,
                after=after,
                stop=self._stop_sequences(mask, behind),
                max_tokens=self._most_tokens(mask),
                sampling=sampling_of(draw, temperature=TEMPERATURE),
                wants_logprobs=True,
            ),
        )

    def _rows_that_fit(self, rows: list[Row], most: int) -> tuple[Row, ...]:
        """The first rows, as far as their tokens fit."""
        totals = itertools.accumulate(self._line_tokens(row.text) for row in rows)
        return tuple(row for row, total in zip(rows, totals, strict=True) if total <= most)

    def _rows_that_explain(self, mask: Mask, rows: list[Row]) -> tuple[Row, ...]:
        """Of the rows, which are too far above to be shown all, the heads of the blocks that the mask is in, and the first with a
        name that it or a line beside it uses: mostly what gives it its value. The nearest, where not all fit.
        """
        beside = range(mask.first_line - 1, max(mask.first_line, mask.last_line) + 2)
        wanted = {lines[0] for lines in self._names.values() if not set(beside).isdisjoint(lines)}
        depth = len(indentation(self._parsed.lines[mask.first_line - 1]))
        chosen = []
        for row in reversed(rows):
            bare = row.text.strip()
            is_head = bool(bare) and len(indentation(row.text)) < depth and bare[-1] in ":{"
            depth = len(indentation(row.text)) if is_head else depth
            chosen += [row] if is_head or row.number in wanted else []
        return self._rows_that_fit(chosen, EXPLAINING)[::-1]

    def _sourced_line(self, text: str, number: int) -> SourcedText:
        return sourced(
            text, PromptSource.FILE, path=self._parsed.path, symbol=self._shown.symbol, number=number
        )

    def _stop_sequences(self, mask: Mask, behind: tuple[Row, ...]) -> tuple[str, ...]:
        """One line ends at its end; several where what stands behind them would be written once more."""
        if mask.kind in {"line", "part", "gap"}:
            return ("\n",)
        following = next((row.text.rstrip() for row in behind if row.text.strip()), "")
        return ("\n\n\n", *((f"\n{following}",) if following else ()))

    def _most_tokens(self, mask: Mask) -> int:
        written = self._parsed.piece(mask.start, mask.end)
        return min(24 + 2 * count_pieces(written), MOST_TOKENS)

    def _evidence_above(self, telling: Telling) -> SourcedText:
        lines: list[str] = []
        source = PromptSource.EVIDENCE
        if telling.task:
            source = PromptSource.TASK
            lines = [f"{self._mark}{line}" for line in wrapped(self._assignment.task)]
        elif telling.comment:
            # What a model guessed of the task says less than the task.
            guessed = all(goal.trust == "hint" for goal in self._goals)
            words = wrapped(self._assignment.task) if guessed else []
            lines = [f"{self._mark}{line}" for line in (*words, *map(_goal_line, self._goals))]
        elif telling.example:
            lines = self._example_lines()
        indented = "".join(f"{self._shown.indent}{line}".rstrip() + "\n" for line in lines)
        return sourced(indented, source)

    def _example_lines(self) -> list[str]:
        stated = [
            (_one_line(goal.whole_call), goal.wanted, _raised_error(goal.wanted)) for goal in self._goals
        ]
        return self._language.stated_examples(self._shown.summary, stated)

    def _wrong_lines_comment(self, mask: Mask, telling: Telling) -> SourcedText:
        is_told = telling.wrong and mask.kind != "gap"
        rows = self._parsed.lines[mask.first_line - 1 : mask.last_line] if is_told else []
        lines = [f"{indentation(rows[0])}{self._mark}wrong: {row.strip()}\n" for row in rows]
        return sourced("".join(lines), PromptSource.EVIDENCE)

    def _goal_test_code(self, telling: Telling) -> SourcedText:
        """The text of tests that make no single call. It is long, so it stands where a server keeps what it has read."""
        codes = [goal.code.rstrip() for goal in self._assignment.goals[:MOST_GOALS] if goal.code]
        is_told = telling.task and not self._goals and codes
        text = "\n\n".join(codes) + "\n\n\n"
        return sourced(text if is_told else "", PromptSource.EVIDENCE)

    def _evidence_below(self, telling: Telling) -> SourcedText:
        tests = "\n".join(map(self._stated_test, self._goals if telling.test else ()))
        return sourced(f"\n\n{tests}\n" if telling.test else "", PromptSource.EVIDENCE)

    def _stated_test(self, goal: GoalTest) -> str:
        call, wanted = _one_line(goal.call), _one_line(goal.wanted)
        test = self._language.stated_test(call, wanted, _raised_error(goal.wanted))
        return f"{goal.setup}\n{test}" if goal.setup else test


def _builder(parsed: Parsed, place: Place, assignment: Assignment, first: Telling) -> _Builder | None:
    """None if the place cannot be shown."""
    visible = shown(parsed, place)
    if visible is None:
        return None
    return _Builder(parsed, visible, _names_of(parsed, place), assignment, first=first)


def _names_of(parsed: Parsed, place: Place) -> dict[str, list[int]]:
    """The lines of each name in the definition, in order."""
    root = parsed.node(place)
    lines: dict[str, list[int]] = {}
    for node in [] if root is None else walk(root):
        if node.type in IDENTIFIERS:
            lines.setdefault(node_text(node), []).append(node.start_point.row + 1)
    return lines


def _goal_line(goal: GoalTest) -> str:
    call, wanted, got = _one_line(goal.whole_call), _one_line(goal.wanted), _one_line(goal.got)
    error = _raised_error(goal.wanted)
    should = f"should raise {error}" if error else f"should give {wanted}"
    return f"`{call}` {gives(got)}, but it {should}" if got else f"`{call}` {should}"


def _raised_error(value: str) -> str:
    """The error that a value says is raised; "" if it is a value."""
    found = value.removeprefix("raises ") if value.startswith("raises ") else ""
    return found.split(":")[0].split()[0] if found.strip() else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]


def _text_before_mask(parsed: Parsed, mask: Mask) -> str:
    """What is shown of the mask's first line before it."""
    if mask.whole_lines:
        return _leading_blanks(parsed, mask)
    return parsed.piece(parsed.start(mask.first_line), mask.start).removesuffix(" ")


def _leading_blanks(parsed: Parsed, mask: Mask) -> str:
    """What the model is given of a whole line: its indentation less the last blank, which tokenizers keep with the word
    behind it. Nothing of a new line, whose indentation is open.
    """
    return "" if mask.kind == "gap" else indentation(parsed.lines[mask.first_line - 1]).removesuffix(" ")


def _answer_readings(parsed: Parsed, mask: Mask, answer: str) -> Iterator[str]:
    """The answer as it may be meant, the most literal first."""
    written = answer.replace("\r\n", "\n").rstrip()
    if mask.kind == "part":
        lead = parsed.piece(parsed.start(mask.first_line), mask.start).strip()
        behind = parsed.piece(mask.end, parsed.end(mask.last_line)).strip()
        yield from _part_readings(written.strip(), lead, behind)
        return
    if mask.kind == "gap":
        beside = {line.strip() for line in parsed.lines[max(mask.first_line - 2, 0) : mask.first_line]}
        yield from (written.lstrip("\n"),) if {written.strip()} - beside - {""} else ()
        return
    if not written.strip():
        yield ""
        return
    first, *rest = written.lstrip("\n").split("\n")
    indent = indentation(parsed.lines[mask.first_line - 1])
    if not rest and (comment := COMMENTED.fullmatch(first.strip())):
        first = indent + comment[1]
    elif not first[:1].isspace():
        first = indent + first
    elif not first.startswith(indent):
        first = _leading_blanks(parsed, mask) + first
    yield "\n".join((first, *rest))
    if indentation(first) != indent:
        yield "\n".join((indent + first.lstrip(), *rest))


def _part_readings(written: str, lead: str, behind: str) -> Iterator[str]:
    """What is written of a line between `lead` and `behind`, as it is, then without what stands there already: models go on
    to the end of a line (`n == 2:`), and begin it anew (`if n == 2`).
    """
    inner = written.removeprefix(lead).lstrip() if lead else written
    before, found, comment = inner.rpartition(behind) if behind else ("", "", inner)
    ended = found and comment.lstrip().startswith(("#", "//"))  # the comment would take in what stands behind
    if written and not ended:
        yield written
    ends = [len(inner) - size for size in range(len(behind), 0, -1) if inner.endswith(behind[:size])]
    for end in dict.fromkeys((*((len(before),) if ended else ()), *ends)):
        yield inner[:end].rstrip()
    if inner != written:
        yield inner
    if (end := _own_end(inner)) < len(inner):
        yield inner[:end].rstrip()


def _own_end(written: str) -> int:
    """Where the brackets close that were open before it; its length if they do not."""
    depth = 0
    for token in QUOTED_OR_BRACKET.finditer(written):
        depth += token[0] in "([{"
        depth -= token[0] in ")]}"
        if depth < 0:
            return token.start()
    return len(written)


def _replace_mask(parsed: Parsed, mask: Mask, written: str) -> str:
    """The file with this in place of the mask; a line of which nothing is left goes with its end."""
    if mask.kind == "gap":
        written += "\n"
    elif mask.whole_lines and not written:
        return parsed.spliced(mask.start, min(parsed.starts[mask.last_line], len(parsed.raw)), "")
    return parsed.spliced(mask.start, mask.end, written)

"""The positions of the boxes and arrows of a plan: parts from top to bottom by their dependencies, and steps likewise
within them.

A part that depends on row 2 is in row 3; parts of one row are side by side. Plans are small (at most ten parts of
fifteen steps), so rows by the longest path are all the layout that they need.
"""

import textwrap
from collections.abc import Mapping, Sequence

from msgspec import Struct

from clean_room_agent.report.page.plan_graph import STATES, PartNode, PlanGraph, State, StepNode

STEP_WIDTH, STEP_HEIGHT = 232, 64
PAD, TITLE = 14, 30
GAP_X, GAP_Y = 18, 30
LETTER = 6.1
"""Width of a letter of a box's text; text that does not fit is only in the list below the picture."""
TEXT_LINES = 2


class Box(Struct, frozen=True, kw_only=True):
    """A part or a step."""

    x: int
    y: int
    width: int
    height: int
    title: str
    lines: tuple[str, ...]
    state: State
    said: str
    """Its whole text, with its outcome."""


class Arrow(Struct, frozen=True, kw_only=True):
    """An arrow from a dependency down to what depends on it."""

    x1: int
    y1: int
    x2: int
    y2: int

    @property
    def curve(self) -> str:
        """The line as an SVG path."""
        bend = max(14, (self.y2 - self.y1) // 2)
        return f"M{self.x1} {self.y1}C{self.x1} {self.y1 + bend} {self.x2} {self.y2 - bend} {self.x2} {self.y2 - 6}"

    @property
    def head(self) -> str:
        """Its point as an SVG path."""
        return f"M{self.x2} {self.y2}l-4 -7h8z"


class PlanPicture(Struct, frozen=True, kw_only=True):
    """All of it, in pixels."""

    width: int
    height: int
    parts: tuple[Box, ...]
    steps: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def plan_picture(graph: PlanGraph) -> PlanPicture:
    """The plan laid out."""
    parts: list[Box] = []
    steps: list[Box] = []
    arrows: list[Arrow] = []
    y = 1
    boxes: dict[str, Box] = {}
    for row in rows_of({part.id: part.needs for part in graph.parts}):
        x = 1
        for part in (part for name in row for part in graph.parts if part.id == name):
            box, inside, between = _part(part, x, y)
            boxes[part.id] = box
            steps += inside
            arrows += between
            x += box.width + GAP_X
        y = max(boxes[name].y + boxes[name].height for name in row) + GAP_Y
    parts = [boxes[part.id] for part in graph.parts]
    arrows += _arrows(boxes, {part.id: part.needs for part in graph.parts})
    return PlanPicture(
        width=max(box.x + box.width for box in parts) + 1,
        height=max(box.y + box.height for box in parts) + 1,
        parts=tuple(parts),
        steps=tuple(steps),
        arrows=tuple(arrows),
    )


def rows_of(needs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The names in rows, each below everything that it needs. Unknown and cyclic dependencies are ignored."""
    depth = dict.fromkeys(needs, 0)
    for _ in needs:
        for name, wanted in needs.items():
            below = 1 + max((depth[each] for each in wanted if each in depth and each != name), default=-1)
            depth[name] = min(max(depth[name], below), len(needs) - 1)
    rows = [[name for name in needs if depth[name] == row] for row in range(len(needs))]
    return [row for row in rows if row]


def _part(part: PartNode, x: int, y: int) -> tuple[Box, list[Box], list[Arrow]]:
    """The part's box, those of its steps, and the arrows between these."""
    steps: dict[str, Box] = {}
    rows = rows_of({step.id: step.needs for step in part.steps})
    top = y + TITLE + PAD
    for row in rows:
        for place, name in enumerate(row):
            step = next(step for step in part.steps if step.id == name)
            steps[name] = _step(step, x + PAD + place * (STEP_WIDTH + GAP_X), top)
        top += STEP_HEIGHT + GAP_Y
    widest = max(map(len, rows), default=1)
    width = 2 * PAD + widest * STEP_WIDTH + (widest - 1) * GAP_X
    height = TITLE + PAD + len(rows) * (STEP_HEIGHT + GAP_Y) + (PAD - GAP_Y if rows else 0)
    title = f"{part.id}: {part.description}" if part.description else part.id
    box = Box(
        x=x,
        y=y,
        width=width,
        height=height,
        title=_short(title, width - 2 * PAD),
        lines=(),
        state=part.state,
        said=f"part {title} ({STATES[part.state]})",
    )
    return box, list(steps.values()), _arrows(steps, {step.id: step.needs for step in part.steps})


def _step(step: StepNode, x: int, y: int) -> Box:
    letters = int((STEP_WIDTH - 2 * PAD) / LETTER)
    words = step.description or ", ".join(step.files)
    lines = textwrap.wrap(words, width=letters, max_lines=TEXT_LINES, placeholder=" …")
    return Box(
        x=x,
        y=y,
        width=STEP_WIDTH,
        height=STEP_HEIGHT,
        title=_short(f"{step.id} · {STATES[step.state]}", STEP_WIDTH - 2 * PAD),
        lines=tuple(lines),
        state=step.state,
        said=f"step {step.id} ({STATES[step.state]}): {words}",
    )


def _short(text: str, width: int) -> str:
    letters = int(width / LETTER / 1.1)
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def _arrows(boxes: Mapping[str, Box], needs: Mapping[str, Sequence[str]]) -> list[Arrow]:
    return [
        Arrow(
            x1=boxes[wanted].x + boxes[wanted].width // 2,
            y1=boxes[wanted].y + boxes[wanted].height,
            x2=boxes[name].x + boxes[name].width // 2,
            y2=boxes[name].y,
        )
        for name, all_wanted in needs.items()
        for wanted in all_wanted
        if wanted in boxes and boxes[wanted].y < boxes[name].y
    ]

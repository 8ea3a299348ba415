"""The console that every rich view is printed on: what a view shows cannot steer the terminal, whoever made it."""

from collections.abc import Iterator
from typing import TextIO

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.segment import Segment

from clean_room_agent.cli.display import visible


class SafeText:
    """A view with the control characters of its texts as escapes; its own styles and cursor movements stay."""

    def __init__(self, view: ConsoleRenderable) -> None:
        self._view = view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._view, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


class _MakeSafe(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [SafeText(view) for view in renderables]


def safe_console(file: TextIO) -> Console:
    """A console that writes to `file`; what is printed on it is safe for a terminal."""
    console = Console(file=file, soft_wrap=True)
    console.push_render_hook(_MakeSafe())
    return console

"""A table of figures for a terminal of any width: names go above their figures if there is no space next to them."""

from collections.abc import Iterator

from msgspec import Struct, field
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

PAD = 1
"""Columns between figures."""
INDENT = "  "


class FigureTable(Struct, kw_only=True):
    """Rows of a name and figures; it chooses its form when it is drawn."""

    name: str
    """Above the names."""
    heads: tuple[str, ...]
    """Above the figures."""
    rows: list[tuple[Text, tuple[str | Text, ...]]] = field(default_factory=list)
    """A row without figures is a heading."""

    def add(self, name: Text, *figures: str | Text) -> None:
        """Add a row."""
        self.rows.append((name, figures))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Names next to their figures, or above them."""
        widths = [cell_len(head) for head in self.heads]
        for _, figures in self.rows:
            for number, figure in enumerate(figures):
                widths[number] = max(widths[number], cell_len(_text(figure).plain))
        words = [len(word) for name, figures in self.rows if figures for word in name.plain.split()]
        beside = max((len(self.name), *words)) + sum(widths) + PAD * len(widths)
        if beside <= options.max_width:
            yield from self._beside(console, widths, options.max_width - sum(widths) - PAD * len(widths))
        else:
            yield from self._above(widths)

    def _beside(self, console: Console, widths: list[int], widest: int) -> Iterator[Text]:
        names = [cell_len(name.plain) for name, figures in self.rows if figures]
        width = min(max((len(self.name), *names)), widest)
        yield Text(self.name.ljust(width), style="dim").append_text(
            _row(self.heads, widths, indent=" " * PAD)
        )
        for name, figures in self.rows:
            if not figures:
                yield name
                continue
            first, *others = name.wrap(console, width)
            first.rstrip()
            first.pad_right(width - cell_len(first.plain))
            yield first.append_text(_row(figures, widths, indent=" " * PAD))
            yield from others

    def _above(self, widths: list[int]) -> Iterator[Text]:
        yield Text(self.name, style="dim")
        yield _row(self.heads, widths, style="dim")
        for name, figures in self.rows:
            yield name
            if figures:
                yield _row(figures, widths)


def _row(figures: tuple[str | Text, ...], widths: list[int], style: str = "", indent: str = INDENT) -> Text:
    line = Text(indent, style=style)
    for number, (figure, width) in enumerate(zip(figures, widths, strict=True)):
        cell = _text(figure)
        line.append(" " * (width - cell_len(cell.plain) + (PAD if number else 0)))
        line.append_text(cell)
    return line


def _text(figure: str | Text) -> Text:
    return figure if isinstance(figure, Text) else Text(figure)

"""A table of figures that a narrow terminal can show: where names and figures do not fit side by side, each name is a line."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

PAD = 1
"""Columns between figures."""
INDENT = "  "


@dataclass(kw_only=True)
class FigureTable:
    """Rows of a name and figures; it chooses its form when it is drawn."""

    name: str
    """Above the names."""
    heads: tuple[str, ...]
    """Above the figures."""
    rows: list[tuple[Text, tuple[str | Text, ...]]] = field(default_factory=list)
    """Without figures: a heading among the rows."""

    def add(self, name: Text, *figures: str | Text) -> None:
        """One more row."""
        self.rows.append((name, figures))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Names beside their figures, or above them."""
        del console
        widths = [cell_len(head) for head in self.heads]
        for _, figures in self.rows:
            for number, figure in enumerate(figures):
                widths[number] = max(widths[number], cell_len(_text(figure).plain))
        words = [len(word) for name, figures in self.rows if figures for word in name.plain.split()]
        beside = max((len(self.name), *words)) + sum(widths) + PAD * len(widths)
        if beside <= options.max_width:
            yield self._beside()
        else:
            yield from self._above(widths)

    def _beside(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, PAD, 0, 0))
        table.add_column(self.name, overflow="fold")
        for head in self.heads:
            table.add_column(head, justify="right", no_wrap=True)
        for name, figures in self.rows:
            table.add_row(name, *figures)
        return table

    def _above(self, widths: list[int]) -> Iterator[Text]:
        yield Text(self.name, style="dim")
        yield _row(self.heads, widths, style="dim")
        for name, figures in self.rows:
            yield name
            if figures:
                yield _row(figures, widths)


def _row(figures: tuple[str | Text, ...], widths: list[int], style: str = "") -> Text:
    line = Text(INDENT, style=style)
    for number, (figure, width) in enumerate(zip(figures, widths, strict=True)):
        cell = _text(figure)
        line.append(" " * (width - cell_len(cell.plain) + (PAD if number else 0)))
        line.append_text(cell)
    return line


def _text(figure: str | Text) -> Text:
    return figure if isinstance(figure, Text) else Text(figure)

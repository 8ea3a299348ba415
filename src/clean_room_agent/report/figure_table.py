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
        words = [width for name, figures in self.rows if figures for width in _word_widths(name)]
        beside = max((len(self.name), *words)) + sum(widths) + PAD * len(widths)
        if beside <= options.max_width:
            yield from self._beside(console, widths, options.max_width - sum(widths) - PAD * len(widths))
        else:
            yield from self._above(console, widths, options.max_width)

    def _beside(self, console: Console, widths: list[int], widest: int) -> Iterator[Text]:
        names = [cell_len(line) for name, figures in self.rows if figures for line in name.plain.split("\n")]
        width = min(max((len(self.name), *names)), widest)
        yield Text(self.name.ljust(width), style="dim").append_text(
            _row(self.heads, widths, indent=" " * PAD)
        )
        for name, figures in self.rows:
            if not figures:
                yield name
                continue
            first, *others = _wrapped(console, name, width)
            first.pad_right(width - cell_len(first.plain))
            yield first.append_text(_row(figures, widths, indent=" " * PAD))
            yield from others

    def _above(self, console: Console, widths: list[int], width: int) -> Iterator[Text]:
        yield Text(self.name, style="dim")
        yield _row(self.heads, widths, style="dim")
        for name, figures in self.rows:
            yield from _wrapped(console, name, width)
            if figures:
                yield _row(figures, widths)


def _word_widths(name: Text) -> Iterator[int]:
    """How many columns each word of a name needs, with the indent of its line."""
    for line in name.plain.split("\n"):
        yield from (_indent(line) + cell_len(word) for word in line.split())


def _wrapped(console: Console, name: Text, width: int) -> list[Text]:
    """The name in lines of at most this width; a line that is continued keeps its indent."""
    found = []
    for line in name.split("\n"):
        indent = _indent(line.plain)
        for piece in line[indent:].wrap(console, width - indent):
            piece.rstrip()
            piece.pad_left(indent)
            found.append(piece)
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _row(figures: tuple[str | Text, ...], widths: list[int], style: str = "", indent: str = INDENT) -> Text:
    line = Text(indent, style=style)
    for number, (figure, width) in enumerate(zip(figures, widths, strict=True)):
        cell = _text(figure)
        line.append(" " * (width - cell_len(cell.plain) + (PAD if number else 0)))
        line.append_text(cell)
    return line


def _text(figure: str | Text) -> Text:
    return figure if isinstance(figure, Text) else Text(figure)

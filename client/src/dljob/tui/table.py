"""A table that draws only the rows on the screen.

Textual's DataTable draws all cells anew whenever it is sorted, a tenth of a second, and takes seconds to remove
2,000 rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip


class Row(NamedTuple):
    """A line of the table."""

    key: str
    cells: tuple[str, ...]
    """Harmless text, a cell for each column."""
    styles: tuple[str, ...]
    """Rich's name of the style of each cell; "" for none."""


class Table(ScrollView, can_focus=True):
    """Rows below a head; one of them has the cursor, which stays at its row when the order changes."""

    DEFAULT_CSS = """
    Table { background: $surface; }
    Table > .table--head { background: $panel; color: $foreground; text-style: bold; }
    Table > .table--cursor { background: $primary; color: $text; text-style: bold; }
    Table > .table--even { background: $surface; color: $foreground; }
    Table > .table--odd { background: $boost; color: $foreground; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--head", "table--cursor", "table--even", "table--odd"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "move(-1000000)", "First", show=False),
        Binding("end", "move(1000000)", "Last", show=False),
    ]

    class Chosen(Message):
        """A click on the row of the cursor."""

    def __init__(self, columns: Sequence[str]) -> None:
        super().__init__()
        self._columns = tuple(columns)
        self._widths = [cell_len(name) for name in columns]
        self._rows: Sequence[Row] = ()
        self._cursor = 0

    @property
    def rows(self) -> Sequence[Row]:
        """All rows, in their order."""
        return self._rows

    @property
    def selected(self) -> str:
        """The key of the row of the cursor; "" without rows."""
        return self._rows[self._cursor].key if self._rows else ""

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows in this order. Columns only grow."""
        before, selected = self._rows, self.selected
        if rows == before:
            return
        widths = list(self._widths)
        for row in rows:
            for number, cell in enumerate(row.cells):
                if len(cell) > widths[number] or not cell.isascii():
                    widths[number] = max(widths[number], cell_len(cell))
        self._rows = rows
        place = next((number for number, row in enumerate(rows) if row.key == selected), self._cursor)
        was_seen = self._sees(self._cursor)
        self._cursor = max(0, min(place, len(rows) - 1))
        top, bottom = round(self.scroll_y), round(self.scroll_y) + self.size.height
        is_same_size = widths == self._widths and len(rows) == len(before)
        if not is_same_size:
            self._widths = widths
            self.virtual_size = Size(sum(widths) + 2 * len(widths), len(rows) + 1)
        if was_seen:
            self._scroll_to_cursor()
        if not is_same_size or place != self._cursor or rows[top:bottom] != before[top:bottom]:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The head, or a row."""
        left, top = self.scroll_offset
        number = top + y - 1
        width = self.size.width
        if y == 0:
            return self._strip(self._columns, ("",) * len(self._columns), "head").crop(left, left + width)
        if number >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        row = self._rows[number]
        look = "cursor" if number == self._cursor else ("even", "odd")[number % 2]
        return self._strip(row.cells, row.styles, look).crop(left, left + width)

    def _strip(self, cells: Sequence[str], styles: Sequence[str], look: str) -> Strip:
        ground = self.get_component_rich_style(f"table--{look}")
        parts = [
            Segment(
                f" {set_cell_size(cell, width)} ",
                ground + Style.parse(style) if style and look != "cursor" else ground,
            )
            for cell, style, width in zip(cells, styles, self._widths, strict=True)
        ]
        used = sum(self._widths) + 2 * len(self._widths)
        parts.append(Segment(" " * max(0, self.size.width - used), ground))
        return Strip(parts, max(used, self.size.width))

    # --- the cursor

    def action_move(self, rows: int) -> None:
        """Move it down by some rows, or up."""
        if self._rows:
            self._cursor = max(0, min(self._cursor + rows, len(self._rows) - 1))
            self._scroll_to_cursor()
            self.refresh()

    def action_page(self, pages: int) -> None:
        """Move it by what is shown at once."""
        self.action_move(pages * max(1, self.size.height - 2))

    def on_click(self, event: Click) -> None:
        """Move it there, or choose the row where it is."""
        number = self.scroll_offset.y + event.y - 1
        if event.y == 0 or number >= len(self._rows):
            return
        if number == self._cursor:
            self.post_message(self.Chosen())
        else:
            self.action_move(number - self._cursor)

    def _sees(self, number: int) -> bool:
        return 0 <= number - self.scroll_offset.y < max(1, self.size.height - 1)

    def _scroll_to_cursor(self) -> None:
        """The head covers the first line."""
        top, seen = self.scroll_offset.y, max(1, self.size.height - 1)
        wanted = min(self._cursor, max(top, self._cursor - seen + 1))
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, immediate=True)

"""The terminal view's table, by keys and mouse, in a terminal of ten lines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("textual")
from dljob.tui.table import Row, Table
from rich.cells import cell_len
from textual.app import App, ComposeResult

SIZE = (30, 10)
"""Columns and lines: the head and nine rows, or eight above the bar to scroll aside."""


class TableApp(App[None]):
    """Nothing but a table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = Table(("NAME", "STATE"))
        self.chosen: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.table

    def on_mount(self) -> None:
        self.table.focus()

    def on_table_chosen(self) -> None:
        self.chosen.append(self.table.selected)


def numbered(count: int) -> list[Row]:
    return [row(f"job-{number}") for number in range(count)]


def row(name: str, state: str = "Running") -> Row:
    return Row(name, (name, state), ("", "green"))


def drive(rows: Sequence[Row], steps: Callable[[TableApp, Any], Awaitable[None]]) -> None:
    async def run() -> None:
        app = TableApp()
        async with app.run_test(size=SIZE) as pilot:
            app.table.show(rows)
            await pilot.pause()
            await steps(app, pilot)

    asyncio.run(run())


def shown(app: TableApp) -> list[str]:
    """The lines on the screen."""
    return [app.table.render_line(line).text for line in range(app.table.scrollable_content_region.height)]


def first_cells(app: TableApp) -> list[str]:
    return [line.split()[0] if line.split() else "" for line in shown(app)]


def test_keys_move_the_cursor_and_what_is_shown() -> None:
    async def steps(app: TableApp, pilot: Any) -> None:
        assert first_cells(app) == ["NAME", *(f"job-{number}" for number in range(9))]
        for keys, selected, top in (
            (["up"], "job-0", 0),
            (["down"] * 8, "job-8", 0),
            (["down"], "job-9", 1),
            (["up"], "job-8", 1),
            (["end"], "job-99", 91),
            (["down"], "job-99", 91),
            (["pageup"], "job-91", 91),
            (["pageup"], "job-83", 83),
            (["pagedown"], "job-91", 83),
            (["home"], "job-0", 0),
            (["pageup"], "job-0", 0),
            (["pagedown", "pagedown"], "job-16", 8),
        ):
            await pilot.press(*keys)
            await pilot.pause()
            assert app.table.selected == selected, keys
            assert first_cells(app)[1:] == [f"job-{top + number}" for number in range(9)], keys

    drive(numbered(100), steps)


def test_a_key_redraws_the_cursor_at_once() -> None:
    """Also at the end, where nothing moves."""

    async def steps(app: TableApp, pilot: Any) -> None:
        def ground(line: int) -> Any:
            (segment, *_) = app.table.render_line(line)
            return segment.style.bgcolor

        other, cursor = ground(2), ground(1)
        assert other != cursor
        await pilot.press("down")
        assert (ground(2), ground(1)) != (other, cursor) and ground(2) == cursor
        await pilot.press("down")
        assert ground(2) == cursor

    drive(numbered(2), steps)


def test_clicks() -> None:
    async def steps(app: TableApp, pilot: Any) -> None:
        await pilot.press("pagedown", "pagedown")
        for line, selected, chosen in ((0, "job-16", 0), (3, "job-10", 0), (3, "job-10", 1), (9, "job-16", 1)):
            await pilot.click(Table, offset=(3, line))
            await pilot.pause()
            assert (app.table.selected, len(app.chosen)) == (selected, chosen), line
        app.table.show(numbered(2))
        await pilot.pause()
        await pilot.click(Table, offset=(3, 5))
        assert app.table.selected == "job-1", "there is no row"

    drive(numbered(100), steps)


def test_a_row_less_than_are_shown() -> None:
    async def steps(app: TableApp, pilot: Any) -> None:
        await pilot.press("end")
        app.table.show(numbered(5))
        await pilot.pause()
        assert app.table.selected == "job-4"
        assert first_cells(app) == ["NAME", *(f"job-{number}" for number in range(5)), "", "", "", ""]
        app.table.show([])
        await pilot.pause()
        assert app.table.selected == "" and first_cells(app)[1:] == [""] * 9
        await pilot.press("down", "end", "pageup")
        assert app.table.selected == ""

    drive(numbered(100), steps)


def test_columns_that_do_not_fit_are_reached() -> None:
    async def steps(app: TableApp, pilot: Any) -> None:
        assert "Running" not in shown(app)[1]
        await pilot.press(*["right"] * 40)
        await pilot.wait_for_scheduled_animations()
        await pilot.pause()
        assert "Running" in shown(app)[1] and "STATE" in shown(app)[0]
        assert shown(app)[0].index("STATE") == shown(app)[1].index("Running")

    drive([row("a" * 40), row("b")], steps)


def test_wide_characters_keep_the_columns() -> None:
    names = ["日本語", "ascii", "é", "🙂🙂"]

    async def steps(app: TableApp, pilot: Any) -> None:
        lines = shown(app)
        places = {cell_len(line[: line.index("Running")]) for line in lines[1:5]}
        assert len(places) == 1
        assert {cell_len(line) for line in lines} == {SIZE[0]}
        await pilot.press("right")
        await pilot.pause()
        assert {cell_len(line) for line in shown(app)} == {SIZE[0]}, "half a character is on the edge"

    drive([row(name) for name in names] + [row("x" * 20)], steps)

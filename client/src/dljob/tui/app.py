"""The list of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer
from textual.widgets import DataTable, Footer, Input, Static

from dljob.client import Change, Client
from dljob.errors import DljobError
from dljob.output import printable
from dljob.tui.board import SHOWN, Board, cells
from dljob.tui.confirm import Confirm
from dljob.tui.feed import Feed
from dljob.tui.job import JobScreen
from dljob.view import FAILED, FINAL, INVALID, QUEUED, RESTARTING, RUNNING, SUCCEEDED, SUSPENDED, JobView

TICK = 0.25
"""Seconds between two looks at what has changed."""
_OLDER = 100
"""Jobs whose ages are computed anew at a tick."""
_COLORS = {
    RUNNING: "green",
    SUCCEEDED: "cyan",
    FAILED: "red",
    INVALID: "red",
    **dict.fromkeys((RESTARTING, QUEUED, SUSPENDED), "yellow"),
}
_OF_LIST = frozenset(("open", "filter", "sort", "reverse", "steer", "leave_filter"))
_SORTS = ("namespace", "name", "state", "gpus", "restarts", "running", "age", "user")


class JobsApp(App[None]):
    """Shows the jobs of a cluster as they change. Actions ask first."""

    TITLE = "dljob"
    CSS = """
    #filter { display: none; height: 3; }
    #filter.open { display: block; }
    #status { height: 1; color: $text-muted; padding: 0 1; }
    #status.failed { color: $error; }
    DataTable { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open"),
        Binding("l", "open('logs')", "Logs"),
        Binding("w", "open('why')", "Why"),
        Binding("slash", "filter", "Filter"),
        Binding("s", "sort", "Sort"),
        Binding("S", "reverse", "Reverse", show=False),
        Binding("p", "steer('suspend')", "Suspend/resume"),
        Binding("r", "steer('restart')", "Restart"),
        Binding("d", "steer('delete')", "Delete"),
        Binding("escape", "leave_filter", "All jobs", show=False),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, client: Client, watch: Callable[[Callable[[], bool]], Iterator[Change]]) -> None:
        super().__init__()
        self.client = client
        self.board = Board()
        self._watch = watch
        self._feed: Feed[Change] | None = None
        self._line = Input(placeholder="words that all must match; ns:, user:, state: for a column", id="filter")
        self._table: DataTable[Text] = DataTable(cursor_type="row", zebra_stripes=True)
        self._status = Static(id="status")
        self._rows: set[str] = set()
        self._older: list[str] = []
        self._typing: Timer | None = None
        self._said = ""
        self._shown = ""

    def compose(self) -> ComposeResult:
        """The filter, the table, a line about all, and the keys."""
        yield self._line
        yield self._table
        yield self._status
        yield Footer()

    def on_mount(self) -> None:
        """Begin to watch."""
        table = self._table
        for name in SHOWN:
            table.add_column(name, key=name)
        table.focus()
        self._feed = Feed(self._watch, repeat=True)
        self.set_interval(TICK, self._tick)
        self._show_status()

    def on_unmount(self) -> None:
        """End the thread."""
        if self._feed:
            self._feed.stop()

    @property
    def selected(self) -> JobView | None:
        """The job at the cursor."""
        table = self._table
        if not table.row_count:
            return None
        key = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
        return self.board.job(key or "")

    # --- what changes

    def _tick(self) -> None:
        if not self._table.is_attached:  # the view is closing
            return
        touched = self.board.apply(self._feed.take()) if self._feed else set()
        if not self._older:
            self._older = self.board.uids
        older, self._older = self._older[:_OLDER], self._older[_OLDER:]
        self.board.grow_older(older)
        if touched:
            self._update(touched, anew=False)
            self._sort()
        self._update(set(older) & self._rows, anew=True)
        self._show_status()

    def _update(self, uids: set[str], *, anew: bool) -> None:
        """Bring these rows up to date; ``anew``: only what time changes."""
        table = self._table
        for uid in uids:
            job = self.board.job(uid)
            if job is None or not self.board.shows(uid):
                if uid in self._rows:
                    table.remove_row(uid)
                    self._rows.discard(uid)
            elif uid not in self._rows:
                table.add_row(*_styled(job), key=uid)
                self._rows.add(uid)
            else:
                for name, cell in zip(SHOWN, _styled(job), strict=True):
                    if (not anew or name in ("RUNNING", "AGE")) and table.get_cell(uid, name) != cell:
                        table.update_cell(uid, name, cell)

    def _sort(self) -> None:
        """Sort the rows; the cursor stays at its job."""
        table = self._table
        selected = self.selected
        places = {uid: self.board.place(uid) for uid in self._rows}
        table.sort("NAME", key=lambda cell: places[cell.uid], reverse=self.board.descending)
        if selected and selected.uid in self._rows:
            table.move_cursor(row=table.get_row_index(selected.uid), animate=False)

    def _show_status(self) -> None:
        error = self._feed.error if self._feed else ""
        running = sum(job.state == RUNNING for job in map(self.board.job, self.board.uids) if job)
        order = f"{self.board.sort_key}, {'descending' if self.board.descending else 'ascending'}"
        counts = f"{len(self._rows)} of {len(self.board)} jobs, {running} running; sorted by {order}"
        text = error or self._said or counts
        if text != self._shown:  # a redraw at every tick would be for nothing
            self._shown = text
            self._status.set_class(bool(error), "failed")
            self._status.update(Text(printable(text)))

    # --- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of the list are those of no other page."""
        return action not in _OF_LIST or len(self.screen_stack) == 1

    def action_leave_filter(self) -> None:
        """Show all jobs again."""
        self._line.value = ""
        self._line.remove_class("open")
        self._table.focus()

    def action_open(self, tab: str = "summary") -> None:
        """Show the page of the job at the cursor."""
        job = self.selected
        if job:
            self.push_screen(JobScreen(self.client, job, tab))

    def on_data_table_row_selected(self) -> None:
        """Enter, or a click on the row of the cursor."""
        self.action_open()

    def action_filter(self) -> None:
        """Open or leave the line of the filter."""
        self._line.add_class("open")
        self._line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter once the user types no more."""
        if self._typing:
            self._typing.stop()
        self._typing = self.set_timer(TICK, lambda: self._set_filter(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: filter now, and go to the table."""
        self._set_filter(event.value)
        event.input.set_class(bool(event.value), "open")
        self._table.focus()

    def _set_filter(self, text: str) -> None:
        self.board.filter = text
        self._update(set(self.board.uids), anew=False)
        self._sort()
        self._show_status()

    def action_sort(self) -> None:
        """Sort by the next column."""
        here = _SORTS.index(self.board.sort_key)
        self.board.sort_key = _SORTS[(here + 1) % len(_SORTS)]
        self._sort()
        self._show_status()

    def action_reverse(self) -> None:
        """Sort the other way round."""
        self.board.descending = not self.board.descending
        self._sort()
        self._show_status()

    def action_steer(self, what: str) -> None:
        """Suspend or resume, restart, or delete the job at the cursor, if the user says yes."""
        job = self.selected
        if job is None:
            return
        verb = "resume" if what == "suspend" and job.state == SUSPENDED else what
        if verb == "suspend" and job.state in FINAL:
            self._said = f"{job.key} has ended ({job.state})."
            return

        def done(yes: bool | None) -> None:
            if yes:
                self.run_worker(lambda: self._steer(verb, job), thread=True, exclusive=False)

        self.push_screen(Confirm(f"{verb.title()} {job.key} in {job.namespace}?"), done)

    def _steer(self, verb: str, job: JobView) -> None:
        try:
            getattr(self.client, verb)(job.key, namespace=job.namespace)
            self._said = f"{job.key}: {verb} is done."
        except DljobError as e:
            self._said = f"{job.key}: {e}"


class _Name(Text):
    """The cell with the name, which knows its job: a table sorts by its cells."""

    uid = ""


def _styled(job: JobView) -> list[Text]:
    row = [Text(printable(cell)) for cell in cells(job)]
    row[SHOWN.index("STATE")].stylize(_COLORS.get(job.state, ""))
    name = _Name(row[SHOWN.index("NAME")].plain)
    name.uid = job.uid
    row[SHOWN.index("NAME")] = name
    return row

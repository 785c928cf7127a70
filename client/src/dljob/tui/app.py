"""The list of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer
from textual.widgets import Footer, Input, Static

from dljob.client import Change, Client
from dljob.errors import DljobError, NotCreated
from dljob.output import printable
from dljob.tui.board import SHOWN, Board, cells
from dljob.tui.confirm import Confirm
from dljob.tui.feed import Feed
from dljob.tui.job import JobScreen
from dljob.tui.table import Row, Table
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
_SORTS = ("namespace", "name", "state", "gpus", "restarts", "running", "progress", "age", "user")


class JobsApp(App[None]):
    """Shows the jobs of a cluster as they change. Actions ask first."""

    TITLE = "dljob"
    CSS = """
    #filter { display: none; height: 3; }
    #filter.open { display: block; }
    #status { height: 1; color: $text-muted; padding: 0 1; }
    #status.failed { color: $error; }
    Table { height: 1fr; }
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
        self.lost: list[NotCreated] = []
        """Jobs that were deleted and not created again."""
        self._watch = watch
        self._feed: Feed[Change] | None = None
        self._line = Input(placeholder="words that all must match; ns:, user:, state: for a column", id="filter")
        self._table = Table(SHOWN)
        self._status = Static(id="status")
        self._rows: dict[str, Row] = {}
        self._matching: set[str] = set()
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
        self._table.focus()
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
        return self.board.job(self._table.selected)

    # --- what changes

    def _tick(self) -> None:
        if not self._table.is_attached:  # the view is closing
            return
        touched = self.board.apply(self._feed.take()) if self._feed else set()
        if not self._older:
            self._older = self.board.uids
        older, self._older = self._older[:_OLDER], self._older[_OLDER:]
        self.board.grow_older(older)
        self._update({*touched, *older})
        if touched:
            self._sort()
        elif older:
            self._table.show([self._rows[row.key] for row in self._table.rows])
        self._show_status()

    def _update(self, uids: Iterable[str]) -> None:
        """Make the rows of these jobs anew."""
        for uid in uids:
            job = self.board.job(uid)
            if job is None:
                self._rows.pop(uid, None)
            else:
                self._rows[uid] = _row(job)
            (self._matching.add if self.board.shows(uid) else self._matching.discard)(uid)

    def _sort(self) -> None:
        """Show the rows in their order."""
        order = sorted(self._matching, key=self.board.place, reverse=self.board.descending)
        self._table.show([self._rows[uid] for uid in order])

    def _show_status(self) -> None:
        error = self._feed.error if self._feed else ""
        running = sum(job.state == RUNNING for job in map(self.board.job, self.board.uids) if job)
        order = f"{self.board.sort_key}, {'descending' if self.board.descending else 'ascending'}"
        counts = f"{len(self._matching)} of {len(self.board)} jobs, {running} running; sorted by {order}"
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

    def on_table_chosen(self) -> None:
        """A click on the row of the cursor."""
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
        self._matching = set(filter(self.board.shows, self.board.uids))
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
        except NotCreated as e:
            self.lost.append(e)
            self._said = f"{e} Its manifest is printed when you leave."
        except DljobError as e:
            self._said = f"{job.key}: {e}"


def _row(job: JobView) -> Row:
    styles = tuple(_COLORS.get(job.state, "") if name == "STATE" else "" for name in SHOWN)
    return Row(job.uid, tuple(printable(cell) for cell in cells(job)), styles)

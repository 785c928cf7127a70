"""The page of one job: what it is, why it waits, its Events and its logs."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Input, Log, Static, TabbedContent, TabPane

from dljob.client import Client
from dljob.logs import Choice, LogLine
from dljob.logs.progress import log_progress
from dljob.logs.show import harmless
from dljob.output import described, event_lines, printable
from dljob.tui.feed import Feed
from dljob.view import JobView, view
from dljob.why import explain
from dljob.why.read import snapshot
from dljob.why.show import lines as why_lines

PERIOD, WHY_PERIOD = 2.0, 10.0
"""Seconds between two reads of the job, and of all around it."""
TICK = 0.25
LINES = 20_000
"""Lines of the logs that are kept; of each container the last ``TAIL`` to begin with."""
TAIL = 1000
TABS = ("summary", "why", "events", "logs")


@dataclass(frozen=True, slots=True)
class Page:
    """The texts of the page."""

    summary: Sequence[str]
    events: Sequence[str]
    why: Sequence[str] | None
    """``None`` where it was not read: that takes the pods of all namespaces."""


def read_page(client: Client, job: JobView, *, why: bool) -> Page:
    """Read the job and, for ``why``, all around it. Raises DljobError."""
    found = client.object(job.key, namespace=job.namespace)
    around = client.around(found)
    events, now = around.events, datetime.now(UTC)
    seen = view(found, around.pods, now)
    by_log = log_progress(client.api, found, around.pods)
    notes = [f"warning: {printable(text)}" for text in around.warnings]
    return Page(
        summary=[*notes, *described(seen, found, around.pods, [], by_log.sentence if by_log else "")],
        events=event_lines(events) if events else ["There are no Events: the API server keeps them for an hour."],
        why=list(why_lines(seen, explain(snapshot(client.api, found, now, around)), now)) if why else None,
    )


class JobScreen(Screen[None]):
    """Shows one job until Escape."""

    CSS = """
    JobScreen #title { height: 1; padding: 0 1; text-style: bold; }
    JobScreen Log { height: 1fr; }
    JobScreen TabbedContent { height: 1fr; }
    JobScreen #search { display: none; height: 3; }
    JobScreen #search.open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back"),
        Binding("1", "tab('summary')", "Summary"),
        Binding("2", "tab('why')", "Why"),
        Binding("3", "tab('events')", "Events"),
        Binding("4", "tab('logs')", "Logs"),
        Binding("slash", "search", "Search the logs"),
        Binding("q", "app.quit", "Quit"),
    ]

    def __init__(self, client: Client, job: JobView, tab: str = "summary") -> None:
        super().__init__()
        self._client = client
        self._job = job
        self._tab = tab
        self._shown: dict[str, Sequence[str]] = {}
        self._asked_why = threading.Event()
        self._pages: Feed[Page] | None = None
        self._logs: Feed[LogLine] | None = None
        self._kept: list[str] = []
        self._width = 0
        self._pattern: re.Pattern[str] | None = None
        self._note = ""
        self._titled = ""

    def compose(self) -> ComposeResult:
        """The name, and a tab for each text."""
        yield Static(id="title", markup=False)
        yield Input(placeholder="a regular expression; only lines with it are shown", id="search")
        with TabbedContent(initial=self._tab):
            for name in TABS:
                with TabPane(name.title(), id=name):
                    yield Log(id=f"{name}-text", max_lines=LINES)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to read."""
        self._title()
        self._pages = Feed(self._read, repeat=True)
        self.set_interval(TICK, self._tick)
        if self._tab == "logs":
            self._begin_logs()
        if self._tab == "why":
            self._asked_why.set()

    def on_unmount(self) -> None:
        """End the threads."""
        for feed in (self._pages, self._logs):
            if feed:
                feed.stop()

    def _read(self, stop: Callable[[], bool]) -> Iterator[Page]:
        why_at = 0.0
        while not stop():
            wants_why = self._asked_why.is_set() and time.monotonic() >= why_at
            yield read_page(self._client, self._job, why=wants_why)
            if wants_why:
                why_at = time.monotonic() + WHY_PERIOD
            until = time.monotonic() + PERIOD
            while not stop() and time.monotonic() < until and not (self._asked_why.is_set() and not why_at):
                time.sleep(0.05)

    def _begin_logs(self) -> None:
        if self._logs is None:
            job, choice = self._job, Choice(tail=TAIL)
            self._logs = Feed(
                lambda stop: self._client.logs(job.key, namespace=job.namespace, choice=choice, follow=True, stop=stop),
                repeat=False,
            )

    def on_tabbed_content_tab_activated(self, event: TabbedContent.TabActivated) -> None:
        """Logs, and why, are read once they are looked at."""
        if event.pane.id == "logs":
            self._begin_logs()
        if event.pane.id == "why":
            self._asked_why.set()
        event.pane.query_one(Log).focus()

    # --- what changes

    def _tick(self) -> None:
        if not self.is_attached:  # the page is closing
            return
        for page in (self._pages.take() if self._pages else [])[-1:]:
            self._show(page)
        lines = self._logs.take() if self._logs else []
        if lines:
            self._add([self._line(line) for line in lines])
        self._title()

    def _title(self) -> None:
        feeds = [feed for feed in (self._pages, self._logs) if feed and feed.error]
        text = self._note or next((feed.error for feed in feeds), "")
        title = printable(f"{self._job.namespace}/{self._job.key}  {text}")
        if title != self._titled:
            self._titled = title
            self.query_one("#title", Static).update(title)

    def _show(self, page: Page) -> None:
        """Write what differs; where the reader is stays."""
        for name, lines in (("summary", page.summary), ("why", page.why), ("events", page.events)):
            if lines is not None and self._shown.get(name) != lines:
                self._shown[name] = lines
                log = self.query_one(f"#{name}-text", Log)
                place = log.scroll_offset
                log.clear()
                log.write_lines(lines, scroll_end=False)
                log.scroll_to(place.x, place.y, animate=False)

    def _line(self, line: LogLine) -> str:
        self._width = max(self._width, len(line.replica))
        return f"{printable(line.replica).ljust(self._width)} | {harmless(line.text)}"

    def _add(self, lines: Sequence[str]) -> None:
        self._kept.extend(lines)
        del self._kept[:-LINES]
        shown = [line for line in lines if self._pattern is None or self._pattern.search(line)]
        self.query_one("#logs-text", Log).write_lines(shown)

    # --- keys

    def action_leave(self) -> None:
        """Close the search, or else the page."""
        search = self.query_one("#search", Input)
        if search.has_focus:
            search.value = ""
            search.remove_class("open")
            self.query_one("#logs-text", Log).focus()
        else:
            self.dismiss()

    def action_tab(self, name: str) -> None:
        """Show another text."""
        self.query_one(TabbedContent).active = name

    def action_search(self) -> None:
        """Open the line of the search, which is one in the logs."""
        self.action_tab("logs")
        search = self.query_one("#search", Input)
        search.add_class("open")
        search.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: show the lines that match."""
        self._filter(event.value)
        self.query_one("#logs-text", Log).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """An empty search shows all lines."""
        if not event.value:
            self._filter("")

    def _filter(self, text: str) -> None:
        try:
            self._pattern = re.compile(text) if text else None
            self._note = ""
        except re.error as e:
            self._note = f"{text!r} is no regular expression: {e}"
            return
        log = self.query_one("#logs-text", Log)
        log.clear()
        log.write_lines([line for line in self._kept if self._pattern is None or self._pattern.search(line)])

"""Shows the running step, its elapsed time, progress and estimate, and records how long steps took."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from devtools.testbed.cluster import estimate
from devtools.testbed.cluster.estimate import Progress


class Step:
    """One running step. ``update`` may be called from any thread."""

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.title = title
        self.progress = Progress()
        self.skipped = False

    def update(self, done: int, total: int, unit: str) -> None:
        self.progress = Progress(done, total, unit)

    def skip(self) -> None:
        """The step had nothing to do: its duration is not recorded."""
        self.skipped = True


class Reporter:
    """Prints one line per step; redraws the running one every second on a terminal, less often in a log."""

    LOG_INTERVAL = 20.0
    TERMINAL_INTERVAL = 1.0

    def __init__(self, history_file: Path, stream: TextIO | None = None) -> None:
        self.history_file = history_file
        self.stream = sys.stderr if stream is None else stream
        self.terminal = self.stream.isatty()
        self.plan: list[str] = []
        self.finished = 0
        self.started = time.monotonic()
        try:
            self.history: dict[str, list[float]] = json.loads(history_file.read_text())
        except (OSError, ValueError):
            self.history = {}

    def expect(self, steps: Sequence[str]) -> None:
        """Set the remaining steps, in order, and print the sum of their estimates."""
        self.plan = list(steps)
        self.finished = 0
        total = sum(estimate.expected(name, self.history) for name in self.plan)
        if total >= 60:
            kept = self.history_file.parent
            self.say(f"{len(self.plan)} steps, {estimate.about(total)} in total; builds are cached in {kept}")

    def elapsed(self) -> float:
        """Seconds since this command started."""
        return time.monotonic() - self.started

    def say(self, text: str) -> None:
        print(text, file=self.stream, flush=True)

    def _line(self, step: Step, started: float) -> str:
        elapsed = time.monotonic() - started
        later = self.plan[self.plan.index(step.name) + 1 :] if step.name in self.plan else []
        left = estimate.remaining(step.name, elapsed, later, self.history, step.progress)
        done = step.progress
        far = f", {done.done} of {done.total} {done.unit}" if done.total else ""
        return f"{step.title}: {estimate.clock(elapsed)}{far}; {estimate.about(left)} remain"

    def _watch(self, step: Step, started: float, ended: threading.Event) -> None:
        interval = self.TERMINAL_INTERVAL if self.terminal else self.LOG_INTERVAL
        while not ended.wait(interval):
            line = self._line(step, started)
            if self.terminal:
                print(f"\r\033[K  {line}", end="", file=self.stream, flush=True)
            else:
                print(f"  ... {line}", file=self.stream, flush=True)

    @contextlib.contextmanager
    def step(self, name: str, title: str) -> Iterator[Step]:
        """Run the body as the step ``name`` (the key of its history), shown as ``title``."""
        step = Step(name, title)
        started = time.monotonic()
        ended = threading.Event()
        if self.terminal:
            print(f"  {title} ...", end="", file=self.stream, flush=True)
        watcher = threading.Thread(target=self._watch, args=(step, started, ended), daemon=True)
        watcher.start()
        try:
            yield step
        except BaseException:
            self._finish(watcher, ended, f"  {title}: failed after {estimate.clock(time.monotonic() - started)}")
            raise
        seconds = time.monotonic() - started
        self._finish(watcher, ended, None if step.skipped else f"  {title}: {estimate.clock(seconds)}")
        if not step.skipped:
            self._remember(name, seconds)

    def _finish(self, watcher: threading.Thread, ended: threading.Event, line: str | None) -> None:
        ended.set()
        watcher.join()
        if self.terminal:
            print("\r\033[K", end="", file=self.stream, flush=True)
        if line is not None:
            self.say(line)

    def _remember(self, name: str, seconds: float) -> None:
        self.history = estimate.record(self.history, name, seconds)
        with contextlib.suppress(OSError):  # estimates are optional; a full disk is reported elsewhere
            self.history_file.parent.mkdir(parents=True, exist_ok=True)
            self.history_file.write_text(json.dumps(self.history, indent=1, sort_keys=True))

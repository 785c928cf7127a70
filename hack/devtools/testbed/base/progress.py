"""Shows the running step, its time and what remains, from how long the steps took on this machine before.

Why not rich.progress: the time that remains is that of later steps too, which it does not know, and a log without a
terminal gets nothing but a last line from it.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

DEFAULTS: Mapping[str, float] = {
    # seconds on a machine with two cores
    "tools": 20, "kubernetes": 570, "containerd": 75, "etcd": 60, "coredns": 170, "kwok": 160, "kubectl": 240,
    "engine-start": 3, "pull": 60, "rootfs": 35, "assemble": 30, "load": 12, "registry": 3, "create": 25, "ready": 8,
}  # fmt: skip
UNKNOWN = 10.0
"""Seconds assumed for a step without history and without a built-in figure."""
KEEP = 5
"""Number of earlier runs kept for each step."""
COUNTS = 0.1
"""The part of a countable step after which its own pace tells more than its history: the machine may be busy now, and
a build may find most of its packages in the cache."""


def expected(step: str, history: Mapping[str, Sequence[float]]) -> float:
    """Expected seconds of a step: the median of its earlier runs, else the built-in figure."""
    past = sorted(history.get(step, ()))
    return past[len(past) // 2] if past else DEFAULTS.get(step, UNKNOWN)


def clock(seconds: float) -> str:
    """``42 s``, ``3 min 05 s``."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"


def about(seconds: float) -> str:
    """A rounded duration: ``less than 5 s``, ``about 40 s``, ``about 9 min``."""
    if seconds < 5:
        return "less than 5 s"
    return f"about {5 * round(seconds / 5)} s" if seconds < 90 else f"about {round(seconds / 60)} min"


class Step:
    """One running step, with the progress of a countable one. ``update`` may be called from any thread."""

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.title = title
        self.done, self.total, self.unit = 0, 0, ""
        self.skipped = False

    def update(self, done: int, total: int, unit: str) -> None:
        self.done, self.total, self.unit = min(done, total), total, unit

    def skip(self) -> None:
        """The step had nothing to do: its duration is not recorded."""
        self.skipped = True

    def remaining(self, elapsed: float, history: Mapping[str, Sequence[float]]) -> float:
        """Seconds left, 0 for one that takes longer than expected."""
        part = self.done / self.total if self.total else 0.0
        return elapsed * (1 - part) / part if part >= COUNTS else max(0.0, expected(self.name, history) - elapsed)


class Reporter:
    """Prints one line per step; redraws the running one every second on a terminal, less often in a log."""

    LOG_INTERVAL = 20.0
    TERMINAL_INTERVAL = 1.0

    def __init__(self, history_file: Path, stream: TextIO | None = None) -> None:
        self.history_file = history_file
        self.stream = sys.stderr if stream is None else stream
        self.terminal = self.stream.isatty()
        self.plan: list[str] = []
        self.started = time.monotonic()
        try:
            self.history: dict[str, list[float]] = json.loads(history_file.read_text())
        except (OSError, ValueError):
            self.history = {}

    def expect(self, steps: Sequence[str]) -> None:
        """Set the remaining steps, in order, and print the sum of their estimates."""
        self.plan = list(steps)
        total = sum(expected(name, self.history) for name in self.plan)
        if total >= 60:
            kept = self.history_file.parent
            self.say(f"{len(self.plan)} steps, {about(total)} in total; builds are cached in {kept}")

    def elapsed(self) -> float:
        """Seconds since this command started."""
        return time.monotonic() - self.started

    def say(self, text: str) -> None:
        print(text, file=self.stream, flush=True)

    def line(self, step: Step, elapsed: float) -> str:
        """What is shown of a running step."""
        later = self.plan[self.plan.index(step.name) + 1 :] if step.name in self.plan else []
        left = step.remaining(elapsed, self.history) + sum(expected(name, self.history) for name in later)
        far = f", {step.done} of {step.total} {step.unit}" if step.total else ""
        return f"{step.title}: {clock(elapsed)}{far}; {about(left)} remain"

    def _redraw(self, text: str) -> None:
        if self.terminal:
            print(f"\r\033[K{text}", end="", file=self.stream, flush=True)

    def _watch(self, step: Step, started: float, ended: threading.Event) -> None:
        while not ended.wait(self.TERMINAL_INTERVAL if self.terminal else self.LOG_INTERVAL):
            line = self.line(step, time.monotonic() - started)
            if self.terminal:
                self._redraw(f"  {line}")
            else:
                self.say(f"  ... {line}")

    @contextlib.contextmanager
    def step(self, name: str, title: str) -> Iterator[Step]:
        """Run the body as the step ``name`` (the key of its history), shown as ``title``."""
        step, started, ended = Step(name, title), time.monotonic(), threading.Event()
        self._redraw(f"  {title} ...")
        watcher = threading.Thread(target=self._watch, args=(step, started, ended), daemon=True)
        watcher.start()
        outcome = "failed after "
        try:
            yield step
            outcome = ""
        finally:
            ended.set()
            watcher.join()
            seconds = time.monotonic() - started
            self._redraw("")
            if outcome or not step.skipped:
                self.say(f"  {title}: {outcome}{clock(seconds)}")
        if not step.skipped:
            self._remember(name, seconds)

    def _remember(self, name: str, seconds: float) -> None:
        self.history[name] = [*self.history.get(name, []), round(seconds, 1)][-KEEP:]
        with contextlib.suppress(OSError):  # estimates are optional; a full disk is reported elsewhere
            self.history_file.parent.mkdir(parents=True, exist_ok=True)
            self.history_file.write_text(json.dumps(self.history, indent=1, sort_keys=True))

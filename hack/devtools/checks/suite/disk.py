"""How much of the disk a run leaves: tests fail in all ways on a full one, and none of them says so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from devtools.testbed.offline import slots

PERIOD = 2.0
"""Seconds between two looks."""
NEARLY_FULL = 2**30
"""Bytes that are free at the moment when a run says that tests may fail for it."""
GIB = 2**30
THREAD = "disk watch"


class Watch:
    """Looks at the disk of ``folder`` while the context is open; ``say`` hears once that it is nearly full."""

    def __init__(
        self, folder: Path, say: Callable[[str], None], free: Callable[[Path], int] = slots.free_bytes
    ) -> None:
        self._folder = folder
        self._say = say
        self._free = free
        self.first = self.least = self._free(folder)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=THREAD, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def line(self) -> str:
        """What the summary says: GiB that were free at the start, and at the worst moment."""
        full = ": the disk was nearly full, and tests fail for that" if self.least < NEARLY_FULL else ""
        return f"disk: {self.first / GIB:.1f} GiB free at the start, {self.least / GIB:.1f} GiB at the least{full}"

    def look(self) -> None:
        """Compare once."""
        before, self.least = self.least, min(self.least, self._free(self._folder))
        if self.least < NEARLY_FULL <= before:
            self._say(
                f"warning: {self.least / 2**20:.0f} MiB are free on the disk of {self._folder}: what fails from here on"
                " may fail for that; free some and run again"
            )

    def _watch(self) -> None:
        while not self._over.wait(PERIOD):
            self.look()

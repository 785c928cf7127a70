"""Opens an address in the browser without its command line, which every user of this machine can read."""

from __future__ import annotations

import html
import signal
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

_PAGE = '<!doctype html>\n<meta charset="utf-8">\n<meta http-equiv="refresh" content="0;url={address}">\n'


@contextmanager
def opened(address: str) -> Iterator[None]:
    """The browser opens a file that leads to the address; the file is this user's alone, and goes with the context."""
    with tempfile.TemporaryDirectory(prefix="dljob-") as folder, _ended_by_sigterm():
        file = Path(folder) / "open.html"
        file.touch(mode=0o600)
        file.write_text(_PAGE.format(address=html.escape(address)), encoding="utf-8")
        webbrowser.open(file.as_uri())
        yield


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the context too, rather than the process at once."""
    if threading.current_thread() is not threading.main_thread():  # signals reach no other
        yield
        return
    before = signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)

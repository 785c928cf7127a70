"""What every example's program is as a process: its numbers, its lines, its signals, its exit status."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn


class BadEnvironmentError(Exception):
    """The environment does not describe a process of a job that could run."""


def positive(type_: type) -> Any:
    """For argparse: the numbers of that type above 0, and none that is not finite."""

    def convert(text: str) -> Any:
        value = type_(text)
        if not (value > 0 and math.isfinite(value)):
            raise argparse.ArgumentTypeError(f"must be positive: {text}")
        return value

    convert.__name__ = type_.__name__  # argparse names it when the text is no number at all
    return convert


def number(name: str, text: str, least: int, most: int | None = None) -> int:
    """The whole number ``text`` from ``least`` to ``most``. Raises BadEnvironmentError, which names the variable."""
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least or (most is not None and value > most):
        raise BadEnvironmentError(f"{name} is {text!r}, not a number {bounds}")
    return value


def say(message: str) -> None:
    """One line on stdout, at once and whole: a pod's log is read while it runs, and processes of a pod may share it."""
    print(f"{message}\n", end="", flush=True)


def end_on_signals() -> None:
    """End with 128+signal on SIGTERM and SIGINT, even as a container's first process and inside a framework's C++.

    The first process of a container gets no default action, and a Python handler waits for C++ code to return, for ever
    where that serves, or waits for a process that is gone: its pod would be killed only after the grace period. A
    thread hears them.
    """
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)

    def listen() -> None:
        heard = signal.sigwait(signals)
        try:
            say(f"ended by {signal.Signals(heard).name}")
        finally:  # also when nobody reads stdout any more
            os._exit(128 + heard)

    threading.Thread(target=listen, name="signals", daemon=True).start()


def status_of(run: Callable[[Sequence[str]], int]) -> int:
    """What ``run`` makes of the command line; 1 where it raised, and has said why, or 2 for a bad environment."""
    try:
        return run(sys.argv[1:])
    except BadEnvironmentError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 2
    except OSError as error:  # a missing file, a process that did not come: the message says it all
        print(f"error: {error}", file=sys.stderr, flush=True)
    except Exception:
        traceback.print_exc()
    return 1


def leave(status: int) -> NoReturn:
    """End at once: a regular exit would wait for a framework's threads, and those for processes that may be gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)

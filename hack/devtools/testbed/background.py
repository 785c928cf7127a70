"""Starts and stops a process: ``background start FOLDER --ready TEXT -- COMMAND...``, ``background stop FOLDER``.

It outlives the play which starts it: the operator of molecule's scenarios. FOLDER holds the log and a record of the
process (its pid and start time). The last line of the output is the result: ``started`` or ``running``; ``stopped`` or
``not running``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from devtools.testbed.base import process, shell
from devtools.testbed.base.process import RECORD, RECORDED_GRACE


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.testbed.background", description=__doc__)
    commands = parser.add_subparsers(dest="action", required=True)
    start_ = commands.add_parser("start", help="start COMMAND, and wait until its output has TEXT")
    start_.add_argument("folder", type=Path)
    start_.add_argument("--ready", required=True, metavar="TEXT", help="beginning of the line that signals readiness")
    start_.add_argument("--timeout", type=float, default=120.0, metavar="SECONDS")
    start_.add_argument("command", nargs="+")
    stop_ = commands.add_parser("stop", help="stop the process, and wait until it has exited")
    stop_.add_argument("folder", type=Path)
    options = parser.parse_args(argv)
    if options.action == "stop":
        print("stopped" if process.end_recorded(options.folder / RECORD) else "not running")
        return 0
    problem = start(options.folder, options.command, options.ready, options.timeout)
    if problem:
        print(problem, file=sys.stderr)
    return 1 if problem else 0


def start(folder: Path, command: Sequence[str], ready: str, timeout: float) -> str:
    """Start the process unless it is already running; returns "" or a description of the failure."""
    if process.alive(process.read_record(folder / RECORD)):
        print("running")
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    log.unlink(missing_ok=True)
    child = process.start(command, log, cwd=None)
    identity = process.identity(child)
    process.write_record(folder / RECORD, identity)
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        if any(line.startswith(ready) for line in log.read_text(encoding="utf-8").splitlines()):
            print("started")
            return ""
        if child.poll() is not None:
            return f"{command[0]} ended with {child.returncode}:\n{shell.tail(log.read_text(encoding='utf-8'), 30)}"
        time.sleep(0.1)  # the log is a plain file, so it has to be polled
    process.end(identity, RECORDED_GRACE)
    tail = shell.tail(log.read_text(encoding="utf-8"), 30)
    return f"{command[0]} was not ready after {timeout:.0f} s, and was ended:\n{tail}"


if __name__ == "__main__":
    sys.exit(main())

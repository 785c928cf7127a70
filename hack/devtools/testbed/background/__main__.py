"""Starts and stops a process: ``background start FOLDER --ready TEXT -- COMMAND...``, ``background stop FOLDER``.

FOLDER holds the log and a record of the process (its pid and start time). The last line of the output is the result:
``started`` or ``running``; ``stopped`` or ``not running``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from devtools.testbed.cluster.process import RECORD, RECORDED_GRACE, alive, end, end_recorded, identify, read_record


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
        print("stopped" if end_recorded(options.folder / RECORD) else "not running")
        return 0
    problem = start(options.folder, options.command, options.ready, options.timeout)
    if problem:
        print(problem, file=sys.stderr)
    return 1 if problem else 0


def start(folder: Path, command: Sequence[str], ready: str, timeout: float) -> str:
    """Start the process unless it is already running; returns "" or a description of the failure."""
    if alive(read_record(folder / RECORD)):
        print("running")
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    process = identify(child.pid)
    if process is not None:
        (folder / RECORD).write_text(json.dumps(dataclasses.asdict(process)), encoding="utf-8")
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        if any(line.startswith(ready) for line in log.read_text(encoding="utf-8").splitlines()):
            print("started")
            return ""
        if child.poll() is not None:
            return f"{command[0]} ended with {child.returncode}:\n{_tail(log)}"
        time.sleep(0.1)  # the log is a plain file, so it has to be polled
    end(process, RECORDED_GRACE)
    return f"{command[0]} was not ready after {timeout:.0f} s, and was ended:\n{_tail(log)}"


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8").splitlines()[-30:])


if __name__ == "__main__":
    sys.exit(main())

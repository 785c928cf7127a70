"""Run ansible-operator as a child process, with the shim first on its PATH, and forward signals to it."""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dljob_operator.ansible_operator_bridge.shim.dljob_shim import NAME, SOCKET
from dljob_operator.durations import parse_duration
from dljob_operator.signals import SignalThread

SHIM = Path(__file__).with_name("shim")
COMPILED = "DLJOB_SHIM"
"""Names the folder with the compiled shim (build/shim), which starts in a tenth of the Python script's time."""


@dataclass(frozen=True)
class Flags:
    """Of ansible-operator: whether another replica may be the leader, and seconds until it runs a job again."""

    elects_leader: bool = False
    reconcile_period: float = 36_000.0


def child_environ(environ: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return `environ` with the shim first on PATH and the path of its socket.

    An image that was built without Go has no compiled shim; then it is the Python script, as in a wheel.
    """
    compiled = environ.get(COMPILED, "")
    shim = compiled if compiled and os.access(Path(compiled, NAME), os.X_OK) else str(SHIM)
    search = os.pathsep.join([shim, environ.get("PATH", os.defpath)])
    # gathering facts takes a second, and our roles use none
    gathering = environ.get("ANSIBLE_GATHERING", "explicit")
    return {**environ, "PATH": search, SOCKET: str(path), "ANSIBLE_GATHERING": gathering}


def flags_of(command: Sequence[str]) -> Flags:
    """Read the flags in ansible-operator's command line that matter to the bridge. Raises ValueError."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--leader-elect", "--enable-leader-election", nargs="?", const="true", default="false")
    parser.add_argument("--reconcile-period", default=f"{Flags.reconcile_period}s")
    found, _ = parser.parse_known_args(command)
    return Flags(found.leader_elect != "false", parse_duration(found.reconcile_period))


def run(
    command: Sequence[str],
    environ: Mapping[str, str],
    signals: SignalThread,
    started: Callable[[subprocess.Popen[bytes]], object] = lambda process: None,
) -> int:
    """Run `command` to its end and return its exit code, 128 and more for a signal. `started` gets the process.

    `signals` are forwarded, including those that arrived before the start. ansible-operator has its own setting for how
    long its runs may take to end. Raises ValueError if the command cannot be started.
    """
    try:
        process = subprocess.Popen(list(command), env=dict(environ), stdin=subprocess.DEVNULL)
    except OSError as error:
        raise ValueError(f"serve: {command[0]} cannot be started: {error.strerror}") from None
    try:
        signals.start(process.send_signal)
        started(process)
        code = process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return code if code >= 0 else 128 - code

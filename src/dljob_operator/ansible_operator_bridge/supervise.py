"""ansible-operator as a child: its PATH begins with the shim, signals go on to it, its end is this process's end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from dljob_operator.ansible_operator_bridge.shim.dljob_shim import SOCKET
from dljob_operator.signals import SignalThread

SHIM = Path(__file__).with_name("shim")


def child_environ(environ: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return `environ` with the shim first on PATH, and the socket at `path` for it to ask at."""
    search = os.pathsep.join([str(SHIM), environ.get("PATH", os.defpath)])
    # otherwise a second goes into facts that no role of ours reads
    gathering = environ.get("ANSIBLE_GATHERING", "explicit")
    return {**environ, "PATH": search, SOCKET: str(path), "ANSIBLE_GATHERING": gathering}


def run(command: Sequence[str], environ: Mapping[str, str], signals: SignalThread) -> int:
    """Run `command` to its end and return its exit code, 128 and more for a signal.

    `signals` are passed on, those too that came before the command was started; how long its runs may take to end is
    ansible-operator's own setting. Raises ValueError where it cannot be started.
    """
    try:
        process = subprocess.Popen(list(command), env=dict(environ), stdin=subprocess.DEVNULL)
    except OSError as error:
        raise ValueError(f"serve: {command[0]} cannot be started: {error.strerror}") from None
    try:
        signals.start(process.send_signal)
        code = process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return code if code >= 0 else 128 - code

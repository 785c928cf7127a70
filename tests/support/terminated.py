"""Ends a program with a signal that the kernel delivers to another thread, while the main thread is in a system call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 30.0
PRELUDE = '''
import os, signal, sys, threading, time
from pathlib import Path

def block(*_):
    """Wait in a system call for what does not come; another thread gets the signal meanwhile."""
    def signal_myself():
        stat = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "S":
            time.sleep(0.01)
        signal.pthread_kill(threading.get_ident(), NUMBER)
    reader, _ = os.pipe()
    threading.Thread(target=signal_myself).start()
    os.read(reader, 1)
'''


def run(script: str, number: signal.Signals, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the Python script, which calls ``block`` where it waits; fails if it does not end after the signal."""
    paths = ":".join(str(ROOT / name) for name in ("hack", "src"))
    return subprocess.run(
        [sys.executable, "-c", PRELUDE.replace("NUMBER", str(int(number))) + script],
        env={**os.environ, "PYTHONPATH": paths, "DLJOB_CLUSTER_DIR": str(folder), "DLJOB_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )

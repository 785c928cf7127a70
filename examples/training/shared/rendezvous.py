"""Waiting, within bounds and aloud, until the process that coordinates a job can be reached."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

RETRY_SECONDS = 0.5
LOG_SECONDS = 10.0


def _connect(host: str, port: int) -> None:
    with socket.create_connection((host, port), timeout=5):
        pass


def wait_for(
    host: str,
    port: int,
    timeout: float,
    say: Callable[[str], None],
    *,
    connect: Callable[[str, int], None] = _connect,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return once `host`:`port` accepts a connection; TimeoutError after `timeout` seconds, with the last reason.

    In a starting job the name does not resolve at first (no pod stands behind it yet) and then the port is closed
    (its image is still pulled). Neither DNS nor a closed port can be watched, so this asks twice a second. The reason
    is said when it changes and every ten seconds.
    """
    start = clock()
    said_at, said = -LOG_SECONDS, ""
    while True:
        try:
            connect(host, port)
        except socket.gaierror as error:
            reason = f"the name {host} does not resolve ({error.strerror})"
        except OSError as error:
            reason = f"{host}:{port} does not answer ({error.strerror or error})"
        else:
            if said:
                say(f"{host}:{port} answered after {clock() - start:.1f} s")
            return
        waited = clock() - start
        if waited >= timeout:
            raise TimeoutError(f"gave up after {waited:.0f} s: {reason}")
        if reason != said or waited - said_at >= LOG_SECONDS:
            say(f"waiting: {reason}")
            said, said_at = reason, waited
        sleep(RETRY_SECONDS)

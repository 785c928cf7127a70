"""The clock of the leader election."""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime() -> float:
    """Return seconds that only increase, also when the time of day is set.

    They include the time for which the machine was suspended, which `time.monotonic` leaves out on Linux. A suspended
    leader would otherwise believe that its Lease is as fresh as before.
    """
    return time.clock_gettime(_CLOCK)

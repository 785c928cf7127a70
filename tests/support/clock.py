"""A clock for the classes that take one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Clock:
    """Monotonic seconds, which pass only where a test says so."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

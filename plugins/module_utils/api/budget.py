"""How long one reconcile may write, and how many writes at once. Its objects: :mod:`..logic.plan.policies.slices`.

The connections of a large job compete with those of a small one at the API server. On two cores, which the API server
shared with everything else, a small job took 4.8 times as long beside one that wrote on eight connections, and 1.2
times as long beside one that kept to the congestion window and its pauses. A large job uses all connections only as
long as no user has changed a job, this one included.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import CONTENTION

FIRST_SECONDS = 0.25
"""For a job without pods, beside others. A new job is reconciled before all others, whatever its size, so this is the
longest time by which one new job delays another on the same worker."""
SECONDS = 0.5
"""For a job that has pods, beside others, the first time, or that a user changes or deletes meanwhile, or where the
engine does not say what users change. Such reconciles may occupy all workers."""
UNCHANGED_SECONDS = 4.0
"""For a job that continues with its next slice, and for any job alone. Each reconcile of a large job reads and plans
the whole job, 0.03 ms of a processor for each pod, and between two of them nothing is written for 0.1 to 0.3 s: the
engine waits for the cache. Large jobs take turns with these slices, which leave one worker free."""
LEAST = 16
"""Writes that are never cut: a small job takes one reconcile, however slow the API server is."""
LEAST_BESIDE_OTHERS = 1
"""The same for a large job, while users wait for others: its pauses may be longer than the writes."""


@dataclass(frozen=True)
class Times:
    """Seconds for which a reconcile may write: in any case, while users wait for other jobs and have not changed this
    one, and alone."""

    shortest: float
    unchanged: float
    alone: float = UNCHANGED_SECONDS
    least_beside_others: int = LEAST_BESIDE_OTHERS
    """Writes beside others that are never cut."""
    without_pauses: int = 0
    """The first writes beside others, which begin at once."""

    def always_short(self) -> Times:
        """For an engine that does not say what users change. Such a slice has few creations, and reading and planning
        the job would take most of the time: it begins without pauses."""
        return Times(self.shortest, self.shortest, self.shortest, LEAST, LEAST)


OF_NEW_JOB = Times(FIRST_SECONDS, FIRST_SECONDS)
OF_JOB_WITH_PODS = Times(SECONDS, UNCHANGED_SECONDS)


class Changes(Protocol):
    """What users have changed since the reconcile began; see ``ChangesSince``, which is one."""

    def of(self, key: str) -> bool: ...

    def of_any(self) -> bool: ...

    def are_recent(self) -> bool: ...


class UnknownChanges:
    """For an engine that does not report what users change: each job counts as changed, and nothing changes later."""

    def of(self, key: str) -> bool:
        return True

    def of_any(self) -> bool:
        return False

    def are_recent(self) -> bool:
        return True


@dataclass(frozen=True)
class Users:
    """What the engine knows of users' changes: whether they waited for other jobs when it took the job ``uid``, and
    what they have changed since."""

    uid: str = ""
    is_contended: bool = False
    changes: Changes = field(default_factory=UnknownChanges)

    @property
    def have_changed_others(self) -> bool:
        """Shortly before the reconcile began, or since."""
        return self.is_contended or self.changes.of_any()


class Budget:
    """Permits some ``writes`` for one of the ``times`` since its creation, and a least number of them. Thread-safe.

    More than ``LEAST`` writes are beside others while ``users`` wait for other jobs: then they keep to the congestion
    window of the client.
    """

    def __init__(
        self, times: Times, writes: int, users: Users = Users(), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._began = clock()
        self._times = times
        self._is_large = writes > LEAST
        self._users = users
        self._granted = 0
        self._lock = threading.Lock()

    @property
    def is_beside_others(self) -> bool:
        """Whether these are the writes of a large job, and users wait for other jobs: until some seconds after the last
        change, or after the begin of a reconcile that was contended."""
        users = self._users
        if not self._is_large or not users.have_changed_others:
            return False
        return users.changes.are_recent() or (users.is_contended and self._clock() < self._began + CONTENTION)

    @property
    def pauses(self) -> bool:
        """Whether to pause before the creation that ``take`` has granted last."""
        return self._granted > self._times.without_pauses and self.is_beside_others

    def take(self) -> bool:
        """Whether one more write may start."""
        with self._lock:
            least = self._times.least_beside_others if self.is_beside_others else LEAST
            if self._granted >= least and self._clock() >= self._began + self._longest():
                return False
            self._granted += 1
            return True

    def _longest(self) -> float:
        if not self._users.have_changed_others:
            return self._times.alone
        return self._times.shortest if self._users.changes.of(self._users.uid) else self._times.unchanged

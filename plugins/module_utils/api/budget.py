"""How long one reconcile may write, and how many writes at once; :mod:`..logic.policies.slices` limits the objects.

The connections of a large job compete with those of a small one at the API server. On two cores, which the API server
shared with everything else, a small job took 4.8 times as long beside one that wrote on eight connections, and 1.2
times as long beside one that kept to the congestion window and its pauses. A large job uses all connections only as
long as no user has changed a job, this one included.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import CONTENTION, ChangesSince

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


OF_NEW_JOB = Times(FIRST_SECONDS, FIRST_SECONDS)
OF_JOB_WITH_PODS = Times(SECONDS, UNCHANGED_SECONDS)


@dataclass(frozen=True)
class Users:
    """What the engine knows of users' changes: whether they waited for other jobs when it took the job ``uid``, and
    what they have changed since, ``None`` where it does not say."""

    uid: str = ""
    is_contended: bool = False
    changes: ChangesSince | None = None

    @property
    def may_have_changed_the_job(self) -> bool:
        return self.changes is None or self.changes.of(self.uid)

    @property
    def have_changed_others(self) -> bool:
        """Shortly before the reconcile began, or since."""
        return self.is_contended or (self.changes is not None and self.changes.of_any())


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
        if users.changes is None or users.changes.are_recent():
            return True
        return users.is_contended and self._clock() < self._began + CONTENTION

    @property
    def pauses(self) -> bool:
        """Whether to pause before each creation. Slices that stay short have few creations and begin without pauses:
        reading and planning the job would take most of the time."""
        return self.is_beside_others and (self._granted > LEAST or not self._stays_short)

    def take(self) -> bool:
        """Whether one more write may start."""
        with self._lock:
            least = LEAST_BESIDE_OTHERS if self.is_beside_others and not self._stays_short else LEAST
            if self._granted >= least and self._clock() >= self._began + self._longest():
                return False
            self._granted += 1
            return True

    @property
    def _stays_short(self) -> bool:
        return self._users.changes is None

    def _longest(self) -> float:
        if self._users.changes is not None and not self._users.have_changed_others:
            return self._times.alone
        return self._times.shortest if self._users.may_have_changed_the_job else self._times.unchanged

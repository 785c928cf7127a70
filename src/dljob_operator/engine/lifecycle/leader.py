"""Leader election with a Lease, as in Kubernetes' own controllers: one operator reconciles, the others stand by.

Clocks of different machines are never compared. A standby polls the Lease, and takes it when its resource version has
not changed for the duration that the holder wrote into it.

The Python client's `kubernetes.leaderelection` is not used. It cannot be stopped and never releases the lock, so that a
standby would wait 6 s after each regular end too, where it now takes over immediately (docs/scaling.md). It measures
with the wall clock, which may jump. And in 33.1, which ansible-operator's image has, it locks ConfigMaps only. kopf's
peering needs a resource definition of its own, and is part of its loop of handlers.
"""

from __future__ import annotations

import enum
import logging
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.boottime import boottime
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.engine.kube import ApiConnectionError, KubeApi
from dljob_operator.failed_check import FailedCheck
from dljob_operator.options import (
    LEADER_ELECT_LEASE_DURATION,
    LEADER_ELECT_RENEW_DEADLINE,
    LEADER_ELECT_RETRY_PERIOD,
    LEADER_ELECTION_ID,
)

_LOG = logging.getLogger(__name__)
LEASE = LEADER_ELECTION_ID.default
UNREADY_AFTER = 60.0
"""Seconds without a response of the API server after which a standby is not ready to take over."""
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


@dataclass(frozen=True)
class LeaseName:
    """The Lease of which operators compete. Those that divide the jobs, as by namespaces, need one each."""

    namespace: str
    name: str = LEASE

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class LeaseTimings:
    """Times in seconds. A leader renews the Lease every `period` and gives up after `deadline` without success. That is
    well before a standby may take the Lease, which is `duration` after it observed the last renewal."""

    duration: float = LEADER_ELECT_LEASE_DURATION.of({})
    deadline: float = LEADER_ELECT_RENEW_DEADLINE.of({})
    period: float = LEADER_ELECT_RETRY_PERIOD.of({})

    def pause(self, has_failed: bool) -> float:
        """The time until the next attempt, also after a leader's that ``has_failed``."""
        return min(self.period, self.deadline / 20) if has_failed else self.period

    def check(self) -> None:
        """Raise ValueError, which names the option, unless a leader gives up before another may begin."""
        if self.duration < 1 or self.duration != int(self.duration):
            raise ValueError(
                "--leader-elect-lease-duration must be whole seconds, at least 1s: a Lease has no fractions"
            )
        if self.deadline >= self.duration:
            raise ValueError("--leader-elect-renew-deadline must be less than --leader-elect-lease-duration")
        if not 0 < self.period < self.deadline:
            raise ValueError(
                "--leader-elect-retry-period must be more than 0s and less than --leader-elect-renew-deadline"
            )


class LeaseAction(enum.Enum):
    """The next action for a Lease that was just read."""

    CREATE = enum.auto()
    TAKE = enum.auto()
    RENEW = enum.auto()
    WAIT = enum.auto()


@dataclass(frozen=True)
class LeaseObservation:
    """The resource version of a Lease and when it was first observed, in seconds of `boottime`."""

    version: str
    since: float


def observe_lease(lease: Mapping[str, Any], before: LeaseObservation | None, now: float) -> LeaseObservation:
    version = str(lease["metadata"]["resourceVersion"])
    return before if before is not None and before.version == version else LeaseObservation(version, now)


def decide_action(
    lease: Mapping[str, Any] | None, identity: str, observation: LeaseObservation | None, now: float, default: float
) -> LeaseAction:
    """Return the next action. `default` is the duration of a Lease without leaseDurationSeconds."""
    if lease is None:
        return LeaseAction.CREATE
    spec = lease.get("spec") or {}
    holder = spec.get("holderIdentity") or ""
    if holder == identity:
        return LeaseAction.RENEW
    if not holder:
        return LeaseAction.TAKE
    duration = spec.get("leaseDurationSeconds") or default
    return LeaseAction.TAKE if observation is not None and now - observation.since >= duration else LeaseAction.WAIT


def build_lease(
    lease: Mapping[str, Any] | None, identity: str, name: LeaseName, timings: LeaseTimings, now: datetime
) -> dict[str, Any]:
    """Return the Lease to write for `identity`. Its resource version makes a conflicting write fail."""
    stamp = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = dict((lease or {}).get("spec") or {})
    if spec.get("holderIdentity") != identity:
        spec["acquireTime"] = stamp
        spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + (1 if lease else 0)
    spec |= {"holderIdentity": identity, "leaseDurationSeconds": round(timings.duration), "renewTime": stamp}
    metadata: dict[str, Any] = {"name": name.name, "namespace": name.namespace}
    if lease is not None:
        metadata["resourceVersion"] = lease["metadata"]["resourceVersion"]
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


class LeaderElector:
    """Acquires and renews the Lease on one thread; a second one calls `on_lost` if it is not renewed in time.

    A request gets half the deadline, as in client-go, and a connection that no other part of the operator uses: after
    one that hangs there is time for another attempt, which does not wait for the period.

    The second thread sends no requests, so that the deadline holds whatever happens to one: a connection that hangs, a
    response that cannot be decoded, a token that cannot be refreshed. It measures with `boottime`.

    A process that was stopped or suspended continues in any of its threads first. So `leads` is what decides whether a
    write may be sent, and a Lease that has expired is never renewed, even if no other operator has taken it.

    `on_renewed`, which the owner may set before `start`, gets the new deadline at each renewal, in seconds of
    `boottime`.
    """

    def __init__(
        self,
        api: KubeApi,
        name: LeaseName,
        identity: str,
        on_lost: Callable[[], None],
        timings: LeaseTimings | None = None,
    ) -> None:
        self._timings = timings or LeaseTimings()
        self._api = api.with_own_connections().with_timeout(self._timings.deadline / 2)
        self._name = name
        self._identity = identity
        self._on_lost = on_lost
        self.on_renewed: Callable[[float], None] = lambda deadline: None
        self._leases = _LEASES.format(name.namespace)
        self._path = f"{self._leases}/{name.name}"
        self._observation: LeaseObservation | None = None
        self._renewed = 0.0
        self._answered = -math.inf
        self._error = ""
        self._stopping = threading.Event()
        self.elected = threading.Event()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="leader election", daemon=True)
        self._guard = threading.Thread(target=self._watch_deadline, name="leader deadline", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._guard.start()

    def attempt(self) -> tuple[str, dict[str, Any]] | None:
        """Acquire or renew the Lease once.

        Returns a log message with its fields if this operator does not hold the Lease after it, and None if it does. It
        raises nothing: any error is a failed attempt, since only the deadline decides what follows.
        """
        try:
            problem = self._try_acquire()
        except Exception as error:
            problem = "leader election failed", {"error": f"{type(error).__name__}: {error}"}
        self._error = problem[1].get("error", "") if problem is not None else ""
        return problem

    def problem(self) -> str:
        """Why this elector no longer works, "" if it does."""
        if self._stopping.is_set() or self._thread.ident is None:
            return ""
        ended = [thread.name for thread in (self._thread, self._guard) if not thread.is_alive()]
        return FailedCheck("the leader election has ended", f"the thread {ended[0]} has ended") if ended else ""

    def leads(self) -> bool:
        """Whether the Lease is certainly still that of this process."""
        return self.seconds_left() > 0

    def seconds_left(self) -> float:
        """For how long it certainly is, without a further renewal; 0 or less if it may not be any more."""
        return self._renewed + self._timings.deadline - boottime() if self.elected.is_set() else 0.0

    def not_ready(self) -> str:
        """Why this operator can neither lead nor take over, "" if it can. A standby is ready."""
        if self._answered == -math.inf:
            details = f"the Lease {self._name} was not read yet{self._error and f': {self._error}'}"
            return FailedCheck("the Lease was not read yet", details)
        silent = boottime() - self._answered
        if silent <= UNREADY_AFTER:
            return ""
        details = f"the Lease {self._name} could not be read for {silent:.0f} s: {self._error}"
        return FailedCheck("the Lease could not be read", details)

    def stop(self) -> None:
        """Release the Lease, so that a standby need not wait until it expires. Call this after the last write."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        self._thread.join(self._timings.deadline)
        if not self.elected.is_set() or self._thread.is_alive():
            return  # a request that hangs would let this one hang too; the Lease expires by itself
        try:
            lease = self._api.get(self._path)
            if lease["spec"].get("holderIdentity") == self._identity:
                lease["spec"]["holderIdentity"] = ""
                self._api.request("PUT", self._path, lease)
        except Exception as error:  # also an answer that is no Lease: the end of the operator goes on
            _LOG.warning("cannot release the Lease; it expires by itself", extra=logs.fields(error=error))

    def _run(self) -> None:
        logged = None
        while not self._stopping.is_set():
            problem = self.attempt()
            if problem is not None and problem != logged:
                message, values = problem
                _LOG.info(message, extra=logs.fields(**values))
            logged = problem
            self._stopping.wait(self._timings.pause(has_failed=problem is not None and self.elected.is_set()))

    def _watch_deadline(self) -> None:
        """Call `on_lost` once the Lease was not renewed for the deadline."""
        with self._changed:
            while not self._stopping.is_set():
                left = self._renewed + self._timings.deadline - boottime() if self.elected.is_set() else math.inf
                if left <= 0:
                    break
                # A wait does not count the time for which the machine is suspended, so it must be short.
                self._changed.wait(None if left == math.inf else min(left, self._timings.period))
        if self._stopping.is_set():
            return
        _LOG.error(
            "leadership lost",
            extra=logs.fields(identity=self._identity, not_renewed_seconds=self._timings.deadline),
        )
        self._on_lost()

    def _set_renewed(self, moment: float) -> None:
        with self._changed:
            self._renewed = moment
            self.on_renewed(moment + self._timings.deadline)
            self._changed.notify_all()

    def _try_acquire(self) -> tuple[str, dict[str, Any]] | None:
        began = boottime()
        if self.elected.is_set() and not self.leads():
            return "leader election ended", {}  # the deadline's thread ends this process
        try:
            lease = self._read()
            self._answered = boottime()
            if lease is not None:
                # The holder may have renewed it at any time until the response.
                self._observation = observe_lease(lease, self._observation, self._answered)
            action = decide_action(lease, self._identity, self._observation, began, self._timings.duration)
            if action is LeaseAction.WAIT:
                if self.elected.is_set():  # another process took the Lease while the API server was unreachable
                    self._set_renewed(-math.inf)
                assert lease is not None
                return "standing by", {"leader": lease["spec"]["holderIdentity"]}
            body = build_lease(lease, self._identity, self._name, self._timings, datetime.now(UTC))
            if action is LeaseAction.CREATE:
                answer = self._api.request("POST", self._leases, body)
            else:
                answer = self._api.request("PUT", self._path, body)
            if answer["spec"]["holderIdentity"] != self._identity:
                return "leader election failed", {"error": "the API server returned another holder than it was given"}
        except (ApiError, ApiConnectionError) as error:
            return "leader election failed", {"error": str(error)}
        self._set_renewed(began)
        if not self.elected.is_set():
            _LOG.info("leadership gained", extra=logs.fields(identity=self._identity))
            self.elected.set()
            self._set_renewed(began)  # the deadline counts from now on
        return None

    def _read(self) -> dict[str, Any] | None:
        try:
            return self._api.get(self._path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

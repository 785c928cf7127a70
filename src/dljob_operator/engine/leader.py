"""Leader election through a Lease, as Kubernetes' own controllers do it: one operator works, the others stand by.

The clocks of two machines are never compared: whoever stands by watches the Lease change, and takes it when it has not
changed for as long as its holder promised to renew it.
"""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dljob_operator.engine.kube import ApiConnectionError, ApiError, KubeApi

_LOG = logging.getLogger(__name__)
LEASE = "dljob-operator"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


@dataclass(frozen=True)
class LeaseTimings:
    """Seconds. A leader renews every `period`, and gives up after `deadline` without success, which is well before
    another may take its place: `duration` after its last renewal was seen."""

    duration: float = 6.0
    deadline: float = 4.0
    period: float = 1.0


class LeaseAction(enum.Enum):
    """What to do about a Lease as it was just read."""

    CREATE = enum.auto()
    TAKE = enum.auto()
    RENEW = enum.auto()
    WAIT = enum.auto()


@dataclass(frozen=True)
class LeaseObservation:
    """A Lease's version, and when it was first seen at it (monotonic)."""

    version: str
    since: float


def observe_lease(lease: Mapping[str, Any], before: LeaseObservation | None, now: float) -> LeaseObservation:
    version = str(lease["metadata"]["resourceVersion"])
    return before if before is not None and before.version == version else LeaseObservation(version, now)


def move(
    lease: Mapping[str, Any] | None, identity: str, sight: LeaseObservation | None, now: float, default: float
) -> LeaseAction:
    """`default` is the duration of a Lease that does not say its own."""
    if lease is None:
        return LeaseAction.CREATE
    spec = lease.get("spec") or {}
    holder = spec.get("holderIdentity") or ""
    if holder == identity:
        return LeaseAction.RENEW
    if not holder:
        return LeaseAction.TAKE
    promised = spec.get("leaseDurationSeconds") or default
    return LeaseAction.TAKE if sight is not None and now - sight.since >= promised else LeaseAction.WAIT


def held(
    lease: Mapping[str, Any] | None, identity: str, namespace: str, terms: LeaseTimings, moment: datetime
) -> dict[str, Any]:
    """The Lease as `identity` writes it; the version makes the API server refuse it where another was faster."""
    stamp = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = dict((lease or {}).get("spec") or {})
    if spec.get("holderIdentity") != identity:
        spec["acquireTime"] = stamp
        spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + (1 if lease else 0)
    spec |= {"holderIdentity": identity, "leaseDurationSeconds": round(terms.duration), "renewTime": stamp}
    metadata: dict[str, Any] = {"name": LEASE, "namespace": namespace}
    if lease is not None:
        metadata["resourceVersion"] = lease["metadata"]["resourceVersion"]
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


class LeaderElector:
    """Tries to hold the Lease, on a thread of its own; `on_lost` is called if it was held and could not be kept."""

    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        identity: str,
        on_lost: Callable[[], None],
        terms: LeaseTimings | None = None,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._identity = identity
        self._on_lost = on_lost
        self._terms = terms or LeaseTimings()
        self._path = _LEASES.format(namespace)
        self._sight: LeaseObservation | None = None
        self._renewed = 0.0
        self._stopping = threading.Event()
        self.elected = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leader election", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Give the Lease back, so that another need not wait for it to run out. Call it after the last write."""
        self._stopping.set()
        self._thread.join(self._terms.deadline)
        if not self.elected.is_set():
            return
        try:
            lease = self._api.get(f"{self._path}/{LEASE}")
            if lease["spec"].get("holderIdentity") == self._identity:
                lease["spec"]["holderIdentity"] = ""
                self._api.request("PUT", f"{self._path}/{LEASE}", lease)
        except (ApiError, ApiConnectionError) as error:
            _LOG.warning("the Lease could not be given back: %s; another operator waits for it to run out", error)

    def _run(self) -> None:
        said = ""
        while not self._stopping.is_set():
            problem = self._try()
            if problem and problem != said:
                _LOG.info("%s", problem)
            said = problem
            if self.elected.is_set() and time.monotonic() - self._renewed > self._terms.deadline:
                _LOG.error("lost the lead: the Lease could not be renewed for %g s", self._terms.deadline)
                self._on_lost()
                return
            self._stopping.wait(self._terms.period)

    def _try(self) -> str:
        """One attempt; the reason where this operator does not hold the Lease after it."""
        began = time.monotonic()
        try:
            lease = self._read()
            if lease is not None:
                self._sight = observe_lease(lease, self._sight, began)
            todo = move(lease, self._identity, self._sight, began, self._terms.duration)
            if todo is LeaseAction.WAIT:
                if self.elected.is_set():  # taken from us, while we could not reach it
                    self._renewed = -self._terms.deadline
                assert lease is not None
                return f"standing by: {lease['spec']['holderIdentity']} leads"
            body = held(lease, self._identity, self._namespace, self._terms, datetime.now(UTC))
            if todo is LeaseAction.CREATE:
                self._api.request("POST", self._path, body)
            else:
                self._api.request("PUT", f"{self._path}/{LEASE}", body)
        except (ApiError, ApiConnectionError) as error:
            return f"leader election: {error}"
        self._renewed = began
        if not self.elected.is_set():
            _LOG.info("%s leads", self._identity)
            self.elected.set()
        return ""

    def _read(self) -> dict[str, Any] | None:
        try:
            return self._api.get(f"{self._path}/{LEASE}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise

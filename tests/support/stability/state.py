"""A state of the model: immutable, hashable, and canonical.

"Now" is always :data:`builders.NOW`: when time passes, the timestamps of the state become older. So states that differ
only in when they happened are equal. A time of more than :data:`OLDEST` seconds ago is as old as that, which exceeds every
delay of the scenarios (the longest is the 300 s between two attempts of a replica).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock

from support.builders import NOW, stamp

OLDEST = -400
LONG_AGO = stamp(OLDEST)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


Step = Callable[[], "State"]
"""A transition that is yet to be taken. It raises :class:`Violation` where the operator breaks an invariant."""


class Violation(AssertionError):
    """The product breaks the property, or an invariant."""


class Pod(NamedTuple):
    """A pod that the job owns. Times are in seconds relative to now. Its name is its identity: no transition replaces a
    pod by another one of its name."""

    name: str
    type: str
    index: int
    attempt: int
    hash: str
    policy: str
    created: int = 0
    phase: str = "Pending"
    blocked: bool = False
    """The scheduler finds no node for it."""
    deleting: int | None = None
    """The end of its grace period."""
    code: int | None = None
    """The exit code of its container's last termination."""
    reason: str = ""
    """The reason of that termination, or of the pod's failure where its container never ran."""
    ended: int = 0
    """The time of that termination."""
    terminated: bool = False
    """Whether its container is terminated now."""
    restarts: int = 0
    disrupted: bool = False

    @property
    def rank(self) -> tuple[str, int]:
        return self.type, self.index

    @property
    def runs(self) -> bool:
        return self.phase == "Running" and not self.terminated and self.deleting is None


class Owned(NamedTuple):
    """An owned object that is no pod."""

    kind: str
    name: str
    hash: str
    lifetime: str


class Spec(NamedTuple):
    """What tenants have edited; the scenario makes the job's spec from it."""

    version: int = 0
    size: int = 0
    suspend: bool = False
    policy: int = 0


class State(NamedTuple):
    """One job, what it owns, and when its operator reconciles it next."""

    spec: Spec = Spec()
    generation: int = 1
    """1 where the status is of the present spec, or where there is no status; otherwise 2."""
    status: str = ""
    """JSON, "" for a new job."""
    pods: tuple[Pod, ...] = ()
    """Sorted by name."""
    objects: tuple[Owned, ...] = ()
    """Sorted."""
    wake: int | None = 0
    """Seconds until the next reconcile: 0 after a watch event, ``None`` where only a watch event triggers one."""
    gone: bool = False
    """The operator has deleted the job: its time to live is over."""

    @property
    def job_version(self) -> tuple[Any, ...]:
        """What a change of the job changes, like its resourceVersion."""
        return self.spec, self.generation, self.status


@functools.cache
def stamp_of(seconds: int) -> str:
    return stamp(seconds)


@functools.lru_cache(maxsize=50_000)
def read_status(status: str) -> Mapping[str, Any]:
    """The status as the API server returns it. Nobody may change it."""
    found: dict[str, Any] = json.loads(status) if status else {}
    return found


def with_status(state: State, status: Mapping[str, Any]) -> State:
    """The state with this status written.

    The times of conditions become :data:`LONG_AGO`, since no decision depends on them, and the observed generation 1,
    since only whether it is the present one matters.
    """
    kept = dict(status)
    kept["conditions"] = [
        {**condition, "lastUpdateTime": LONG_AGO, "lastTransitionTime": LONG_AGO}
        for condition in status.get("conditions") or ()
    ]
    is_current = kept.get("observedGeneration") == state.generation
    kept["observedGeneration"] = 1
    text = json.dumps(kept, sort_keys=True)
    return state._replace(status=text, generation=1 if is_current else 2)


def with_spec(state: State, spec: Spec) -> State:
    """The state after an edit by a tenant."""
    return state._replace(spec=spec, generation=2 if state.status else 1, wake=0)


def with_pod(state: State, old: Pod, new: Pod | None) -> State:
    """The state with ``new`` in the place of ``old``, or without it. The watch event triggers a reconcile."""
    pods = tuple(new if pod is old else pod for pod in state.pods if pod is not old or new is not None)
    return state._replace(pods=pods, wake=0)  # type: ignore[arg-type]


def later(state: State, seconds: int) -> State:
    """The state after ``seconds`` in which nothing happened."""

    def shift(time: int) -> int:
        return max(time - seconds, OLDEST)

    pods = tuple(
        pod._replace(
            created=shift(pod.created),
            ended=shift(pod.ended) if pod.code is not None else 0,
            deleting=None if pod.deleting is None else shift(pod.deleting),
        )
        for pod in state.pods
    )
    wake = None if state.wake is None else max(state.wake - seconds, 0)
    return state._replace(status=_later(state.status, seconds), pods=pods, wake=wake)


def _later(text: str, seconds: int) -> str:
    def shifted(match: re.Match[str]) -> str:
        moment = clock.parse(match[0])
        assert moment is not None
        return max(clock.stamp(moment - timedelta(seconds=seconds)), LONG_AGO)

    return _TIME.sub(shifted, _with_shifted_consequences(text, seconds) if '"consequences"' in text else text)


def _with_shifted_consequences(text: str, seconds: int) -> str:
    """Their ends are given relative to that of the loss, and none is older than :data:`OLDEST`."""
    status = json.loads(text)
    loss = status.get("lastLoss") or {}
    if "consequences" not in loss:
        return text
    moment = clock.parse(loss["time"])
    assert moment is not None
    before = int((moment - NOW).total_seconds())
    base = max(before - seconds, OLDEST)
    loss["consequences"] = {k: max(before + n - seconds, OLDEST) - base for k, n in loss["consequences"].items()}
    return json.dumps(status, sort_keys=True)


def outcome(state: State) -> str | None:
    """Succeeded or Failed, ``None`` for a job that has not ended."""
    found = read_status(state.status).get("state")
    return found if found in ("Succeeded", "Failed") else None


assert clock.stamp(NOW) == stamp_of(0)

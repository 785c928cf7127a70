"""What the policies ask of a snapshot, in the terms of a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from dljob.times import time_of
from dljob.why.model import Evidence, Object, Snapshot

SUCCEEDED, FAILED, SUSPENDED = "Succeeded", "Failed", "Suspended"
LABEL_TYPES = ("dljob.operator/replica-type", "training.kubeflow.org/replica-type")


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def maps(value: Any) -> list[Mapping[str, Any]]:
    """The mappings of a list of the API, which may be missing or null."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, Sequence) else []


def condition(found: Object, type_: str) -> Mapping[str, Any]:
    """The condition of that type, empty where there is none."""
    conditions = maps(mapping(found.get("status")).get("conditions"))
    return next((one for one in conditions if one.get("type") == type_), {})


def is_true(found: Object, type_: str) -> bool:
    return condition(found, type_).get("status") == "True"


def name_of(found: Object) -> str:
    return str(mapping(found.get("metadata")).get("name") or "")


def evidence(kind: str, found: Object, words: Any) -> Evidence:
    return Evidence(f"{kind}/{name_of(found)}", " ".join(str(words or "").split()))


@dataclass(frozen=True)
class Container:
    """A container of a pod with its state."""

    pod: Pod
    name: str
    is_init: bool
    status: Object

    @property
    def waiting(self) -> Mapping[str, Any]:
        return mapping(mapping(self.status.get("state")).get("waiting"))

    @property
    def running(self) -> Mapping[str, Any]:
        return mapping(mapping(self.status.get("state")).get("running"))

    @property
    def terminated(self) -> Mapping[str, Any]:
        return mapping(mapping(self.status.get("state")).get("terminated"))

    @property
    def last(self) -> Mapping[str, Any]:
        """Its last end: of this state, or of the state before."""
        return self.terminated or mapping(mapping(self.status.get("lastState")).get("terminated"))

    @property
    def spec(self) -> Mapping[str, Any]:
        every = maps(self.pod.spec.get("containers")) + maps(self.pod.spec.get("initContainers"))
        return next((one for one in every if one.get("name") == self.name), {})

    @property
    def image(self) -> str:
        return str(self.spec.get("image") or self.status.get("image") or "")

    @property
    def restarts(self) -> int:
        return int(self.status.get("restartCount") or 0)


@dataclass(frozen=True)
class Pod:
    """A pod of the job."""

    object: Object

    @property
    def name(self) -> str:
        return name_of(self.object)

    @property
    def metadata(self) -> Mapping[str, Any]:
        return mapping(self.object.get("metadata"))

    @property
    def spec(self) -> Mapping[str, Any]:
        return mapping(self.object.get("spec"))

    @property
    def status(self) -> Mapping[str, Any]:
        return mapping(self.object.get("status"))

    @property
    def phase(self) -> str:
        return str(self.status.get("phase") or "")

    @property
    def node(self) -> str:
        return str(self.spec.get("nodeName") or "")

    @property
    def type(self) -> str:
        labels = mapping(self.metadata.get("labels"))
        return next((str(labels[one]).lower() for one in LABEL_TYPES if one in labels), "")

    @property
    def created(self) -> datetime | None:
        return time_of(self.metadata.get("creationTimestamp"))

    @property
    def deleted(self) -> datetime | None:
        """When the API server was asked to delete it, its grace period included."""
        return time_of(self.metadata.get("deletionTimestamp"))

    @property
    def is_terminating(self) -> bool:
        return bool(self.metadata.get("deletionTimestamp"))

    @property
    def has_ended(self) -> bool:
        return self.phase in (SUCCEEDED, FAILED)

    @property
    def is_ready(self) -> bool:
        return is_true(self.object, "Ready")

    @property
    def is_well(self) -> bool:
        return (self.phase == "Running" and self.is_ready and not self.is_terminating) or self.phase == SUCCEEDED

    @property
    def containers(self) -> Iterator[Container]:
        """Those with a state, init containers first."""
        for field, is_init in (("initContainerStatuses", True), ("containerStatuses", False)):
            for one in maps(self.status.get(field)):
                yield Container(self, str(one.get("name")), is_init, one)


@dataclass(frozen=True)
class Replicas:
    """A replica type of the job."""

    type: str
    count: int
    template: Mapping[str, Any]


class Facts:
    """A snapshot, read."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.job = snapshot.job
        self.now = snapshot.now

    @property
    def name(self) -> str:
        return name_of(self.job)

    @property
    def kind(self) -> str:
        return str(self.job.get("kind") or "Job")

    @property
    def metadata(self) -> Mapping[str, Any]:
        return mapping(self.job.get("metadata"))

    @property
    def labels(self) -> Mapping[str, Any]:
        return mapping(self.metadata.get("labels"))

    @property
    def spec(self) -> Mapping[str, Any]:
        return mapping(self.job.get("spec"))

    @property
    def status(self) -> Mapping[str, Any]:
        return mapping(self.job.get("status"))

    @property
    def created(self) -> datetime | None:
        return time_of(self.metadata.get("creationTimestamp"))

    @property
    def is_deleted(self) -> bool:
        return bool(self.metadata.get("deletionTimestamp"))

    @property
    def run_policy(self) -> Mapping[str, Any]:
        return mapping(self.spec.get("runPolicy")) or self.spec

    @property
    def is_suspended_by_spec(self) -> bool:
        return self.run_policy.get("suspend") is True

    @property
    def outcome(self) -> str:
        """Succeeded or Failed, "" for a job that goes on."""
        if self.status.get("state") in (SUCCEEDED, FAILED):
            return str(self.status["state"])
        return next((one for one in (SUCCEEDED, FAILED) if is_true(self.job, one)), "")

    @property
    def reason(self) -> str:
        """What the operator says about it."""
        return str(self.status.get("reason") or "")

    @cached_property
    def pods(self) -> tuple[Pod, ...]:
        return tuple(Pod(one) for one in self.snapshot.pods)

    @cached_property
    def live(self) -> tuple[Pod, ...]:
        """Pods that have not ended and are not being deleted."""
        return tuple(pod for pod in self.pods if not (pod.has_ended or pod.is_terminating))

    @cached_property
    def replicas(self) -> tuple[Replicas, ...]:
        spec = self.job.get("spec")
        return tuple(_replicas({"replicas": spec} if isinstance(spec, list) else self.spec))

    @property
    def wanted(self) -> int:
        return sum(one.count for one in self.replicas)

    @cached_property
    def unschedulable(self) -> tuple[Pod, ...]:
        return tuple(
            pod for pod in self.live if not pod.node and condition(pod.object, "PodScheduled").get("status") == "False"
        )

    @property
    def is_settled(self) -> bool:
        """Whether the job has ended, or all its replicas run: then little else needs to be read."""
        if self.outcome and not self.is_deleted:
            return all(pod.has_ended or pod.is_well for pod in self.pods)
        complete = len(self.pods) >= self.wanted > 0
        return complete and not self.is_deleted and all(pod.is_well for pod in self.pods)

    @cached_property
    def _events(self) -> Mapping[tuple[Any, Any], list[Object]]:
        """By kind and name, the oldest first."""
        found: dict[tuple[Any, Any], list[Object]] = {}
        for event in sorted(self.snapshot.events, key=lambda one: last_time(one) or _NEVER):
            about = _about(event)
            found.setdefault((about.get("kind"), about.get("name")), []).append(event)
        return found

    def events_of(self, kind: str, name: str, uid: str = "") -> list[Object]:
        """The Events about an object, the oldest first."""
        named = self._events.get((kind, name), ())
        return [one for one in named if not uid or _about(one).get("uid") in (None, "", uid)]

    def events_of_job(self) -> list[Object]:
        return self.events_of(self.kind, self.name, str(self.metadata.get("uid") or ""))

    def events_of_pod(self, pod: Pod) -> list[Object]:
        return self.events_of("Pod", pod.name, str(pod.metadata.get("uid") or ""))

    def age(self, since: datetime | None) -> float:
        """Seconds since then, 0 where it is not known."""
        return max(0.0, (self.now - since).total_seconds()) if since else 0.0


_NEVER = datetime.min.replace(tzinfo=UTC)


def _about(event: Object) -> Mapping[str, Any]:
    return mapping(event.get("involvedObject")) or mapping(event.get("regarding"))


def last_time(event: Object) -> datetime | None:
    """When it happened last."""
    series = mapping(event.get("series"))
    fields = ("lastTimestamp", "eventTime", "firstTimestamp", "deprecatedLastTimestamp")
    found = [time_of(series.get("lastObservedTime")), *(time_of(event.get(one)) for one in fields)]
    return max((one for one in found if one), default=None)


def first_time(event: Object) -> datetime | None:
    fields = ("firstTimestamp", "eventTime", "deprecatedFirstTimestamp", "lastTimestamp")
    return next((found for one in fields if (found := time_of(event.get(one)))), None)


def message_of(event: Object) -> str:
    return " ".join(str(event.get("message") or event.get("note") or "").split())


def _replicas(spec: Mapping[str, Any]) -> Iterator[Replicas]:
    """Of any flavor: a mapping of types, or a list of replicas that name theirs."""
    for field, value in spec.items():
        if field.lower().replace("_", "") != "replicas" and not field.lower().replace("_", "").endswith("replicaspecs"):
            continue
        if isinstance(value, Mapping):
            for type_, one in value.items():
                yield _group(str(type_), mapping(one))
        for one in maps(value):
            named = (str(one[key]) for key in one if key.lower().replace("_", "").endswith("replicatype"))
            yield _group(next(named, "Master"), one)


def _group(type_: str, one: Mapping[str, Any]) -> Replicas:
    count = one.get("replicas", one.get("count"))
    return Replicas(type_, count if isinstance(count, int) else 1, mapping(one.get("template")))

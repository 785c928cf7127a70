"""What the cluster shows of a job, reduced to what decisions need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Termination:
    """How a container ended. ``code`` is the process' exit code; ``reason`` the kubelet's word (Error, OOMKilled)."""

    code: int
    reason: str
    message: str
    finished_at: str


@dataclass(frozen=True, slots=True)
class PodState:
    """A pod that the job owns."""

    name: str
    uid: str
    type: str
    """Lower case, as the label has it."""
    index: int
    attempt: int
    phase: str
    created: str
    """RFC 3339."""
    deleting: str
    """Until when it may take to go (RFC 3339), "" where nobody has deleted it."""
    spec_hash: str
    shared: str
    """Name of the ConfigMap that holds a part of its environment, "" where the pod says it all."""
    node: str
    restarts: int
    """Restarts in place, by the kubelet, of all its containers."""
    restart_policy: str
    container: str
    """The container that ``ended`` and ``stopped`` speak of: the framework's, or one that kept it from starting."""
    ended: Termination | None
    """Its last end, be it restarted since or not."""
    terminated: bool
    """It is not running now and has ended."""
    is_active: bool
    """Some container of the pod runs, or is to run (again): the pod still costs something."""
    reason: str
    message: str
    waiting: str
    """Why its container cannot start (ImagePullBackOff ...), "" where nothing holds it up."""
    disrupted: bool
    """The cluster ended it (preemption, eviction, node loss), not the program."""


@dataclass(frozen=True, slots=True)
class OwnedObject:
    """An object that there is. ``hash`` tells what it was made from, "" where that was not written down."""

    uid: str
    hash: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """The objects that a job owns."""

    pods: tuple[PodState, ...] = ()
    services: Mapping[str, str] = field(default_factory=dict)
    """Service name to uid."""
    owned_objects: Mapping[tuple[str, str], OwnedObject] = field(default_factory=dict)
    """By kind and name: all that is not a pod."""

    def pods_of(self, type_: str) -> list[PodState]:
        folded = type_.lower()
        return [p for p in self.pods if p.type == folded]


@dataclass(frozen=True, slots=True)
class EventNote:
    """An Event to be written on the job, once its status is."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Deletion:
    """An object to delete: only that very one, hence the uid."""

    kind: str
    name: str
    uid: str
    api_version: str = "v1"


@dataclass(frozen=True, slots=True)
class Plan:
    """What one reconcile does. Empty where there is nothing to do."""

    auxiliary_objects: tuple[Mapping[str, Any], ...] = ()
    """Objects that the pods of this plan need besides Services, made before anything else."""
    services: tuple[Mapping[str, Any], ...] = ()
    pods: tuple[Mapping[str, Any], ...] = ()
    deletions: tuple[Deletion, ...] = ()
    ensured_objects: tuple[Mapping[str, Any], ...] = ()
    """Objects to be as they stand here, made where missing and replaced where not. Their refusal is told, and fails
    nothing: the training goes on without them."""
    route: Mapping[str, Any] | None = None
    """The way in from outside to the job's page, for clusters that have such."""
    status: Mapping[str, Any] | None = None
    """The status to write, ``None`` where the present one holds."""
    events: tuple[EventNote, ...] = ()
    requeue_after: float | None = None
    """Seconds until the job must be looked at even though nothing happened; 0 is at once."""
    delete_job: bool = False

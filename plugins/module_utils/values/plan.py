"""What a reconcile is going to write: the plan, and the parts of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.values.job import ReplicaGroup

IMMEDIATE = 0.0
"""Seconds until the next reconcile where a step of this one has to be through first."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """An object to delete. The uid protects a newer object of the same name."""

    kind: str
    name: str
    uid: str
    api_version: str = "v1"
    lost_node: str = ""
    """The deletion is by force, without a grace period, and allowed only if this node is lost; "": graceful."""
    is_foreign: bool = False
    """Whether another operator has created the object, so that no watch of this one reports its end."""


@dataclass(frozen=True, slots=True)
class PodToCreate:
    """A pod to create."""

    group: ReplicaGroup
    index: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The writes of one reconcile. Empty where there is nothing to do."""

    auxiliary_objects: tuple[Mapping[str, Any], ...] = ()
    """Objects besides Services that the pods of this plan need. The writer creates them first."""
    services: tuple[Mapping[str, Any], ...] = ()
    pods: tuple[Mapping[str, Any], ...] = ()
    deletions: tuple[Deletion, ...] = ()
    ensured_objects: tuple[Mapping[str, Any], ...] = ()
    """Objects to create or to replace. Where the API server rejects one, the user is informed and the job goes on,
    because the training does not need them."""
    routes: tuple[Mapping[str, Any], ...] = ()
    """OpenShift Routes to ensure, for clusters that serve Routes."""
    stale_routes: tuple[str, ...] = ()
    """Names of Services that the plan deletes and that a Route may expose."""
    status: Mapping[str, Any] | None = None
    """The status to write, ``None`` where the current one is up to date."""
    events: tuple[EventNote, ...] = ()
    """Events on the job. The writer creates them after it has written the status."""
    requeue_after: float | None = None
    """Seconds until the next reconcile if no watch event triggers one earlier; 0 is immediate."""
    missing_pods: int = 0
    """How many pods the job lacks, ``pods`` included."""
    is_partial: bool = False
    """Whether the next reconcile plans further creations or deletions for this same state of the job."""
    presumes_deleted_pods: bool = False
    """Whether it restarts the whole job because pods are missing, or fails an invalid one because none has begun. A
    cache may only not have them yet, so the reconcile asks the API server first."""
    presumes_running: tuple[str, ...] = ()
    """The uids of pods that it deletes because they run, although the status has recorded the end of their replicas. A
    cache may only not have the end of these pods yet, so the reconcile asks the API server first."""
    presumes_unstarted: tuple[str, ...] = ()
    """The uids of pods, of a job that has ended, that it deletes because their containers have not run. A cache may
    only not have their start yet, so the reconcile asks the API server first."""
    presumes_kept: tuple[str, ...] = ()
    """The uids of pods, and of batch Jobs that run some, of a job that is resumed. Its status says that it is
    suspended, which it does only once all are deleted, so a cache may only not have their deletions yet, and the
    reconcile asks the API server first."""
    presumes_current_spec: bool = False
    """Whether it deletes pods because the spec wants others, or none. A cache may only have an older spec, and the pods
    be those of the newer one, so the reconcile asks the API server first."""
    presumes_ended_launchers: tuple[str, ...] = ()
    """The types of replicas that batch Jobs run and that the job lacks, where it creates replicas and may have had
    one of these. Its pod may outlive the batch Job, and a cache may only not have the pod yet, so the reconcile asks
    the API server first."""
    presumes_known_pods: bool = False
    """Whether its status says that the job has ended or is suspended. No cache has pods that are not adopted yet, and
    they would run on, so the reconcile asks the API server first."""
    still_used: tuple[str, ...] = ()
    """The uids of objects that terminate, which they do as long as pods of the job use them: they are replaced in
    place, and not waited for."""
    delete_job: bool = False

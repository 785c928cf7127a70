"""What a reconcile is going to write: the plan, and the parts of it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
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


class Fact(enum.Enum):
    """A fact that a cache, which may be behind, can have wrong."""

    PODS_ARE_DELETED = enum.auto()
    """The pods that are missing are deleted: the plan restarts the whole job, or fails an invalid one, for them."""
    STILL_RUNS = enum.auto()
    """These pods run, although the status has recorded the end of their replicas: the plan deletes them."""
    IS_UNSTARTED = enum.auto()
    """The containers of these pods of a job that has ended have not run: the plan deletes them."""
    IS_KEPT = enum.auto()
    """These pods, and batch Jobs that run some, of a job that is resumed are not deleted. Its status says that it is
    suspended, which it does only once all are."""
    SPEC_IS_CURRENT = enum.auto()
    """No user has edited, suspended or deleted the job: the plan deletes pods since the spec wants others, or none."""
    LAUNCHERS_HAVE_ENDED = enum.auto()
    """The pods of these replica types, which batch Jobs run, have ended with their Jobs: the plan creates replicas."""
    PODS_ARE_KNOWN = enum.auto()
    """The job has no pods of another operator that are not adopted: its status says that it has ended or rests. No
    cache has them, and they would run on."""


@dataclass(frozen=True, slots=True)
class Presumption:
    """A fact that the API server is asked about before the plan is carried out."""

    fact: Fact
    of: tuple[str, ...] = ()
    """The uids, or the replica types, that it is about; () for the job."""


def presume(facts: Mapping[Fact, bool | tuple[str, ...]]) -> tuple[Presumption, ...]:
    """Those of the ``facts`` that are presumed: what they are about, or for the job whether they are."""
    return tuple(Presumption(fact, () if isinstance(of, bool) else of) for fact, of in facts.items() if of)


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
    reads_first: bool = False
    """Whether an earlier plan has created the objects of kinds that no engine watches: the writer then reads each
    before it tries to create it."""
    outdated: Mapping[str, str] = field(default_factory=dict)
    """The uids of objects to replace, by kind and name (``ConfigMap/pi-config``). The writer replaces them unread."""
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
    presumes: tuple[Presumption, ...] = ()
    """What has to be so at the API server too before anything of the plan is written."""
    still_used: tuple[str, ...] = ()
    """The uids of objects that terminate, which they do as long as pods of the job use them: they are replaced in
    place, and not waited for."""
    delete_job: bool = False

    def presumed(self, fact: Fact) -> Presumption | None:
        """The presumption of that fact, ``None`` where the plan has none."""
        return next((one for one in self.presumes if one.fact is fact), None)

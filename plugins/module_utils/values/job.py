"""A parsed job, independent of its API flavor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import SERVICES_PER_JOB
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import SUCCEEDS_BY_TARGET, ApiFlavor
from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import FailureRule
from ansible_collections.dljob.operator.plugins.module_utils.values.restarts_within import RestartsWithin
from ansible_collections.dljob.operator.plugins.module_utils.values.stall_policy import StallPolicy


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A pod template of a replica type, with the replicas that have it."""

    group: str
    """The name of the group of replicas, an element of ``groups``; "" for the replica spec's own template."""
    template: Mapping[str, Any]
    """The user's PodTemplateSpec."""
    path: str
    """Of the template in the job, for messages (``spec.replicaSpecs[0].template``)."""
    indexes: range
    """Of the replicas."""
    containers: tuple[str, ...] = ()
    """Names of the containers of the user's own template."""


@dataclass(frozen=True, slots=True)
class ReplicaGroup:
    """All replicas of one type."""

    type: str
    """Canonical spelling, as the framework declares it (``Worker``)."""
    replicas: int
    template: Mapping[str, Any]
    """The user's PodTemplateSpec, of the replicas that are in no group of ``groups``."""
    restart_policy: str
    port: int
    path: str
    """Path of the replica spec in the job, for messages (``spec.replicaSpecs[0]``)."""
    containers: tuple[str, ...] = ()
    """Names of the containers of that template."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the replica spec that the flavor passes to the hooks, unvalidated."""
    batch_job: bool = False
    """Whether a batch/v1 Job runs its replica."""
    indexed: bool = True
    """Whether the names of its pods end with the index."""
    resizable: bool = False
    """Whether the other replicas learn of a change of its number while they run."""
    is_completed: bool = False
    """Whether the pod hook supplies a container that the template may lack; ``template`` then has it."""
    groups: tuple[PodTemplate, ...] = ()
    """The templates of the first replicas, in the order of their indexes."""

    @property
    def grouped(self) -> int:
        """How many replicas are in groups."""
        return self.groups[-1].indexes.stop if self.groups else 0

    @property
    def templates(self) -> tuple[PodTemplate, ...]:
        """All templates, also one that no replica has."""
        others = range(self.grouped, self.replicas)
        return (*self.groups, PodTemplate("", self.template, f"{self.path}.template", others, self.containers))

    def template_of(self, index: int) -> PodTemplate:
        """The template of a replica."""
        return next((one for one in self.groups if index in one.indexes), self.templates[-1])


@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """The job's runPolicy.schedulingPolicy, of which a gang scheduler learns through the PodGroup."""

    min_available: int | None = None
    queue: str | None = None
    priority_class: str | None = None
    """Of the pods, with any scheduler."""
    min_resources: Mapping[str, Any] = field(default_factory=dict)
    """Quantities by name."""
    schedule_timeout_seconds: int | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Those of the job that are addressed to schedulers."""


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """The job's runPolicy, with the fields that other flavors keep elsewhere. Durations are in seconds."""

    clean_pod_policy: str = "Running"
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    suspend: bool = False
    managed_by: str | None = None
    scheduler_name: str | None = None
    scheduling: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    pending_timeout_seconds: int | None = None
    force_delete_after_seconds: int | None = None
    restart_scope: str = "Replica"
    """Replica: a failed replica restarts alone; Job: all replicas restart with it."""
    max_restarts_per_replica: int | None = None
    restarts_within: RestartsWithin | None = None
    failure_rules: tuple[FailureRule, ...] = ()
    """The rules of podFailurePolicy; with any, the kubelet restarts no container of the job."""
    progress: str = ""
    """Which ranks report their progress, one of RANK_CHOICES; "" leaves it to the operator."""
    stall_policy: StallPolicy | None = None
    starts_after: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What startupPolicy adds to the framework's order: by type, the other types that it waits for, each with the state
    that all its replicas must have reached (ready, running or completed)."""


@dataclass(frozen=True, slots=True)
class SuccessTarget:
    """The replica whose exit decides the outcome of the job."""

    type: str
    index: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """What is known of a job even if its spec is invalid: :func:`..logic.parse.job_record.read`."""

    kind: str
    name: str
    generation: int
    runtime_id: str
    run_policy: RunPolicy
    """Of an invalid job only whether it is suspended, and its time to live."""
    status: Mapping[str, Any] = field(default_factory=dict)
    is_queued: bool = False
    """Whether Kueue admits it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DLJob(JobRecord):
    """A distributed deep-learning job. Built by :func:`..logic.parse.parse.parse_job`."""

    api_version: str
    """The one in which the job was created, where the kind's versions differ."""
    namespace: str
    uid: str
    mode: str
    groups: tuple[ReplicaGroup, ...]
    success_target: SuccessTarget
    flavor: ApiFlavor
    options: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the spec that the flavor passes to the hooks, unvalidated; pods of other values are replaced."""
    object_options: Mapping[str, Any] = field(default_factory=dict)
    """The flavor's ``object_fields`` of the spec, unvalidated; they restart no pod."""
    succeeds_by: str = SUCCEEDS_BY_TARGET
    """target: the job succeeds when the success target's container exits with 0; all: when all replicas of its type
    have succeeded; any: when one has."""
    held: str = ""
    """Why it waits although its spec does not suspend it, as a sentence; see :mod:`..logic.queueing`."""
    services: str = SERVICES_PER_JOB
    """How many Services the job has, one of SERVICES. See :mod:`..logic.plan.policies.service_scope`."""
    asks_for_services: bool = False
    """Whether that is what the job's annotation says, not the operator's setting."""
    elastic_type: str = ""
    """The type whose replicas join, leave and fail independently of the others; "" where no type is elastic."""

    @property
    def api_group(self) -> str:
        return self.api_version.partition("/")[0]

    @property
    def total(self) -> int:
        """Number of replicas of all types."""
        return sum(g.replicas for g in self.groups)

    def group(self, type_: str) -> ReplicaGroup | None:
        return next((g for g in self.groups if g.type == type_), None)

    def tasks(self) -> Iterator[tuple[ReplicaGroup, int]]:
        """Every replica as (group, index), in the order in which the job lists its types."""
        return ((group, index) for group in self.groups for index in range(group.replicas))

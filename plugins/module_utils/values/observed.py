"""The observed state of a job's objects, reduced to what a plan needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote as EventNote
from ansible_collections.dljob.operator.plugins.module_utils.values.reports import Reports
from ansible_collections.dljob.operator.plugins.module_utils.values.usage import PodUses


@dataclass(frozen=True, slots=True)
class Termination:
    """A container's ``terminated`` state. ``reason`` is set by the kubelet (Error, OOMKilled)."""

    code: int
    reason: str
    message: str
    finished_at: str
    started_at: str = ""


@dataclass(frozen=True, slots=True)
class ContainerFailure:
    """A container, or init container, that is terminated with an exit code other than 0."""

    name: str
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """How a container of a pod ended, with another exit code than 0. The pod may be gone."""

    pod: str
    container: str
    ended: Termination
    device: str = ""
    """As :attr:`PodState.device`."""


@dataclass(frozen=True, slots=True)
class BatchJobRef:
    """A batch/v1 Job that the job owns and that runs a replica."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PodState:
    """A pod that the job owns, or a replica that a batch/v1 Job runs, with that Job's newest pod.

    Of the latter the Job has the phase, the deletion and the last word on failures: it restarts its pods by itself.
    """

    name: str
    """Of the Job, as long as it has no pod; so is ``uid``. Messages use :attr:`subject`."""
    uid: str
    type: str
    """Replica type in lower case, the value of the label."""
    index: int
    attempt: int
    phase: str
    created: str
    """RFC 3339."""
    deleting: str
    """The deletionTimestamp (RFC 3339), "" where the pod, or the Job that runs the replica, is not being deleted."""
    spec_hash: str
    shared: str
    """Name of the ConfigMap that holds a part of its environment, "" where it has none."""
    node: str
    restarts: int
    """Restart count of the framework's container (restarts in place, by the kubelet)."""
    restart_policy: str
    """Of the framework's container: its own, or else the pod's."""
    container: str
    """The container that ``ended`` and ``terminated`` describe: the framework's, or one that kept it from starting."""
    ended: Termination | None
    """The last termination of the container, even if it was restarted since."""
    terminated: bool
    """Whether the container is terminated now."""
    is_ready: bool
    """Whether the kubelet reports the pod as ready."""
    is_active: bool
    """Whether a container of the pod runs or will run (again), so that the pod still uses resources."""
    reason: str
    message: str
    waiting: str
    """Why its container cannot start (ImagePullBackOff ...), "" where it can."""
    pending_since: str
    """Since when none of its containers has run (RFC 3339): the pod's creation or, by the clock of its node, the end of
    its last init container. "" where it has started, and while an init container runs."""
    disrupted: bool
    """Whether the cluster ended the pod (preemption, eviction, node loss), not the program."""
    conditions: tuple[tuple[str, str], ...] = ()
    """The type and the status of each condition."""
    failed_containers: tuple[ContainerFailure, ...] = ()
    """Containers first, then init containers."""
    terminating: str = ""
    """The deletionTimestamp of the pod itself (RFC 3339), the end of its grace period; "" while it is not deleted.
    That of a Job is the time of the request, and a Job goes on while a node, or a user, ends its pod."""
    evicted_by_taint: bool = False
    """Whether a taint of its node evicted it: the node is lost, or somebody clears it."""
    grace_period: float = 0.0
    """Seconds between the request to delete it and ``terminating``."""
    finalizers: tuple[str, ...] = ()
    """What others have to do before it goes, once its node has ended it."""
    ended_elsewhere: bool = False
    """Whether ``ended`` is that of another container than the framework's, which then has not run."""
    has_run: bool = False
    """Whether one of its containers, init containers aside, runs or has run."""
    unstarted_since: str = ""
    """Since when its node should have started its containers (RFC 3339), where neither they nor the pod say why it has
    not; "" otherwise."""
    batch_job: BatchJobRef | None = None
    """The Job that runs the replica; ``None`` where the job owns the pod itself."""
    group: str = ""
    """The group of replicas that the pod is in, "" for none."""
    services: str = ""
    """per-replica where its environment may have the names of Services for each replica."""
    pod_groups: tuple[str, ...] = ()
    """The PodGroups that gang schedulers count the pod to, as ``<owned kind>/<name>``."""
    last_failure: ContainerEnd | None = None
    """The last failure of the framework's container, also if it has been restarted since, without ends that a deletion
    or a disruption of the pod has caused. Of a replica that a Job runs, that of any of the Job's pods."""
    crash_loop: ContainerEnd | None = None
    """The failure after which the kubelet starts the framework's container, or an init container, again, while it
    waits to do so."""
    restarts_by_job: int = 0
    """Of a replica that a Job runs: how often its container or its pod was started again."""
    unseen_end: str = ""
    """Since when a Job that runs the replica has failed whose pod shows no failure and runs (RFC 3339): the watch of
    the pods is behind that of the Jobs. "" otherwise."""
    restarted_by_rule: bool = False
    """Whether the kubelet answers ``ended``, or has answered it, by restartPolicyRules of a container: the program has
    failed, and the replica has not."""
    device: str = ""
    """A clause about its unhealthy devices, such as GPUs, "" where it has none."""
    lacks_pod_since: str = ""
    """Since when the Job that runs the replica has had no pod that runs or will run (RFC 3339): its creation, or the
    end of its last pod. "" where it has one, or has ended."""

    ended_early: bool = False
    """Whether its exit with 0 counts as a loss: :mod:`..logic.plan.policies.early_ends`."""

    @property
    def has_pod(self) -> bool:
        """Whether there is a pod: a Job may not have created that of its replica yet, or has deleted it."""
        return self.batch_job is None or self.uid != self.batch_job.uid

    @property
    def pod_name(self) -> str:
        """The name of the pod, "" where there is none."""
        return self.name if self.has_pod else ""

    @property
    def display_name(self) -> str:
        """Its name for messages, with its group: pods of different groups have different templates."""
        return f"{self.name} (group {self.group})" if self.group else self.name

    @property
    def subject(self) -> str:
        """What a message is about: the pod, or the Job that has none."""
        return f"pod {self.display_name}" if self.has_pod else f"batch Job {self.display_name}"


@dataclass(frozen=True, slots=True)
class OwnedObject:
    """An existing owned object. ``hash`` is the value of its spec-hash annotation, "" where it has none."""

    uid: str
    hash: str = ""
    lifetime: str = ""
    """pods or job, "" where no hook returned it."""
    services: str = ""
    """per-replica where it is a Service of a job with one Service a replica."""
    denied: str = ""
    """Why the API server denies the pods of a Deployment, "" where it does not."""
    deleting: str = ""
    """The deletionTimestamp (RFC 3339), "" where it is not being deleted."""
    gang: str = ""
    """Of a PodGroup of Kubernetes itself, what its pods have in common: :mod:`..logic.objects.native_gang`."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The observed state: the objects that a job owns."""

    pods: tuple[PodState, ...] = ()
    services: Mapping[str, str] = field(default_factory=dict)
    """Service name to uid."""
    owned_objects: Mapping[tuple[str, str], OwnedObject] = field(default_factory=dict)
    """All owned objects except pods, by the registry's name of their kind and their own."""
    remaining: tuple[PodState, ...] = ()
    """Pods of the job that have not ended and whose batch Job is gone. The garbage collector is about to delete them,
    and until then no pod and no batch Job is created."""
    foreign: tuple[PodState, ...] = ()
    """The pods of the job that another operator has created and that this one has not adopted. They have no labels of
    this operator, and only a plan that presumes ``PODS_ARE_KNOWN`` has the reconcile read them."""
    reports: Reports | None = None
    """When its programs have reported their progress; ``None`` where no engine takes reports, or the job needs none."""
    uses: Callable[[], PodUses] | None = field(default=None, compare=False)
    """What its pods hold and do, computed for a status that is written; ``None`` where the operator keeps no accounts
    of it."""

    def pods_of(self, type_: str) -> list[PodState]:
        folded = type_.lower()
        return [p for p in self.pods if p.type == folded]

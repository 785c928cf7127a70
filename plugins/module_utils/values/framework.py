"""The declaration of a framework: the values that a role declares and the reconcile reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import (
    MAX_REPLICAS,
    SERVICES_PER_JOB,
    TERMINATION_MESSAGE_POLICIES,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import RESTART_POLICIES

Cluster = Mapping[str, Any]
"""A job's cluster spec as plain data (:mod:`..logic.framework.cluster_spec`), the argument of every hook."""

Environment = Callable[[Cluster], Mapping[str, Any]]
"""Maps the cluster spec for a replica to the environment variables of its process: name to text, or to a mapping that
is the variable's ``valueFrom``."""

Validate = Callable[[Cluster], Iterable[str]]
"""Maps a job's cluster spec to the job's errors, one sentence each, with the field and the fix."""

PodDefaults = Callable[[Cluster], Mapping[str, Any]]
"""Maps the cluster spec for a replica to defaults of its PodTemplateSpec; the job's own template takes precedence,
except in labels."""

Objects = Callable[[Cluster], Iterable[Mapping[str, Any]]]
"""Maps a job's cluster spec to the manifests of the objects that the job owns besides its pods and their Services."""

LAYOUT_LIST = "list"
LAYOUT_MAP = "map"
LAYOUT_SINGLE = "single"
LAYOUTS = (LAYOUT_LIST, LAYOUT_MAP, LAYOUT_SINGLE)

STATUS_V1ALPHA1 = "v1alpha1"
STATUS_V1 = "v1"

NAMES_RUNTIME_ID = "runtime-id"
NAMES_JOB = "job"

SUCCEEDS_BY_TARGET = "target"
SUCCEEDS_BY_ALL = "all"
SUCCEEDS_BY_ANY = "any"

AFTER_CREATED = "created"
AFTER_READY = "ready"
AFTER_RUNNING = "running"
AFTER_COMPLETED = "completed"

SERVICE_RUNTIME_ID = "runtime-id"
SERVICE_JOB = "job"

FIRST_CONTAINER = "{first}"
"""A framework's ``container`` where the first container of a template runs it, whatever its name."""

HOST_PORT_DEFAULT = "default"
HOST_PORT_JOB = "job"

FAILS_BY_TARGET = "target"
FAILS_BY_ANY = "any"


@dataclass(frozen=True, slots=True)
class ReplicaType:
    """A replica type in its canonical (v1) spelling, with the bounds of its number of replicas."""

    name: str
    minimum: int = 0
    maximum: int | None = None
    expected_maximum: int | None = None
    """The number above which programs of the framework may refuse to run; the job is accepted nevertheless."""
    long_running: bool = False
    """Whether its processes run until they are terminated, as parameter servers do."""
    coordinates: bool = False
    """Whether its processes only coordinate those that compute, as ps-lite's scheduler and servers do: they have no
    result of their own, and their exit with 0 says nothing of the others' results."""
    hides_losses: bool = False
    """Whether its processes may exit with 0 because a long-running replica was lost, as mpirun of Open MPI 5 does."""
    starts_after: Mapping[str, str] = field(default_factory=dict)
    """By type, the state that all its replicas must have reached before the first pod of this type is created: ready or
    completed."""
    starts_after_if: Mapping[str, str] = field(default_factory=dict)
    """Fields of the spec, and the value that each must have for ``starts_after`` to apply; empty: it always does."""
    indexed: bool = True
    """Whether the names of its pods end with the replica's index; else it has at most one replica, ``<job>-<type>``."""
    resizable: bool = False
    """Whether a change of its number restarts no other replica, because the others learn of it while they run."""

    def starts_after_with(self, spec: Mapping[str, Any]) -> Mapping[str, str]:
        """``starts_after`` in a job with that spec; empty where it does not apply."""
        applies = all(spec.get(field) == value for field, value in self.starts_after_if.items())
        return self.starts_after if applies else {}


@dataclass(frozen=True, slots=True)
class ExitCodes:
    """The retryable exit codes of a container.

    All other nonzero codes are permanent: a retry after an unknown code would hide errors.
    """

    retryable: frozenset[int]
    oom_retryable: bool = False


@dataclass(frozen=True, slots=True)
class Elastic:
    """How a job asks for replicas of one type that join, leave and fail independently of the others."""

    field: str
    """Field of the spec: true or false, or a map where ``when_any`` is not empty."""
    type: str
    """The replica type that becomes elastic."""
    when_any: tuple[str, ...] = ()
    """Settings of that map; the type is elastic where the map has at least one of them."""
    succeeds_by: str = ""
    """any: where the field is given and that type is the success target, the job succeeds with its first replica;
    "": the field does not change when the job succeeds."""


@dataclass(frozen=True, slots=True)
class ApiFlavor:
    """An API flavor: one layout of a framework's jobs, with its defaults, pod names and status format."""

    groups: tuple[str, ...]
    """API groups that use it."""
    replicas_layout: str
    """list: ``replicas_field`` holds a list (the spec itself where the field is ""); map: type to replica spec;
    single: one replica spec, whose type is the flavor's only one."""
    replicas_fields: tuple[str, ...]
    """Spellings of the field; messages use the first. ("",) means that the spec itself is the list."""
    version: str = ""
    """The API version whose jobs have it, where another flavor of the same kind has the same field of replicas; "" for
    all versions. See :func:`..logic.parse.flavors.flavor_of`."""
    starts_in_order: tuple[str, ...] = ()
    """Types whose ``starts_after`` applies to every job of the flavor, whatever their ``starts_after_if`` says."""
    waits_in_pod: tuple[str, ...] = ()
    """Types whose pods themselves wait for those in ``starts_after``. With a gang scheduler the first pod of such a
    type is created as soon as the others exist, so that the scheduler starts all of them together."""
    batch_jobs: tuple[str, ...] = ()
    """Types whose only replica a batch/v1 Job, ``<job>-<type>``, runs and restarts. Clients look for that Job."""
    type_field: str = "replicaType"
    types: tuple[str, ...] = ()
    """Replica types of this flavor; all types of the framework where empty."""
    required: tuple[str, ...] = ()
    """Types of which a job needs at least one replica, besides those with a minimum."""
    port_fields: tuple[str, ...] = ()
    default_port: int = 2222
    host_port: str = HOST_PORT_DEFAULT
    """The port with hostNetwork where the job names none: the default one, or one of the job's own
    (:mod:`..logic.reading.host_port`)."""
    port_name: str = ""
    """Name of the containerPort that the operator adds where the template has none of that name; "" adds none."""
    names: str = NAMES_RUNTIME_ID
    """How pods are named: runtime-id ``<type>-<runtime id>-<index>-<hash>`` or job ``<job>-<type>-<index>``."""
    service: str = SERVICE_RUNTIME_ID
    """How the headless Service is named: runtime-id ``<kind>-<runtime id>`` or job ``<job>``, which then is the job's
    only Service."""
    status: str = STATUS_V1ALPHA1
    status_type_field: str = "replica_type"
    """Key of the replica type in a v1alpha1 replica status."""
    fails_by: str = FAILS_BY_TARGET
    """target: only the success target's exit fails the job, and all other replicas restart; any: each replica's restart
    policy decides whether its exit fails the job."""
    default_restart_policy: str = "OnFailure"
    default_restart_policies: Mapping[str, str] = field(default_factory=dict)
    """By type, the default restart policy of types that have another one."""
    restart_policies: tuple[str, ...] = RESTART_POLICIES
    """The restart policies that a replica may have."""
    default_clean_pod_policy: str = "Running"
    running_keeps: tuple[str, ...] = ()
    """Kinds of the objects beside the pods, by the registry's names, that cleanPodPolicy Running keeps until the job is
    deleted."""
    exit_codes: ExitCodes = ExitCodes(frozenset(range(128, 256)))
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the pods. The values may contain the placeholders of :mod:`..logic.framework.cluster_spec`. The Service
    of a replica has them too, and the job's other objects those that are the same for all replicas."""
    template_optional: tuple[str, ...] = ()
    """Types whose template may lack the framework's container, because the pod hook supplies it."""
    replica_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By type, the fields of its replica spec that are passed to the hooks, unvalidated."""
    runtime_id_fields: tuple[str, ...] = ("RuntimeId",)
    """Spellings of the spec's runtime id; messages use the first."""
    spec_fields: tuple[str, ...] = ()
    """Fields of the spec that are passed to the hooks, unvalidated. The processes' environment may depend on them, so a
    change restarts the pods."""
    object_fields: tuple[str, ...] = ()
    """Fields of the spec that are passed to the hooks too, and on which only the ``objects`` hook and the defaults of
    templates depend: a change restarts no pod by itself."""
    success_policies: Mapping[str, str] = field(default_factory=dict)
    """Maps each value of the spec's successPolicy to the replica type of which then all replicas must succeed."""
    succeeds_together: tuple[str, ...] = ()
    """Types of which all replicas must succeed where the job lacks the types before them in the framework's
    ``success_target``, and names no other replica."""
    elastic: Elastic | None = None
    """Which replicas may be elastic; ``None`` where none may."""
    managers: tuple[str, ...] = ("kubeflow.org/training-operator",)
    """Names in runPolicy.managedBy of the operator that this one replaces."""
    environment_in: str = "named"
    """named: only the framework's container gets the environment; all: every container of the pod."""

    def starts_after(self, type_: ReplicaType, spec: Mapping[str, Any], in_gang: bool) -> Mapping[str, str]:
        """The start order of a type in a job with that spec, whose pods a gang scheduler starts if ``in_gang``.

        Empty where there is none.
        """
        after = type_.starts_after if type_.name in self.starts_in_order else type_.starts_after_with(spec)
        return dict.fromkeys(after, AFTER_CREATED) if in_gang and type_.name in self.waits_in_pod else after

    def default_policy_of(self, type_: str) -> str:
        """The restart policy of replicas of a type whose job gives none."""
        return self.default_restart_policies.get(type_, self.default_restart_policy)


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a framework computes instead of declaring it. Each hook is a pure function of a cluster spec."""

    environment: Environment
    validate: Validate = lambda cluster: ()
    """The framework's own validation, in addition to what all frameworks have in common."""
    pod: PodDefaults | None = None
    objects: Objects | None = None


@dataclass(frozen=True, slots=True)
class Framework:
    """A deep-learning framework as its role declares it. Built by :func:`..logic.framework.loader.framework`."""

    name: str
    kinds: tuple[str, ...]
    container: str
    """Name of the container that runs the framework, or ``FIRST_CONTAINER``."""
    replica_types: tuple[ReplicaType, ...]
    success_target: tuple[str, ...]
    """Types whose replica 0 decides the outcome; the first of them that the job has is used."""
    succeeds_by: str
    """target: the job succeeds when the success target's container exits with 0; all: when all replicas of its type
    have succeeded."""
    modes: Mapping[str, str]
    """Maps values of spec.jobMode to ``local`` or ``dist``."""
    flavors: tuple[ApiFlavor, ...]
    hooks: Hooks
    owns: tuple[str, ...] = ()
    """The kinds of objects that the ``objects`` hook may return, beyond those of every job."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts of the role's files, by name; the hooks get them in the cluster spec."""
    tuning_variables: frozenset[str] = frozenset()
    """The variables of the environment that a container may replace by its own. The others say which process it is and
    where the others are."""
    operator_files: Mapping[str, str] = field(default_factory=dict)
    """By key of a ConfigMap's data, the setting of the operator's ConfigMap that may name a file to replace it."""

    max_replicas: int = MAX_REPLICAS
    """The administrator's limit for the replicas of one job, of all types together."""
    force_delete_after_seconds: int | None = None
    """The administrator's default for the field of that name in a job's runPolicy; ``None``: no deletion by force."""
    termination_message_policy: str = TERMINATION_MESSAGE_POLICIES[0]
    """The administrator's choice for the containers whose template has none."""

    services: str = SERVICES_PER_JOB
    """The administrator's choice for jobs that have no annotation for it: one of SERVICES."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the administrator sets and the hooks get, by name."""

    def container_of(self, names: Sequence[str]) -> str:
        """Which of a template's containers runs the framework; it may lack it."""
        return self.container if self.container != FIRST_CONTAINER else next(iter(names), "")

    def type_named(self, spelling: str) -> ReplicaType | None:
        """The replica type of that name, in any case; ``None`` where the framework has no such type."""
        folded = spelling.casefold()
        return next((t for t in self.replica_types if t.name.casefold() == folded), None)

"""What makes a framework that framework: the values which a role declares and the common reconcile reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Environment = Callable[[Mapping[str, Any]], Mapping[str, str]]
"""From a task's cluster (see :func:`..logic.cluster.build_cluster_spec`) to the variables its process reads."""

Validation = Callable[[Mapping[str, Any]], Iterable[str]]
"""From a job's cluster, seen from no task, to its errors: a sentence each, with the field and the fix."""

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

FAILS_BY_TARGET = "target"
FAILS_BY_ANY = "any"


@dataclass(frozen=True, slots=True)
class ReplicaType:
    """A role that a process plays, by its canonical (v1) spelling, with the number of replicas that make sense."""

    name: str
    minimum: int = 0
    maximum: int | None = None
    long_running: bool = False
    """Its processes go on until somebody ends them."""


@dataclass(frozen=True, slots=True)
class ExitCodes:
    """Which exit codes of a container end the job (permanent) and which are worth another try (retryable).

    Codes in neither set are permanent: retrying what nobody vouches for hides errors.
    """

    retryable: frozenset[int]
    oom_retryable: bool = False


@dataclass(frozen=True, slots=True)
class DefaultProgram:
    """What replicas of a type run where the job gives them no container of the framework's: a program of the role's."""

    image: str
    config_map: str
    """Name of the ConfigMap that carries the program; may name {job} and {runtime_id}."""
    files: Mapping[str, str]
    """What it holds: file name to text."""
    mount_path: str
    volume: str
    command: tuple[str, ...] = ()
    """In the placeholders of :mod:`..logic.placeholders`, and {cluster_spec}."""
    image_field: str = ""
    """Field of the job's spec that names another image."""
    flag: str = ""
    """Field of a replica spec that asks for the program even though there is a container."""
    file_setting: str = ""
    """Setting of the operator's ConfigMap that may name a file to be taken for the program's only one."""


@dataclass(frozen=True, slots=True)
class Elastic:
    """How a job asks for replicas of one type that join, leave and fail independently of the others."""

    field: str
    """Field of the spec: true or false, or a map where ``when_any`` is not empty."""
    type: str
    """The replica type that becomes elastic."""
    when_any: tuple[str, ...] = ()
    """Settings in that map of which one at least must be given."""
    succeeds_by: str = ""
    """any: where the field is given and that type is the success target, the first of its replicas that succeeds ends
    the job; "": no difference."""


@dataclass(frozen=True, slots=True)
class ApiFlavor:
    """One way of writing a job of this framework: where things stand in its spec, and what its users expect back."""

    groups: tuple[str, ...]
    """API groups that use it."""
    replicas_layout: str
    """list: ``replicas_field`` holds a list (the spec itself where the field is ""); map: type to replica spec;
    single: one replica spec, whose type is the framework's only one."""
    replicas_fields: tuple[str, ...]
    """Spellings of the field, the first is the one that messages name; ("",) means that the spec itself is the list."""
    type_field: str = "replicaType"
    types: tuple[str, ...] = ()
    """Replica types that it knows; all of the framework's where empty."""
    required: tuple[str, ...] = ()
    """Types of which a job needs a replica, besides those with a minimum."""
    port_fields: tuple[str, ...] = ()
    default_port: int = 2222
    port_name: str = ""
    """Name of the containerPort that is added where the template has none of that name; "" adds none."""
    names: str = NAMES_RUNTIME_ID
    """How pods are named: runtime-id ``<type>-<runtime id>-<index>-<hash>`` or job ``<job>-<type>-<index>``."""
    status: str = STATUS_V1ALPHA1
    status_type_field: str = "replica_type"
    """The key that names the type in a v1alpha1 replica status."""
    fails_by: str = FAILS_BY_TARGET
    """target: only the success target's exit fails the job, all others restart; any: each replica by its restart
    policy."""
    default_restart_policy: str = "OnFailure"
    default_clean_pod_policy: str = "Running"
    exit_codes: ExitCodes = ExitCodes(frozenset(range(128, 256)))
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the pods, values in the placeholders of :mod:`..logic.placeholders`."""
    default_program: Mapping[str, DefaultProgram] = field(default_factory=dict)
    """By type: what its replicas run without a container of the framework's. Other types need one."""
    runtime_id_fields: tuple[str, ...] = ("RuntimeId",)
    """Spellings of the spec's runtime id, the first is the one that messages name."""
    spec_fields: tuple[str, ...] = ()
    """Fields of the spec that the framework's own filters get to see, as the user wrote them."""
    success_policies: Mapping[str, str] = field(default_factory=dict)
    """Values of the spec's successPolicy, each with the type all of whose replicas must then succeed."""
    elastic: Elastic | None = None
    """Which replicas may join, leave and fail without the others; ``None`` where none may."""
    environment_in: str = "named"
    """named: only the framework's container gets the environment; all: every container of the pod."""


@dataclass(frozen=True, slots=True)
class TensorBoardSpec:
    """A web page about a job, which the job may ask for: a Deployment and a Service that live as long as the job."""

    spec_field: str
    """The field of the job's spec that asks for it, with ``logDir`` and what is mounted to reach that."""
    name: str
    """Of Deployment and Service; may name {job} and {runtime_id}."""
    image: str
    command: tuple[str, ...]
    """May name {log_dir} besides, and {program}."""
    port: int
    """Where the page is served; the Service offers it at 80."""
    program: str = ""
    """The text of a file of the role's, for an interpreter's command line."""
    image_field: str = ""
    """Field of the job's spec that names another image."""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Framework:
    """A deep-learning framework as its role declares it. Built by :func:`..logic.framework_loader.framework`."""

    name: str
    kinds: tuple[str, ...]
    container: str
    replica_types: tuple[ReplicaType, ...]
    success_target: tuple[str, ...]
    """Types whose replica 0 decides the outcome; the first that the job has does."""
    succeeds_by: str
    """target: when the success target's container exits with 0; all: when every replica of its type has."""
    modes: Mapping[str, str]
    """The user's spelling of spec.jobMode to ``local`` or ``dist``."""
    flavors: tuple[ApiFlavor, ...]
    environment: Environment
    tensorboard: TensorBoardSpec | None = None
    validation: Validation = lambda cluster: ()
    """What must hold of a job beyond what all frameworks have in common."""

    def type_named(self, spelling: str) -> ReplicaType | None:
        """The replica type of that name, whatever its case; ``None`` where the framework has none such."""
        folded = spelling.casefold()
        return next((t for t in self.replica_types if t.name.casefold() == folded), None)

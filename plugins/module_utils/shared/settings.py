"""The settings of the operator that its Ansible runs read too: what the administrator sets for all jobs.

Each is a row that names its option, its environment variable and its value of the chart. ``dljob_operator.options``
has the rows of the engine alone, makes options of all rows, and passes the settings of this module to the runs as
variables. There the action plugin reads them. Tests check the chart against the rows, and docs/reference/settings.md is
generated from them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import gang_scheduler
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import (
    KUBECTL_DELIVERY_IMAGE,
    MAX_REPLICAS,
    NON_ROOT_USER,
    SERVICES,
    TERMINATION_MESSAGE_POLICIES,
)

Value = TypeVar("Value", covariant=True)

_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True)
class OneOf:
    """A reader that allows ``names``, and "" where ``otherwise`` says when to leave it empty."""

    names: tuple[str, ...]
    otherwise: str = ""

    def __call__(self, text: str) -> str:
        if text in self.names or (self.otherwise and not text):
            return text
        wrong = {1: "not ", 2: "neither "}.get(len(self.names), "none of ")
        allowed = (" nor " if len(self.names) == 2 else ", ").join(self.names)
        raise ValueError(f"{text!r} is {wrong}{allowed}" + (f"; {self.otherwise}" if self.otherwise else ""))


@dataclass(frozen=True)
class Setting(Generic[Value]):
    """One setting. Where neither an option nor a variable gives a text, it has its default."""

    option: str
    """The command-line option, "" where the command line has none."""
    read: Callable[[str], Value]
    """Returns the value of a text. Raises ValueError with a sentence that begins with the text. ``bool`` stands for an
    option without a text."""
    description: str
    """For ``--help`` and the reference, without the default."""
    variable: str = ""
    """The environment variable, "" for none. An empty one counts as one that is not set."""
    default: str = ""
    unset: str = ""
    """What an empty default means. "" in both says nothing of a default."""
    metavar: str = "NAME"
    chart: str = ""
    """Where the chart's values have it, such as ``accelerators.namespace``."""
    page: str = ""
    """The page of docs/ that says more."""

    @property
    def is_flag(self) -> bool:
        return self.read is bool

    @property
    def choices(self) -> tuple[str, ...]:
        """All texts that are allowed besides an empty one; () where these are not so few."""
        return self.read.names if isinstance(self.read, OneOf) else ()

    def text(self, environ: Mapping[str, str]) -> str:
        """The text of the variable in ``environ``, else the default."""
        return (environ.get(self.variable) if self.variable else "") or self.default

    def of(self, environ: Mapping[str, str]) -> Value:
        """The value of ``text``. Raises ValueError, whose sentence begins with the variable."""
        try:
            return self.read(self.text(environ))
        except ValueError as error:
            raise ValueError(f"{self.variable}: {error}") from error


def positive(text: str) -> int:
    """A number of 1 or more."""
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{text!r} is not a number of 1 or more")
    return int(text)


def _namespace(text: str) -> str:
    """The name of a namespace, or "" for none."""
    name = text.strip()
    if name and not _NAMESPACE.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a namespace")
    return name


def _seconds(text: str) -> int | None:
    """A number of seconds, None for ""."""
    if text and not text.isdecimal():
        raise ValueError(f"{text!r} is not a number of seconds; leave it empty for never")
    return int(text) if text else None


def _image(text: str) -> str:
    """The name of a container image."""
    if not text or any(character.isspace() for character in text):
        raise ValueError(f"{text!r} is no name of an image")
    return text


def _user_id(text: str) -> int | None:
    """The id of a user other than root, None for "none"."""
    if text == "none":
        return None
    if not text.isdecimal() or not 0 < int(text) < 2**31:
        raise ValueError(f"{text!r} is neither none nor a user id from 1 to {2**31 - 1}")
    return int(text)


def _cluster_domain(text: str) -> str:
    """A DNS domain, or "" for none."""
    if text and not _DOMAIN.fullmatch(text):
        raise ValueError(f"{text!r} is no DNS domain, such as cluster.local")
    return text


def _folders(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(os.pathsep)))


CLOUDS = ("gke", "azure")
CLOUD = Setting(
    "--cloud",
    OneOf(CLOUDS, "leave it empty on other clouds"),
    "gke or azure: mount GPU drivers as this cloud needs it if no ConfigMap tf-job-operator-config does",
    variable="DLJOB_CLOUD",
    unset="none",
    chart="cloud",
    page="semantics/accelerators.md",
)
CONFIG_NAMESPACE = Setting(
    "--config-namespace",
    _namespace,
    "if the operator's own namespace has no ConfigMap tf-job-operator-config, read it from this one, such as default; "
    "who can write it there decides which host paths pods mount",
    variable="DLJOB_CONFIG_NAMESPACE",
    unset="none",
    chart="accelerators.namespace",
    page="semantics/accelerators.md",
)
MAX_REPLICAS_PER_JOB = Setting(
    "--max-replicas-per-job",
    positive,
    "refuse jobs with more replicas",
    variable="DLJOB_MAX_REPLICAS_PER_JOB",
    default=str(MAX_REPLICAS),
    metavar="N",
    page="semantics/many-replicas.md",
)
FORCE_DELETE_AFTER_SECONDS = Setting(
    "--force-delete-after-seconds",
    _seconds,
    "default of runPolicy.forceDeleteAfterSeconds: delete a pod by force this long after its grace period if its node "
    "is lost",
    variable="DLJOB_FORCE_DELETE_AFTER_SECONDS",
    unset="never",
    metavar="N",
    chart="forceDeleteAfterSeconds",
    page="semantics/lost-nodes.md",
)
TERMINATION_MESSAGE_POLICY = Setting(
    "--termination-message-policy",
    OneOf(TERMINATION_MESSAGE_POLICIES),
    "of containers whose template has none; FallbackToLogsOnError quotes the log of a failed container in the status "
    "of its pod and job, which needs no permission to read logs; File does not",
    variable="DLJOB_TERMINATION_MESSAGE_POLICY",
    default=TERMINATION_MESSAGE_POLICIES[0],
    metavar="POLICY",
    chart="terminationMessagePolicy",
    page="semantics/status.md",
)
SERVICES_SCOPE = Setting(
    "--services",
    OneOf(SERVICES),
    "of new jobs without the annotation dljob.operator/services: per-job, or per-replica for one Service a replica, as "
    "training-operator v1 creates them; per-replica doubles the objects of a job",
    variable="DLJOB_SERVICES",
    default=SERVICES[0],
    metavar="SCOPE",
    chart="services",
    page="compatibility.md#names-of-replicas",
)
GANG_SCHEDULER_NAME = Setting(
    "--gang-scheduler-name",
    gang_scheduler,
    "start the pods of each job together or not at all: volcano, kubernetes (1.37 or newer with the feature gate "
    "GenericWorkload and the API scheduling.k8s.io/v1beta1, both off by default), the name of a scheduler with the "
    "coscheduling plugin, or scheduler-plugins for whatever scheduler the pods name; needs its PodGroups",
    variable="DLJOB_GANG_SCHEDULER_NAME",
    unset="none",
    chart="gangSchedulerName",
    page="semantics/gang-scheduling.md",
)
KUEUE = Setting(
    "--kueue",
    OneOf(("workloads",), "leave it empty for Kueue's own integration"),
    "queue jobs of all kinds with the label kueue.x-k8s.io/queue-name: workloads, by Workloads that the operator "
    "creates for Kueue 0.16 or newer. Kueue's own integration of the kinds must be off",
    variable="DLJOB_KUEUE",
    unset="Kueue's own integration",
    metavar="WAY",
    chart="kueue",
    page="semantics/kueue.md",
)
USAGE = Setting(
    "--usage",
    OneOf(("off", "on")),
    "on: keep in the status of each job what it has used: seconds queued, starting, running and restarting, seconds of "
    "GPUs, cores and memory, and what interruptions have cost",
    variable="DLJOB_USAGE",
    default="off",
    metavar="STATE",
    chart="usage",
    page="semantics/usage.md",
)
MPI_KUBECTL_DELIVERY_IMAGE = Setting(
    "--mpi-kubectl-delivery-image",
    _image,
    "init container that brings kubectl to the launcher of an MPIJob v1",
    variable="DLJOB_MPI_KUBECTL_DELIVERY_IMAGE",
    default=KUBECTL_DELIVERY_IMAGE,
    metavar="IMAGE",
    chart="mpiKubectlDeliveryImage",
    page="compatibility.md#mpijob-v1",
)
NON_ROOT_USER_ID = Setting(
    "--non-root-user-id",
    _user_id,
    "user of a container that the operator adds where the job's template forbids root and names no user; none: the "
    "cluster assigns it, as OpenShift does",
    variable="DLJOB_NON_ROOT_USER_ID",
    default=str(NON_ROOT_USER),
    metavar="ID",
    chart="nonRootUserId",
    page="semantics/pod-security.md",
)
CLUSTER_DOMAIN = Setting(
    "",
    _cluster_domain,
    "the cluster's DNS domain, under training-operator's name for it; with one Service per replica it also ends the "
    "names in TF_CONFIG",
    variable="CUSTOM_CLUSTER_DOMAIN",
    unset="cluster.local",
)
FRAMEWORKS = Setting(
    "",
    _folders,
    "folders of roles, separated by colons, whose frameworks DLJobs may name besides those of this collection",
    variable="DLJOB_FRAMEWORKS",
    unset="none",
)

OPTIONS: tuple[Setting[object], ...] = (
    CLOUD,
    CONFIG_NAMESPACE,
    MAX_REPLICAS_PER_JOB,
    FORCE_DELETE_AFTER_SECONDS,
    TERMINATION_MESSAGE_POLICY,
    SERVICES_SCOPE,
    GANG_SCHEDULER_NAME,
    KUEUE,
    USAGE,
    MPI_KUBECTL_DELIVERY_IMAGE,
    NON_ROOT_USER_ID,
)
"""Those that an engine passes to its runs."""
VARIABLES: tuple[Setting[object], ...] = (CLUSTER_DOMAIN, FRAMEWORKS)
"""Those that the runs take from the environment of the engine as it is."""

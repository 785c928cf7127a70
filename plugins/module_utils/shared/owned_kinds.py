"""The registry of the kinds that a job may own: how the operator watches, reads, creates, compares and deletes each.

The reconcile, the engines and the generator of RBAC rules use this one list. A framework names the kinds that its hooks
create beyond those of every job (``owns``). Only these are watched and permitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import (
    NATIVE_GROUP,
    PLUGINS_GROUP,
    POD_GROUP,
    SCHEDULING_GROUP,
    VOLCANO_GROUP,
)

REPLACE = "replace"
"""An object whose content differs is replaced in place, by PUT."""
MERGE = "merge"
"""The same, but what others have set in the object stays: of the spec only :attr:`OwnedKind.fields` are replaced."""
FOREGROUND, BACKGROUND = "Foreground", "Background"
"""Whether a deleted object stays until what it owns is gone."""
NEVER = "never"
"""An existing object is left as it is, because Kubernetes or its use allows no change."""

PERMISSIONS, EXEC = "permissions", "exec-permissions"
"""The optional components of a framework: what it needs besides the rights of every operator, and what it needs to run
commands in pods."""

_EXISTENCE: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class OwnedKind:
    """A kind of object that a job may own."""

    kind: str
    api_version: str
    plural: str
    why: str
    """What the operator needs it for; the comment of its RBAC rule."""
    update: str = REPLACE
    cached: Mapping[str, Any] | None = None
    """The fields, besides the identity, that an engine's cache keeps: name to ``True`` (all of it) or to the fields
    below it, of each element where it is a list. ``None``: no engine watches the kind."""
    propagation: str = BACKGROUND
    """How one is deleted. Foreground where another object of its name could otherwise have pods beside the old ones."""
    of_every_job: bool = False
    """Whether jobs of every framework may own one, without a declaration."""
    component: str = ""
    """With this end, the name of the optional component of a framework that has the kind's RBAC rule: a platform team
    grants the permission only to an operator that needs it. "" where every operator with the framework has it."""
    is_route: bool = False
    """Whether only OpenShift serves it, so that nothing watches it and ``api/routes.py`` reads and writes it."""
    fields: tuple[str, ...] = ()
    """The fields of the spec that the operator sets, where it merges objects."""
    remedy: str = ""
    """What an administrator does about a cluster that lacks the kind, for messages; "" where every cluster serves it.
    Only the reconcile creates such objects, where the administrator has set a gang scheduler or a queue; no framework
    declares them."""

    @property
    def name(self) -> str:
        """Its name in the registry: the kind, with the group where kinds of several groups have that name."""
        return f"{self.kind}.{self.group}" if self.kind == POD_GROUP else self.kind

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def prefix(self) -> str:
        """The API path below which its objects are: ``/api/v1`` or ``/apis/<group>/<version>``."""
        return f"/{'apis' if self.group else 'api'}/{self.api_version}"

    @property
    def watched(self) -> bool:
        """Whether engines keep these objects in their cache, so that a change of one triggers a reconcile."""
        return self.cached is not None


_POD_FIELDS = {
    "spec": {
        **dict.fromkeys(("nodeName", "restartPolicy", SCHEDULING_GROUP), True),
        "containers": dict.fromkeys(("name", "restartPolicy", "restartPolicyRules"), True),
    },
    "status": {
        **dict.fromkeys(("phase", "reason", "message", "podIP", "startTime"), True),
        **dict.fromkeys(("conditions", "containerStatuses", "initContainerStatuses"), True),
    },
}

_POD_REQUESTS = {
    "spec": {
        **dict.fromkeys(("resources", "overhead"), True),
        "containers": {"resources": True},
        "initContainers": dict.fromkeys(("name", "restartPolicy", "resources"), True),
    },
}
"""What a cache keeps of pods too where the operator keeps accounts of what jobs use."""

KUEUE_GROUP = "kueue.x-k8s.io"
WORKLOAD = "Workload"

_WITHOUT_GANG = "or start the operator without --gang-scheduler-name"

_ALL = (
    OwnedKind("Pod", "v1", "pods", "the replicas", NEVER, _POD_FIELDS, of_every_job=True),
    OwnedKind(
        "Service",
        "v1",
        "services",
        "the DNS names of the replicas",
        cached={"spec": {"clusterIP": True, "selector": True, "ports": True}},
        of_every_job=True,
    ),
    OwnedKind(
        "ConfigMap",
        "v1",
        "configmaps",
        "the part of the environment that all processes of a large job share, and programs of roles",
        cached=_EXISTENCE,
        of_every_job=True,
    ),
    # not watched: the operator needs no right to list Secrets, and none to read one that it has not tried to create
    OwnedKind("Secret", "v1", "secrets", "credentials that the replicas share", NEVER, component=PERMISSIONS),
    # neither are these: an operator without MPIJobs of v1 has no rights on them
    OwnedKind("ServiceAccount", "v1", "serviceaccounts", "the identity of a launcher", NEVER, component=EXEC),
    OwnedKind(
        "Role",
        "rbac.authorization.k8s.io/v1",
        "roles",
        "what a launcher may do with the replicas of its job",
        component=EXEC,
    ),
    OwnedKind(
        "RoleBinding",
        "rbac.authorization.k8s.io/v1",
        "rolebindings",
        "gives a launcher its Role",
        component=EXEC,
    ),
    OwnedKind(
        "Deployment",
        "apps/v1",
        "deployments",
        "programs that outlive the training",
        cached={"status": {"conditions": {"type": True, "status": True, "message": True}}},
    ),
    OwnedKind("Job", "batch/v1", "jobs", "a launcher", NEVER, {"status": True}, propagation=FOREGROUND),
    OwnedKind(
        "HorizontalPodAutoscaler",
        "autoscaling/v2",
        "horizontalpodautoscalers",
        "changes the number of elastic replicas",
        cached=_EXISTENCE,
    ),
    OwnedKind("Route", "route.openshift.io/v1", "routes", "exposes a Service on OpenShift", is_route=True),
    OwnedKind(
        POD_GROUP,
        f"{PLUGINS_GROUP}/v1alpha1",
        "podgroups",
        "starts the pods of a job together, with the coscheduling plugin",
        MERGE,
        _EXISTENCE,
        fields=("minMember", "minResources", "scheduleTimeoutSeconds"),
        remedy=f"install the coscheduling plugin of scheduler-plugins, {_WITHOUT_GANG}",
    ),
    OwnedKind(
        POD_GROUP,
        f"{VOLCANO_GROUP}/v1beta1",
        "podgroups",
        "starts the pods of a job together, with Volcano",
        MERGE,
        _EXISTENCE,
        # not the queue: Volcano sets that of the namespace, and administrators move groups
        fields=("minMember", "minResources", "priorityClassName"),
        remedy=f"install Volcano, {_WITHOUT_GANG}",
    ),
    OwnedKind(
        POD_GROUP,
        f"{NATIVE_GROUP}/v1beta1",
        "podgroups",
        "starts the pods of a job together, with Kubernetes itself",
        MERGE,
        _EXISTENCE,
        # the others cannot change
        fields=("schedulingPolicy",),
        remedy=(
            "its version v1beta1, and no other, is what gangs need: start the API server of Kubernetes 1.37 or newer "
            "with --runtime-config=scheduling.k8s.io/v1beta1=true, and it, the scheduler and the controller manager "
            f"with --feature-gates=GenericWorkload=true, {_WITHOUT_GANG}"
        ),
    ),
    OwnedKind(
        WORKLOAD,
        f"{KUEUE_GROUP}/v1beta2",
        "workloads",
        "asks Kueue for the quota of a job",
        # Kueue writes the status, and an administrator may deactivate one
        NEVER,
        {
            "spec": {"active": True, "queueName": True, "priorityClassRef": True},
            "status": {"conditions": True, "admission": True, "admissionChecks": True},
        },
        remedy="install Kueue 0.16 or newer, or start the operator without --kueue",
    ),
)

OWNED_KINDS: Mapping[str, OwnedKind] = {one.name: one for one in _ALL}
"""By :attr:`OwnedKind.name`."""

DECLARABLE = tuple(one.name for one in _ALL if one.kind != "Pod" and not one.remedy)
"""The names of the kinds that a framework may declare in ``owns``."""

OF_EVERY_JOB = tuple(one.kind for one in _ALL if one.of_every_job)


def cached_fields(kind: OwnedKind, *, requests: bool = False) -> Mapping[str, Any]:
    """:attr:`OwnedKind.cached`, of pods with their ``requests`` if these are wanted."""
    fields = kind.cached or {}
    return _merged(fields, _POD_REQUESTS) if requests and kind.kind == "Pod" else fields


def _merged(fields: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(fields)
    for name, below in more.items():
        known = found.get(name)
        found[name] = _merged(known, below) if isinstance(known, Mapping) else below
    return found


def reduce_fields(obj: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``fields`` that ``obj`` has, in the notation of :attr:`OwnedKind.cached`."""
    kept: dict[str, Any] = {}
    for name, below in fields.items():
        if name not in obj:
            continue
        value = obj[name]
        if below is True or value is None:
            kept[name] = value
        elif isinstance(value, list):
            kept[name] = [reduce_fields(item, below) for item in value]
        else:
            kept[name] = reduce_fields(value, below)
    return kept


def owned_kind(manifest: Mapping[str, Any]) -> OwnedKind:
    """The registry's entry of an object by its ``kind`` and, where several groups have that kind, ``apiVersion``."""
    kind = manifest["kind"]
    return OWNED_KINDS.get(kind) or OWNED_KINDS[f"{kind}.{manifest['apiVersion'].partition('/')[0]}"]


def unknown_kinds(kinds: Iterable[str]) -> list[str]:
    """Those of ``kinds`` that no framework may declare."""
    return [kind for kind in kinds if kind not in ("Pod", *DECLARABLE)]

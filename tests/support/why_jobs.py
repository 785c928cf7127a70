"""Jobs that do not start, do not go on or fail, each with the cause that `dljob why` has to find.

Each job is a PyTorchJob whose template is changed by one thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from support.live_jobs import SHELL_IMAGE, UNTIL_ENDED

Resource = dict[str, Any]

NODE = "why-node"
"""Label, with the name of the namespace, and taint of the nodes that only exist in the API server."""


@dataclass(frozen=True)
class Case:
    """A job and what is found of it."""

    cause: str
    words: str
    """A part of the evidence, in the words of who has written them."""
    script: str = UNTIL_ENDED
    pod: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the pod's spec."""
    container: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    """Fields of spec.runPolicy."""
    workers: int = 0
    restart: str = "Never"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def manifest(self, name: str, namespace: str, root_image: str) -> Resource:
        """``root_image`` is on the node, and its user is root."""
        container = {
            "name": "pytorch",
            "image": SHELL_IMAGE,
            "command": ["sh", "-c", self.script],
            "resources": {"requests": {"cpu": "10m"}},
            **self.container,
        }
        spec = {"containers": [container], "terminationGracePeriodSeconds": 1, **self.pod}
        template = {"metadata": {"labels": {"why": name}}, "spec": spec}
        replica = {"restartPolicy": self.restart, "template": template}
        replicas = {"Master": {"replicas": 1, **replica}}
        if self.workers:
            replicas["Worker"] = {"replicas": self.workers, **replica}
        manifest = {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": name, "labels": dict(self.labels), "annotations": dict(self.annotations)},
            "spec": {"runPolicy": {"cleanPodPolicy": "None", **self.policy}, "pytorchReplicaSpecs": replicas},
        }
        return _filled(manifest, {"$NAMESPACE": namespace, "$NAME": name, "$ROOT_IMAGE": root_image})


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {_filled(key, names): _filled(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, names) for one in value]
    if isinstance(value, str):
        for key, name in names.items():
            value = value.replace(key, name)
    return value


def _needs(resource: str, amount: str) -> Resource:
    return {"resources": {"requests": {resource: amount}, "limits": {resource: amount}}}


def _mount(source: Resource) -> tuple[Resource, Resource]:
    return (
        {"volumes": [{"name": "data", **source}]},
        {"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
    )


def _claim(name: str) -> tuple[Resource, Resource]:
    return _mount({"persistentVolumeClaim": {"claimName": name}})


def _variable(source: Resource) -> Resource:
    return {"env": [{"name": "X", "valueFrom": source}]}


def _on(kind: str) -> Resource:
    """On one of the nodes of the test, which no kubelet has."""
    selector = {NODE: "$NAMESPACE", "why-kind": kind}
    tolerated = [{"key": f"node.kubernetes.io/{one}", "operator": "Exists"} for one in ("not-ready", "unreachable")]
    tolerated.append({"key": NODE, "operator": "Exists"})
    return {"nodeSelector": selector, "tolerations": tolerated}


def _affinity(kind: str, labels: Mapping[str, str]) -> Resource:
    term = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


_GARBAGE = "printf 'nothing that runs' > /data/program; chmod 755 /data/program"
_EMPTY = _mount({"emptyDir": {}})
_FILE = _mount({"emptyDir": {"sizeLimit": "1Mi"}})
_SECRET = _mount({"secret": {"secretName": "missing"}})
_MAP = _mount({"configMap": {"name": "missing"}})
_DRIVER = _mount({"csi": {"driver": "csi.registry.example"}})
_REAL = {"nodeSelector": {"node-role.kubernetes.io/control-plane": ""}}
_NEVER = {"successThreshold": 1, "failureThreshold": 1, "periodSeconds": 1, "exec": {"command": ["false"]}}


def _init(script: str, **more: Any) -> Resource:
    return {"initContainers": [{"name": "first", "image": SHELL_IMAGE, "command": ["sh", "-c", script], **more}]}


CASES: dict[str, Case] = {
    # images
    "image": Case("image-not-found", "not found", container={"image": "dljob/does-not-exist:1"}),
    "image-name": Case("image-name-invalid", "InvalidImageName", container={"image": "Not An Image"}),
    "image-never": Case(
        "image-never-pulled", "ErrImageNeverPull", container={"image": "dljob/absent:1", "imagePullPolicy": "Never"}
    ),
    "registry": Case("registry-unreachable", "no such host", container={"image": "registry.invalid/x:1"}),
    "pull-secret": Case(
        "pull-secret-missing",
        "Unable to retrieve some image pull secrets",
        pod={"imagePullSecrets": [{"name": "missing"}]},
        container={"image": "dljob/does-not-exist:2"},
    ),
    # scheduling
    "cpu": Case("insufficient-cpu", "Insufficient cpu", container=_needs("cpu", "1000")),
    "memory": Case("insufficient-memory", "Insufficient memory", container=_needs("memory", "9Ti")),
    "disk": Case(
        "insufficient-ephemeral-storage",
        "Insufficient ephemeral-storage",
        container=_needs("ephemeral-storage", "900Ti"),
    ),
    "gpu": Case("insufficient-resource", "Insufficient example.com/gpu", container=_needs("example.com/gpu", "8")),
    "selector": Case("node-selector", "node affinity/selector", pod={"nodeSelector": {"gpu": "none-has-it"}}),
    "taint": Case("taint", "untolerated taint", pod={"nodeSelector": {"type": "kwok"}}),
    "affinity": Case("pod-affinity", "pod affinity rules", pod=_affinity("podAffinity", {"why": "absent"})),
    "anti": Case("pod-anti-affinity", "anti-affinity", workers=1, pod=_affinity("podAntiAffinity", {"why": "$NAME"})),
    "spread": Case(
        "topology-spread",
        "topology spread constraints",
        workers=1,
        pod={
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"why": "$NAME"}},
                }
            ]
        },
    ),
    "ports": Case(
        "host-ports",
        "free ports",
        workers=1,
        container={"ports": [{"name": "pytorchjob-port", "containerPort": 23456, "hostPort": 31999}]},
    ),
    "cordoned": Case("node-unschedulable", "unschedulable", pod=_on("cordoned")),
    "crowded": Case("too-many-pods", "Too many pods", pod=_on("full")),
    "dead": Case("node-not-ready", "never posted", pod=_on("dead")),
    "gate": Case("scheduling-gate", "scheduling gates", pod={"schedulingGates": [{"name": "example.com/wait"}]}),
    "scheduler": Case("scheduler-missing", "no-such-scheduler", pod={"schedulerName": "no-such-scheduler"}),
    "priority": Case("priority-class-missing", "no PriorityClass", pod={"priorityClassName": "missing"}),
    "claims": Case(
        "device-claim",
        "claim",
        pod={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]},
        container={"resources": {"claims": [{"name": "gpu"}]}},
    ),
    # volumes
    "no-claim": Case("claim-missing", "not found", pod=_claim("missing")[0], container=_claim("missing")[1]),
    "claim": Case("claim-class-missing", "no-such-class", pod=_claim("pending")[0], container=_claim("pending")[1]),
    "claim-lost": Case("claim-lost", "Lost", pod=_claim("lost")[0], container=_claim("lost")[1]),
    "claim-far": Case("volume-node-conflict", "node(s)", pod=_claim("far")[0], container=_claim("far")[1]),
    "no-secret": Case("secret-missing", 'secret "missing" not found', pod=_SECRET[0], container=_SECRET[1]),
    "no-map": Case("configmap-missing", 'configmap "missing" not found', pod=_MAP[0], container=_MAP[1]),
    "no-driver": Case("volume-driver", "csi.registry.example", pod=_DRIVER[0], container=_DRIVER[1]),
    # containers
    "no-variable": Case(
        "secret-missing",
        'secret "missing" not found',
        container=_variable({"secretKeyRef": {"name": "missing", "key": "x"}}),
    ),
    "no-key": Case(
        "key-missing",
        "couldn't find key",
        container=_variable({"configMapKeyRef": {"name": "kube-root-ca.crt", "key": "missing"}}),
    ),
    "init-crash": Case("init-crash", "exit code 3", pod=_init("echo the data is gone; exit 3"), restart="OnFailure"),
    "init-wait": Case("init-waits", "first", pod=_init("sleep 3600")),
    "crash": Case("crash-loop", "exit code 5", script="echo lost the data; exit 5", restart="OnFailure"),
    "oom": Case(
        "out-of-memory",
        "OOMKilled",
        script="tail /dev/zero",
        container={"resources": {"limits": {"memory": "20Mi"}}},
    ),
    "evicted": Case(
        "evicted",
        "exceeds the limit",
        script="head -c 9000000 /dev/zero > /data/x; sleep 600",
        pod=_FILE[0],
        container=_FILE[1],
    ),
    "format": Case(
        "exec-format",
        "exec format error",
        pod={**_EMPTY[0], **_init(_GARBAGE, **_EMPTY[1])},
        container={"command": ["/data/program"], **_EMPTY[1]},
    ),
    "not-executable": Case("not-executable", "permission denied", container={"command": ["/etc/passwd"]}),
    "no-program": Case("program-missing", "no-such-program", container={"command": ["no-such-program"]}),
    "code-126": Case("exit-126", "exit code 126", script="/etc/passwd"),
    "code-127": Case("exit-127", "exit code 127", script="no-such-program"),
    "code-137": Case("exit-137", "exit code 137", script="sh -c 'kill -9 $$$$'; exit $?"),
    "code-139": Case("exit-139", "exit code 139", script="exit 139"),
    "code-143": Case("exit-143", "exit code 143", script="exit 143"),
    "code-1": Case("exit-code", "exit code 1", script="echo ValueError: no such column; exit 1"),
    "port-in-use": Case("port-in-use", "Address already in use", script="echo bind: Address already in use; exit 1"),
    "names": Case("name-not-resolved", "name resolution", script="echo Temporary failure in name resolution; exit 1"),
    "root": Case(
        "run-as-non-root",
        "runAsNonRoot",
        pod={"securityContext": {"runAsNonRoot": True}},
        container={"image": "$ROOT_IMAGE", "imagePullPolicy": "Never"},
    ),
    "startup": Case(
        "probe-startup", "Startup probe failed", container={"startupProbe": {**_NEVER, "failureThreshold": 900}}
    ),
    "readiness": Case("probe-readiness", "Readiness probe failed", container={"readinessProbe": _NEVER}),
    "liveness": Case(
        "probe-liveness",
        "Liveness probe failed",
        script="trap 'exit 3' TERM; sleep 86400 & wait",
        container={"livenessProbe": _NEVER},
        restart="OnFailure",
    ),
    # the job
    "account": Case("account-missing", "serviceaccount", pod={"serviceAccountName": "missing"}),
    "suspended": Case("suspended", "suspend", policy={"suspend": True}),
    "backoff": Case("backoff-limit", "backoffLimit", script="exit 1", policy={"backoffLimit": 0}, restart="OnFailure"),
    "deadline": Case("deadline", "activeDeadlineSeconds", policy={"activeDeadlineSeconds": 5}),
    "pending": Case(
        "pending-timeout",
        "pending",
        pod={"nodeSelector": {"gpu": "none-has-it"}},
        policy={"pendingTimeoutSeconds": 5},
    ),
    "invalid": Case("job-invalid", "per-job", annotations={"dljob.operator/services": "some"}),
    "volume-name": Case("pod-invalid", "nowhere", container={"volumeMounts": [{"name": "nowhere", "mountPath": "/x"}]}),
    "managed": Case(
        "managed-elsewhere", "kueue.x-k8s.io/multikueue", policy={"managedBy": "kueue.x-k8s.io/multikueue"}
    ),
    "ignored": Case("operator-silent", "no status", labels={"dljob-test/operator": "own"}),
}
"""By the name of the job."""

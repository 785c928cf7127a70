"""The jobs of a run: small jobs of every kind and API flavor, and how a run changes them. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devtools.lab.chaos.shapes import ANY, SHAPES, Shape

OWN = {"dljob-test/operator": "own"}
"""Labels of each job, with which the operator that many tests share ignores it."""


@dataclass(frozen=True)
class Plural:
    """A resource of the API server."""

    group: str
    version: str
    plural: str

    def path(self, namespace: str) -> str:
        prefix = f"/apis/{self.group}" if self.group else "/api"
        return f"{prefix}/{self.version}/namespaces/{namespace}/{self.plural}"


RESOURCES = {
    ("fioravanzo.org/v1alpha1", "MXJob"): Plural("fioravanzo.org", "v1alpha1", "mxjobs"),
    ("kubeflow.org/v1alpha1", "MXJob"): Plural("kubeflow.org", "v1alpha1", "mxjobs"),
    ("kubeflow.org/v1", "MXJob"): Plural("kubeflow.org", "v1", "mxjobs"),
    ("mpba.fbk.eu/v1", "MXJob"): Plural("mpba.fbk.eu", "v1", "mxjobs"),
    ("kubeflow.org/v1alpha1", "TFJob"): Plural("kubeflow.org", "v1alpha1", "tfjobs"),
    ("kubeflow.org/v1", "TFJob"): Plural("kubeflow.org", "v1", "tfjobs"),
    ("tensorflow.org/v1alpha1", "TfJob"): Plural("tensorflow.org", "v1alpha1", "tfjobs"),
    ("kubeflow.org/v1alpha1", "Caffe2Job"): Plural("kubeflow.org", "v1alpha1", "caffe2jobs"),
    ("kubeflow.org/v1", "PyTorchJob"): Plural("kubeflow.org", "v1", "pytorchjobs"),
    ("kubeflow.org/v1", "JAXJob"): Plural("kubeflow.org", "v1", "jaxjobs"),
    ("kubeflow.org/v1", "PaddleJob"): Plural("kubeflow.org", "v1", "paddlejobs"),
    ("kubeflow.org/v1", "XGBoostJob"): Plural("kubeflow.org", "v1", "xgboostjobs"),
    ("kubeflow.org/v2beta1", "MPIJob"): Plural("kubeflow.org", "v2beta1", "mpijobs"),
    ("kubeflow.org/v1", "MPIJob"): Plural("kubeflow.org", "v1", "mpijobs"),
    ("dljob.operator/v1", "DLJob"): Plural("dljob.operator", "v1", "dljobs"),
}
WATCHED = tuple({(p.group, p.plural): p for p in RESOURCES.values()}.values())
"""Each resource once, in its last version: two versions of it are the same objects."""
PODS = Plural("", "v1", "pods")
BATCH_JOBS = Plural("batch", "v1", "jobs")
OWNED = (
    PODS,
    *(Plural("", "v1", plural) for plural in ("services", "configmaps", "secrets", "serviceaccounts")),
    BATCH_JOBS,
    *(Plural("rbac.authorization.k8s.io", "v1", plural) for plural in ("roles", "rolebindings")),
)
"""What the jobs of a run own: none of them has an autoscaler, a TensorBoard (a Deployment) or a PodGroup."""


@dataclass(frozen=True)
class Job:
    """One job to create."""

    manifest: Mapping[str, Any]
    outcome: str
    """The state at its end, whatever happens to its pods and its operator."""

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    def path(self, namespace: str) -> str:
        return resource_of(self.manifest).path(namespace)


def resource_of(manifest: Mapping[str, Any]) -> Plural:
    return RESOURCES[manifest["apiVersion"], manifest["kind"]]


def anew(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The job to create again: in the version of who has labelled it, which may not be that in which it is watched."""
    metadata = {"name": manifest["metadata"]["name"], "labels": dict(OWN)}
    noted = manifest["metadata"].get("managedFields") or ()
    versions = (one["apiVersion"] for one in noted if "f:labels" in one.get("fieldsV1", {}).get("f:metadata", {}))
    version = next(versions, manifest["apiVersion"])
    return {"apiVersion": version, "kind": manifest["kind"], "metadata": metadata, "spec": manifest["spec"]}


def titled(*words: str) -> tuple[Shape, ...]:
    """The shapes whose title contains one of ``words``; all of them without words."""
    return tuple(shape for shape in SHAPES if not words or any(word in shape.title for word in words))


def jobs(seed: int, round_: int, count: int, shapes: Sequence[Shape] = SHAPES) -> list[Job]:
    """The jobs of a round: each shape in turn, in the order of the seed, continued over the rounds."""
    made = []
    for index in range(count):
        number = round_ * count + index
        source = random.Random(f"job {seed} {number}")
        order = random.Random(f"order {seed} {number // len(shapes)}").sample(shapes, len(shapes))
        shape = order[number % len(shapes)]
        manifest = dict(shape.build(source))
        manifest["metadata"] = {"name": f"job-{number:04d}", "labels": dict(OWN)}
        made.append(Job(manifest, shape.outcome))
    return made


def replica_entries(manifest: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Each entry of replicas with the path to it in the manifest."""
    spec = manifest["spec"]
    if isinstance(spec, list):
        yield from ((("spec", index), entry) for index, entry in enumerate(spec))
        return
    for field, replicas in spec.items():
        if not (field.lower().endswith("replicaspecs") or field == ANY.replicas):
            continue
        if isinstance(replicas, list):
            yield from ((("spec", field, index), entry) for index, entry in enumerate(replicas))
        elif isinstance(replicas, dict) and "template" in replicas:
            yield ("spec", field), replicas
        elif isinstance(replicas, dict):
            yield from ((("spec", field, name), entry) for name, entry in replicas.items())


def edit(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The JSON patch that changes the number of the workers by one, which restarts all replicas of most kinds."""
    entries = list(replica_entries(manifest))
    path, entry = entries[-1]
    field = ANY.count if ANY.count in entry else "replicas"
    current = int(entry.get(field, 1))
    pointer = "/".join(str(part) for part in path)
    return [{"op": "add", "path": f"/{pointer}/{field}", "value": current + 1 if current == 1 else current - 1}]


def can_edit(manifest: Mapping[str, Any]) -> bool:
    """Whether the last entry may have one replica more or less."""
    entries: Sequence[tuple[tuple[str | int, ...], Mapping[str, Any]]] = list(replica_entries(manifest))
    last = entries[-1][1]
    count = int(last.get(ANY.count) or last.get("replicas", 1))
    return len(entries) > 1 or count > 2


def suspend(manifest: Mapping[str, Any], wanted: bool) -> dict[str, Any] | None:
    """The merge patch that suspends or resumes the job, None where its flavor has no such field."""
    if isinstance(manifest["spec"], list):
        return None
    return {"spec": {"runPolicy": {"suspend": wanted}}}

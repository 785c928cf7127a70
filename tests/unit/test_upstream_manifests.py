"""The manifests of either source have the fields that the early operators documented, and no others.

Our own stand in for the upstream ones where there is no folder of those: they must exercise the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.build.images.manifests import OWN_FOLDER, folders
from support.upstream_manifests import from_each_source, load, paths, preferred

POD = "replicas template spec containers name image"
MXJOB = f"replicaSpecs mxReplicaType {POD} imagePullPolicy restartPolicy"
TFJOB = f"tfReplicaType {POD} restartPolicy"
GPU = "resources limits alpha.kubernetes.io/nvidia-gpu"
SHARE = "volumes azureFile secretName shareName readOnly volumeMounts mountPath"

# API, kind, and the name of each field at any depth
FIELDS = {
    "mxjob-linear-dist.yaml": ("fioravanzo.org/v1alpha1", "MXJob", MXJOB),
    "mxjob-cifar-gpu.yaml": ("fioravanzo.org/v1alpha1", "MXJob", f"{MXJOB} {GPU} {SHARE}"),
    "mx_job_dist.yaml": (
        "kubeflow.org/v1alpha1",
        "MXJob",
        f"jobMode replicaSpecs mxReplicaType PsRootPort {POD} command args workingDir restartPolicy",
    ),
    "dl-operator-mxjob.yaml": ("mpba.fbk.eu/v1", "MXJob", f"replicaType {POD} imagePullPolicy restartPolicy"),
    "tf_job.yaml": ("tensorflow.org/v1alpha1", "TfJob", f"replicaSpecs {TFJOB}"),
    "tf-smoke-gpu.yaml": ("tensorflow.org/v1alpha1", "TfJob", f"replica_specs {TFJOB} tfPort {GPU}"),
    "tf-tensorboard-azure.yaml": (
        "tensorflow.org/v1alpha1",
        "TfJob",
        f"replica_specs {TFJOB} {GPU} tensorboard logDir {SHARE}",
    ),
    "tf-tensorboard-gke.yaml": (
        "tensorflow.org/v1alpha1",
        "TfJob",
        f"replica_specs {TFJOB} tfPort args {GPU} tensorboard logDir",
    ),
    "tf-job-operator-config.yaml": (
        "v1",
        "ConfigMap",
        "namespace data controller_config_file.yaml accelerators grpcServerFilePath alpha.kubernetes.io/nvidia-gpu "
        "volumes mountPath hostPath envVars value",
    ),
    "caffe2-redis.yaml": (
        "kubeflow.org/v1alpha1",
        "Caffe2Job",
        f"backendSpecs backendType redisHost redisPort replicaSpecs {POD} hostNetwork resources limits nvidia.com/gpu "
        "workingDir command",
    ),
}


def fields(node: Any) -> Iterator[str]:
    """The keys of all maps within, those of the YAML in a text of several lines too."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield key
            yield from fields(value)
    elif isinstance(node, list):
        for value in node:
            yield from fields(value)
    elif isinstance(node, str) and "\n" in node:
        yield from fields(yaml.safe_load(node))


@pytest.mark.parametrize("path", from_each_source(*FIELDS))
def test_fields(path: Path) -> None:
    api, kind, more = FIELDS[path.name]
    manifest = load(path)
    assert (manifest["apiVersion"], manifest["kind"]) == (api, kind)
    assert set(fields(manifest)) == {"apiVersion", "kind", "metadata", "name", *more.split()}


def test_every_manifest_of_either_source_is_known() -> None:
    assert {path.name for path in OWN_FOLDER.glob("*.yaml")} == set(FIELDS)
    assert {path.name for folder in folders() for path in folder.glob("*.yaml")} <= set(FIELDS)


def test_the_upstream_manifest_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLJOB_MANIFESTS", str(tmp_path))
    (tmp_path / "tf_job.yaml").write_text("{kind: TfJob}")
    assert preferred("tf_job.yaml") == {"kind": "TfJob"}
    assert paths("tf-smoke-gpu.yaml") == [OWN_FOLDER / "tf-smoke-gpu.yaml"]
    with pytest.raises(FileNotFoundError):
        preferred("misspelt.yaml")

"""The commands that the early operators' documents print, by kubectl itself: create -f, get, get -o yaml, logs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.live_jobs import Cluster, Job, kubectl, shell_template

TASK = 'echo "$TF_CONFIG$CAFFE2_CONFIG$DMLC_ROLE"'


def manifest(group: str, kind: str, container: str, replicas: Any) -> dict[str, Any]:
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "example-job"}, "spec": {"replicaSpecs": replicas}}


def entry(container: str) -> dict[str, Any]:
    return {"replicas": 1, "template": shell_template(TASK, container=container)}


@pytest.mark.parametrize(
    ("job", "pod", "says"),
    [
        pytest.param(
            manifest(
                "tensorflow.org/v1alpha1", "TfJob", "tensorflow", [{"tfReplicaType": "MASTER", **entry("tensorflow")}]
            ),
            r"master-{rid}-0-[a-z0-9]{{5}}",
            {"type": "master", "index": 0},
            id="tfjobs",
        ),
        pytest.param(
            manifest("kubeflow.org/v1alpha1", "MXJob", "mxnet", [{"mxReplicaType": "SCHEDULER", **entry("mxnet")}]),
            r"scheduler-{rid}-0-[a-z0-9]{{5}}",
            "scheduler",
            id="mxjobs",
        ),
        pytest.param(
            manifest("kubeflow.org/v1alpha1", "Caffe2Job", "caffe2", entry("caffe2")),
            "example-job-worker-0",
            {"type": "worker", "index": 0},
            id="caffe2jobs",
        ),
    ],
)
def test_as_the_documents_print_it(
    here: Cluster, tmp_path: Path, job: dict[str, Any], pod: str, says: str | dict[str, Any]
) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job), encoding="utf-8")
    group, _, version = job["apiVersion"].partition("/")
    plural = job["kind"].lower() + "s"
    resource = f"{plural}.{version}.{group}"
    assert kubectl(here, "create", "-f", str(file)) == f"{job['kind'].lower()}.{group}/example-job created\n"
    created = here.custom.get_namespaced_custom_object(group, version, here.namespace, plural, "example-job")
    Job(here, (group, version, here.namespace, plural), created).wait_end()
    waited = kubectl(here, "wait", f"{resource}/example-job", "--for=condition=Succeeded", "--timeout=300s")
    assert waited.endswith("/example-job condition met\n")

    header, row = kubectl(here, "get", resource).splitlines()
    assert header.split() == ["NAME", "STATE", "REPLICAS", "PROGRESS", "AGE"]
    assert row.split()[:2] == ["example-job", "Succeeded"]
    shown = yaml.safe_load(kubectl(here, "get", "-o", "yaml", resource, "example-job"))
    assert shown["status"]["phase"] == "Done"
    rid = shown["status"]["runtimeId"]
    names = kubectl(here, "get", "pods", "-o", "name").split()
    (name,) = [n.removeprefix("pod/") for n in names]
    assert re.fullmatch(pod.format(rid=rid), name)
    log = kubectl(here, "logs", name).strip()
    assert (log if isinstance(says, str) else json.loads(log)["task"]) == says

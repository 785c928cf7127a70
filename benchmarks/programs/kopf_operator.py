"""A kopf operator for MXJobs, written as kopf's documentation recommends: a create handler, and one for pod events.

It creates a headless Service, the scheduler's Service and the pods, and sets Running when all pods run. It uses the
official Python client, which is the usual one with kopf, with eight writes at a time, as this operator.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import kopf
from kubernetes import client, config

WIDTH = 8
LABEL = "training.kubeflow.org/job-name"
_pool = ThreadPoolExecutor(WIDTH)
_expected: dict[tuple[str, str], int] = {}
_running: dict[tuple[str, str], set[str]] = defaultdict(set)
_lock = threading.Lock()


@kopf.on.startup()
def connect(settings: kopf.OperatorSettings, **_: Any) -> None:
    config.load_kube_config()
    default = client.Configuration.get_default_copy()
    default.connection_pool_maxsize = 2 * WIDTH
    client.Configuration.set_default(default)
    settings.posting.enabled = False  # an Event for each log line would slow it down


@kopf.on.create("kubeflow.org", "v1", "mxjobs")
def create(name: str, namespace: str, spec: kopf.Spec, **_: Any) -> None:
    core = client.CoreV1Api()
    replicas = spec["mxReplicaSpecs"]
    with _lock:
        _expected[namespace, name] = sum(replica["replicas"] for replica in replicas.values())
    for service, selector in ((f"{name}-all", {LABEL: name}), (f"{name}-scheduler-0", {LABEL: name, "index": "0"})):
        body: dict[str, Any] = {
            "metadata": {"name": service, "labels": {LABEL: name}},
            "spec": {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": True},
        }
        kopf.adopt(body)
        core.create_namespaced_service(namespace, body)
    cluster_json = json.dumps(
        {
            kind.lower(): [{"url": f"{name}-{kind.lower()}-{i}", "port": 9091} for i in range(replica["replicas"])]
            for kind, replica in replicas.items()
        }
    )
    pods = [
        _pod(cluster_json, name, kind.lower(), index, replica["template"]["spec"])
        for kind, replica in replicas.items()
        for index in range(replica["replicas"])
    ]
    for pod in pods:
        kopf.adopt(pod)
    list(_pool.map(lambda pod: core.create_namespaced_pod(namespace, pod), pods))


def _pod(cluster_json: str, job: str, kind: str, index: int, template: dict[str, Any]) -> dict[str, Any]:
    name = f"{job}-{kind}-{index}"
    mx_config = f'{{"cluster":{cluster_json},"task":{{"type":"{kind}","index":{index}}}}}'
    values = {"MX_CONFIG": mx_config, "DMLC_ROLE": kind, "DMLC_NUM_WORKER": "2", "DMLC_PS_ROOT_PORT": "9091"}
    environment = [{"name": key, "value": value} for key, value in values.items()]
    containers = [{**container, "env": environment} for container in template["containers"]]
    spec = {**template, "containers": containers, "restartPolicy": "Never"}
    return {
        "metadata": {"name": name, "labels": {LABEL: job}},
        "spec": {**spec, "hostname": name, "subdomain": f"{job}-all"},
    }


@kopf.on.event("pods", labels={LABEL: kopf.PRESENT})
def pod_changed(event: kopf.RawEvent, namespace: str, name: str, labels: kopf.Labels, **_: Any) -> None:
    status = event["object"].get("status") or {}
    if status.get("phase") != "Running":
        return
    job = (namespace, labels[LABEL])
    with _lock:
        if name in _running[job]:
            return
        _running[job].add(name)
        if len(_running[job]) != _expected.get(job):
            return
    condition = {"type": "Running", "status": "True", "reason": "MXJobRunning", "message": "all pods run"}
    body = {"status": {"conditions": [condition]}}
    client.CustomObjectsApi().patch_namespaced_custom_object_status(
        "kubeflow.org", "v1", namespace, "mxjobs", job[1], body
    )

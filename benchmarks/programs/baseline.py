"""The baseline: watches MXJobs and PyTorchJobs and writes what this operator writes for each, without planning.

It writes two Services, the pods, one status, and for an MXJob of many replicas the ConfigMap to which its pods refer,
`--writers` at a time over persistent connections. It reads nothing back, repairs nothing and ignores failed replicas:
it only serves to compare an operator's speed with.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import queue
import threading
from pathlib import Path
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient, connect
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.shared_env_configmap import FROM_REPLICAS
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.kube import KubeApi

FIRSTS = {"MXJob": "scheduler-0", "PyTorchJob": "master-0"}
"""The kinds, each with the first replica of its jobs, which has a Service of its own."""
PLAIN = {"DMLC_PS_ROOT_PORT": "9091", "DMLC_NUM_WORKER": "2", "DMLC_NUM_SERVER": "1", "DMLC_USE_KUBERNETES": "1"}
Call = tuple[str, str, dict[str, Any]]


def calls(job: dict[str, Any]) -> tuple[list[Call], Call]:
    """The writes of a job's objects, and the later write of its status."""
    metadata = job["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    labels = {"training.kubeflow.org/job-name": name, "app.kubernetes.io/managed-by": "baseline"}
    owner = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": name, "uid": metadata["uid"]}
    owners = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    core = f"/api/v1/namespaces/{namespace}"
    made: list[Call] = []
    first = f"{name}-{FIRSTS[job['kind']]}"
    for service, chosen in ((f"{name}-all", labels), (first, {**labels, "index": "0"})):
        spec = {"clusterIP": "None", "selector": chosen, "publishNotReadyAddresses": True, "ports": [{"port": 9091}]}
        body = {"metadata": {"name": service, "labels": labels, "ownerReferences": owners}, "spec": spec}
        made.append(("POST", f"{core}/services", body))
    is_torch = job["kind"] == "PyTorchJob"
    replicas = job["spec"]["pytorchReplicaSpecs" if is_torch else "mxReplicaSpecs"]
    count = sum(replica["replicas"] for replica in replicas.values())
    cluster_json = '{"cluster":' + members(name, replicas)
    shared: list[dict[str, Any]] = []
    if not is_torch and count >= FROM_REPLICAS:
        source = {"configMapKeyRef": {"name": f"{name}-all", "key": "MX_CONFIG"}}
        shared = [{"name": "SHARED", "valueFrom": source}]
        body = {"metadata": {"name": f"{name}-all", "labels": labels, "ownerReferences": owners}}
        made.append(("POST", f"{core}/configmaps", {**body, "immutable": True, "data": {"MX_CONFIG": cluster_json}}))
        cluster_json = "$(SHARED)"
    for kind, replica in replicas.items():
        template = replica["template"]["spec"]
        for index in range(replica["replicas"]):
            pod = f"{name}-{kind.lower()}-{index}"
            task = json.dumps({"type": kind.lower(), "index": index})
            mx_config = f'{cluster_json},"labels":{{}},"task":{task}}}'
            values = {**PLAIN, "MX_CONFIG": mx_config, "DMLC_ROLE": kind.lower()}
            if is_torch:
                values = torch_variables(first, index + (kind == "Worker"), count)
            environment = [*shared, *({"name": key, "value": value} for key, value in values.items())]
            containers = [{**container, "env": environment} for container in template["containers"]]
            spec = {**template, "containers": containers, "hostname": pod, "subdomain": f"{name}-all"}
            spec["restartPolicy"] = "Never"
            body = {"metadata": {"name": pod, "labels": labels, "ownerReferences": owners}, "spec": spec}
            made.append(("POST", f"{core}/pods", body))
    status = {"status": {"conditions": [{"type": "Running", "status": "True", "reason": "Made", "message": ""}]}}
    path = f"/apis/kubeflow.org/v1/namespaces/{namespace}/{job['kind'].lower()}s/{name}/status"
    return made, ("PATCH", path, status)


def torch_variables(master: str, rank: int, count: int) -> dict[str, str]:
    address = {"MASTER_ADDR": master, "MASTER_PORT": "23456", "WORLD_SIZE": str(count), "RANK": str(rank)}
    elastic = {"PET_MASTER_ADDR": master, "PET_MASTER_PORT": "23456", "PET_NODE_RANK": str(rank)}
    return {"PYTHONUNBUFFERED": "1", **address, **elastic, "PET_NPROC_PER_NODE": "auto", "PET_NNODES": str(count)}


def members(name: str, replicas: dict[str, Any]) -> str:
    """The addresses of all processes, for every process."""
    return json.dumps(
        {
            kind.lower(): [{"url": f"{name}-{kind.lower()}-{i}", "port": 9091} for i in range(replica["replicas"])]
            for kind, replica in replicas.items()
        }
    )


class Work:
    """A queue of writes, with statuses last, as in this operator. ``get`` blocks while it is empty."""

    def __init__(self) -> None:
        self._queue: queue.PriorityQueue[tuple[bool, int, Job, Call]] = queue.PriorityQueue()
        self._numbers = itertools.count()

    def put(self, what: tuple[Job, Call], later: bool = False) -> None:
        self._queue.put((later, next(self._numbers), *what))

    def get(self) -> tuple[Job, Call]:
        _, _, job, call = self._queue.get()
        return job, call


class Job:
    """Counts its remaining writes."""

    def __init__(self, resource: dict[str, Any], work: Work) -> None:
        made, self._status = calls(resource)
        self._left = len(made)
        self._lock = threading.Lock()
        self._work = work
        for call in made:
            work.put((self, call))

    def written(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self._work.put((self, self._status), later=True)


def write(rest_client: RestClient, work: Work) -> None:
    while True:
        job, (method, path, body) = work.get()
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            rest_client.request(method, path, body, content_type=content)
        except ApiError as error:
            if error.status != 404:  # deleted meanwhile, at the end of a workload
                print(f"{method} {path}: {error}", flush=True)
        job.written()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", type=int, default=8, help="writes at a time (default: %(default)s)")
    writers = parser.parse_args().writers
    work = Work()
    api = KubeApi.connect(Path(os.environ["KUBECONFIG"]))
    rest_client = connect(connections=writers)
    for _ in range(writers):
        threading.Thread(target=write, args=(rest_client, work), daemon=True).start()
    versions = {}
    for kind in FIRSTS:
        path = f"/apis/kubeflow.org/v1/{kind.lower()}s"
        versions[path] = api.get(path, {"limit": 1})["metadata"]["resourceVersion"]
    print("ready", flush=True)
    for path, version in versions.items():
        threading.Thread(target=follow, args=(api, path, version, work)).start()


def follow(api: KubeApi, path: str, version: str, work: Work) -> None:
    """Put the writes of each new job of a kind into the queue."""
    while True:
        try:
            with api.watch(path, {"resourceVersion": version, "allowWatchBookmarks": "true"}, 3600) as events:
                for event in events:
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] == "ADDED":
                        Job(event["object"], work)
        except ApiError as error:
            print(f"the watch failed: {error}", flush=True)
            os._exit(1)


if __name__ == "__main__":
    main()

"""Reconciles MXJobs as ansible-operator does: with an input folder and a new `ansible-runner run` process per job.

The command line, the folder's files and the status written before and after an Ansible run are ansible-operator's. It
starts as many runs in parallel as there are processors. It has no proxy, so the role sets owner references itself.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kubernetes import client, config, watch

ROLES = Path(__file__).parent / "roles"
KIND = ("kubeflow.org", "v1")
INVENTORY = "localhost ansible_connection=local ansible_python_interpreter={{ansible_playbook_python}}\n"


def reconcile(custom: client.CustomObjectsApi, job: dict[str, Any], folder: Path) -> None:
    metadata = job["metadata"]
    where = (*KIND, metadata["namespace"], "mxjobs", metadata["name"])
    run = folder / metadata["namespace"] / metadata["name"]
    (run / "env").mkdir(parents=True)
    (run / "inventory").mkdir()
    kubeconfig = os.environ["KUBECONFIG"]
    (run / "env" / "envvars").write_text(json.dumps({"KUBECONFIG": kubeconfig, "K8S_AUTH_KUBECONFIG": kubeconfig}))
    handed = {
        "ansible_operator_meta": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "_kubeflow_org_mxjob": job,
        "_kubeflow_org_mxjob_spec": job["spec"],
    }
    (run / "env" / "extravars").write_text(json.dumps(handed))
    (run / "inventory" / "hosts").write_text(INVENTORY)
    _status(custom, where, "Running", "Running reconciliation")
    command = ["ansible-runner", "run", str(run), "--rotate-artifacts", "20", "--role", "mxjob"]
    command += ["--roles-path", str(ROLES), "--hosts", "localhost", "-i", str(random.getrandbits(62)), "-vv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:], flush=True)
    _status(custom, where, "Successful" if done.returncode == 0 else "Failure", "Awaiting next reconciliation")


def _status(custom: client.CustomObjectsApi, where: tuple[str, ...], reason: str, message: str) -> None:
    condition = {"type": "Reconciled", "status": "True", "reason": reason, "message": message}
    try:
        custom.patch_namespaced_custom_object_status(*where, {"status": {"conditions": [condition]}})
    except client.ApiException as error:
        if error.status != 404:  # deleted meanwhile, at the end of a workload
            raise


def main() -> None:
    config.load_kube_config()
    custom = client.CustomObjectsApi()
    version = custom.list_cluster_custom_object(*KIND, "mxjobs", limit=1)["metadata"]["resourceVersion"]
    print("ready", flush=True)
    with tempfile.TemporaryDirectory(prefix="stock-ansible-") as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        stream = watch.Watch().stream(custom.list_cluster_custom_object, *KIND, "mxjobs", resource_version=version)
        for event in stream:
            if event["type"] == "ADDED":
                pool.submit(reconcile, custom, event["object"], Path(folder))


if __name__ == "__main__":
    main()

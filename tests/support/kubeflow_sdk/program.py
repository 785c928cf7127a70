"""``program.py KUBECONFIG NAMESPACE KIND IMAGE``: create a job with kubeflow-training, follow, change and delete it.

Once the job runs it prints ``running`` and the container that decides the job's end, and goes on with the next line of
its input. The last line of its output is a JSON object: what the client's methods returned. It runs with that client's
own environment and imports nothing of this repository.
"""

from __future__ import annotations

import inspect
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from kubeflow.training import TrainingClient, models
from kubernetes.client import V1Container, V1ObjectMeta, V1PodSpec, V1PodTemplateSpec

TRAIN = ["sh", "-c", "echo trained; trap 'exit 0' TERM; until [ -e /tmp/released ]; do sleep 0.1; done"]
SERVE = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.2; done"]
_LIMIT = 240
"""Seconds for the job to run, and to succeed."""
SPECS: dict[str, tuple[str, str, dict[str, list[str] | None]]] = {
    "TFJob": ("tf_replica_specs", "tensorflow", {"Chief": TRAIN, "PS": SERVE, "Worker": TRAIN}),
    "PyTorchJob": ("pytorch_replica_specs", "pytorch", {"Master": TRAIN, "Worker": TRAIN}),
    "XGBoostJob": ("xgb_replica_specs", "xgboost", {"Master": TRAIN, "Worker": TRAIN}),
    "PaddleJob": ("paddle_replica_specs", "paddle", {"Worker": TRAIN}),
    "JAXJob": ("jax_replica_specs", "jax", {"Worker": TRAIN}),
    "MXJob": ("mx_replica_specs", "mxnet", {"Scheduler": TRAIN, "Server": SERVE, "Worker": TRAIN}),
    "MPIJob": ("mpi_replica_specs", "mpi", {"Launcher": TRAIN, "Worker": None}),  # a worker waits for kubectl exec
}
CONDITIONS = ("created", "running", "restarting", "succeeded", "failed")


class Client:
    """The client's methods for one kind. Until 1.7 most of them have the kind in their name."""

    def __init__(self, kubeconfig: str, namespace: str, kind: str) -> None:
        options = {"config_file": kubeconfig, "job_kind": kind}  # 1.8 needs the kind here, too
        takes = inspect.signature(TrainingClient).parameters
        self.training = TrainingClient(**{name: value for name, value in options.items() if name in takes})
        self._namespace = namespace
        self._kind = kind

    def __call__(self, method: str, *arguments: Any, **options: Any) -> Any:
        older = {"update_job": "patch"}.get(method, method.removesuffix("_jobs").removesuffix("_job"))
        plural = "s" if method.endswith("jobs") else ""
        call: Callable[..., Any] = getattr(self.training, method, None) or getattr(
            self.training, f"{older}_{self._kind.lower()}{plural}"
        )
        takes = inspect.signature(call).parameters
        # create_job takes the kind from the job, and refuses the argument
        common = {"namespace": self._namespace, **({} if method == "create_job" else {"job_kind": self._kind})}
        options = {**common, **options}
        return call(*arguments, **{name: value for name, value in options.items() if name in takes})


def model(name: str) -> Any:
    return getattr(models, name)


def job_of(kind: str, name: str, namespace: str, image: str) -> Any:
    """A job with one replica of each type."""
    field, container, commands = SPECS[kind]
    replicas = {
        type_: model("KubeflowOrgV1ReplicaSpec" if hasattr(models, "KubeflowOrgV1ReplicaSpec") else "V1ReplicaSpec")(
            replicas=1,
            restart_policy="Never",
            template=V1PodTemplateSpec(
                spec=V1PodSpec(
                    termination_grace_period_seconds=1,
                    containers=[V1Container(name=container, image=image, command=command)],
                )
            ),
        )
        for type_, command in commands.items()
    }
    policy = "KubeflowOrgV1RunPolicy" if hasattr(models, "KubeflowOrgV1RunPolicy") else "V1RunPolicy"
    more = {"job_mode": "MXTrain"} if kind == "MXJob" else {}
    spec = model(f"KubeflowOrgV1{kind}Spec")(
        run_policy=model(policy)(clean_pod_policy="None"), **{field: replicas}, **more
    )
    return model(f"KubeflowOrgV1{kind}")(
        api_version="kubeflow.org/v1", kind=kind, metadata=V1ObjectMeta(name=name, namespace=namespace), spec=spec
    )


def is_gone(client: Client, name: str) -> bool:
    """Whether the job is gone within a minute."""
    for _ in range(120):
        if name not in [job.metadata.name for job in listed(client)]:
            return True
        time.sleep(0.5)
    return False


def listed(client: Client) -> list[Any]:
    found = client("list_jobs")
    return list(getattr(found, "items", found))


def main(kubeconfig: str, namespace: str, kind: str, image: str) -> dict[str, Any]:
    name = f"sdk-{kind.lower()}"
    client = Client(kubeconfig, namespace, kind)
    client("create_job", job_of(kind, name, namespace, image))
    limit = {"wait_timeout": _LIMIT, "polling_interval": 1}
    started = client("wait_for_job_conditions", name, expected_conditions={"Running"}, **limit)
    print("running", SPECS[kind][1], flush=True)
    sys.stdin.readline()
    change = job_of(kind, name, namespace, image)
    change.metadata.labels = {"changed": "yes"}
    client("update_job", change, name)
    ended = client("wait_for_job_conditions", name, **limit)
    logs = client("get_job_logs", name, is_master=False, container=SPECS[kind][1])
    found = {
        "started": [condition.type for condition in started.status.conditions],
        "conditions": [(one.type, one.status) for one in client("get_job_conditions", name)],
        "is": {one: client(f"is_job_{one}", name) for one in CONDITIONS},
        "labels": ended.metadata.labels,
        "read": client("get_job", name).metadata.name,
        "listed": [job.metadata.name for job in listed(client)],
        "pods": sorted(client("get_job_pod_names", name)),
        "master": list(client("get_job_pod_names", name, is_master=True)),
        "worker 0": list(client("get_job_pod_names", name, replica_type="worker", replica_index=0)),
        "logs": logs[0] if isinstance(logs, tuple) else logs,
    }
    client("delete_job", name)
    return {**found, "gone": is_gone(client, name)}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))

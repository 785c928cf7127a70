"""PodDisruptionBudgets for jobs, with Kubernetes' own controller of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client
from support.live_jobs import UNTIL_ENDED, Cluster, shell_template, until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NO_SCALE = "does not implement the scale subresource"
NO_WORKER = 'the spec replicas field ".spec.pytorchReplicaSpecs.Worker.replicas" does not exist'


def wait_counted(here: Cluster, name: str, expected: int, allowed: int) -> None:
    policy = client.PolicyV1Api(here.core.api_client)

    def is_counted() -> bool:
        status = policy.read_namespaced_pod_disruption_budget(name, here.namespace).status
        return status is not None and (status.expected_pods, status.disruptions_allowed) == (expected, allowed)

    until(is_counted)


def evict(here: Cluster, pod: str) -> None:
    here.core.create_namespaced_pod_eviction(
        pod, here.namespace, client.V1Eviction(metadata={"name": pod, "namespace": here.namespace})
    )


def test_the_example_allows_what_it_says(here: Cluster) -> None:
    text = (EXAMPLES / "pytorch-disruption-budget.yaml").read_text(encoding="utf-8")
    manifest, *budgets = yaml.safe_load_all(text)
    policy = client.PolicyV1Api(here.core.api_client)
    for budget in budgets:
        policy.create_namespaced_pod_disruption_budget(here.namespace, budget)
    job = here.create(manifest)
    job.wait_running()
    wait_counted(here, f"{job.name}-workers", 3, 1)
    wait_counted(here, f"{job.name}-master", 1, 0)
    with pytest.raises(client.ApiException) as refused:
        evict(here, f"{job.name}-master-0")
    assert refused.value.status == 429
    evict(here, f"{job.name}-worker-2")


def replicas(container: str, **counts: int) -> dict[str, Any]:
    template = shell_template(UNTIL_ENDED, None, container)
    return {type_: {"replicas": n, "restartPolicy": "OnFailure", "template": template} for type_, n in counts.items()}


def pytorch(name: str, **counts: int) -> dict[str, Any]:
    spec = {"pytorchReplicaSpecs": replicas("pytorch", **counts)}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name}, "spec": spec}


TFJOB: dict[str, Any] = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "TFJob",
    "metadata": {"name": "tensorflow"},
    "spec": {"tfReplicaSpecs": replicas("tensorflow", Worker=2)},
}


@pytest.mark.parametrize("budget", [{"maxUnavailable": 1}, {"minAvailable": "50%"}], ids=["number", "percentage"])
@pytest.mark.parametrize(
    ("manifest", "labels", "result"),
    [
        pytest.param(pytorch("both", Master=1, Worker=2), {}, (2, 2), id="both types, of which one is counted"),
        pytest.param(
            pytorch("workers", Master=1, Worker=2), {"dljob.operator/replica-type": "worker"}, (2, 1), id="the workers"
        ),
        pytest.param(pytorch("alone", Master=1), {}, NO_WORKER, id="a job without workers"),
        pytest.param(pytorch("lower", Master=1, worker=2), {}, NO_WORKER, id="a job with another spelling"),
        pytest.param(TFJOB, {}, NO_SCALE, id="a kind without scale"),
    ],
)
def test_what_kubernetes_counts(
    here: Cluster, manifest: dict[str, Any], labels: dict[str, str], result: Any, budget: dict[str, Any]
) -> None:
    name = manifest["metadata"]["name"]
    selector = {"matchLabels": {"training.kubeflow.org/job-name": name, **labels}}
    client.PolicyV1Api(here.core.api_client).create_namespaced_pod_disruption_budget(
        here.namespace, {"metadata": {"name": name}, "spec": {**budget, "selector": selector}}
    )
    here.create(manifest).wait_running()
    if isinstance(result, tuple):
        wait_counted(here, name, *result)
        return
    here.wait_event(name, "Warning", "CalculateExpectedPodCountFailed", result)
    wait_counted(here, name, 0, 0)

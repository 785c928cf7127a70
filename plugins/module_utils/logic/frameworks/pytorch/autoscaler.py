"""The HorizontalPodAutoscaler of an elastic PyTorch job: it changes the number of workers, by the metrics of the job.

Source: training-operator's v1 PyTorchJob (1.9), ``spec.elasticPolicy.metrics``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.pytorch.rendezvous import (
    WORKER,
    worker_bounds,
)
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Cluster

METRIC_TYPES = ("Resource", "ContainerResource", "Pods", "Object", "External")
"""Those of autoscaling/v2."""
_PATH = "spec.elasticPolicy.metrics"


def validate(cluster: Cluster) -> Iterator[str]:
    """The errors of ``spec.elasticPolicy.metrics``, one sentence each. Kubernetes checks the rest of a metric."""
    policy = cluster["spec"].get("elasticPolicy")
    metrics = policy.get("metrics") if isinstance(policy, Mapping) else None
    if metrics is None:
        return
    if cluster["job"]["kind"] == c.KIND_ANY:
        yield f"{_PATH}: a {c.KIND_ANY} has no scale subresource, which this needs: remove it, or use a PyTorchJob"
        return
    if not isinstance(metrics, list):
        yield f"{_PATH} must be a list of metrics of autoscaling/v2"
        return
    for index, metric in enumerate(metrics):
        if not isinstance(metric, Mapping):
            yield f"{_PATH}[{index}] must be a map with type and the field of that type"
        elif metric.get("type") not in METRIC_TYPES:
            yield f"{_PATH}[{index}].type is {metric.get('type')!r}: it must be one of {', '.join(METRIC_TYPES)}"


def objects(cluster: Cluster) -> Sequence[Mapping[str, Any]]:
    """The HorizontalPodAutoscaler, named as the job; none without metrics. It exists only while the job may run."""
    policy = cluster["spec"].get("elasticPolicy") or {}
    if not policy.get("metrics"):
        return ()
    job = cluster["job"]
    least, most = worker_bounds(cluster["replicas"], policy)
    # with fewer workers than its groups have the job would be invalid
    grouped = sum(group["replicas"] for group in (cluster["templates"][WORKER].get("groups") or {}).values())
    return (
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": job["name"], "annotations": {c.ANNOTATION_LIFETIME: c.LIFETIME_ACTIVE}},
            "spec": {
                "scaleTargetRef": {"apiVersion": job["api_version"], "kind": job["kind"], "name": job["name"]},
                "minReplicas": max(least, grouped),
                "maxReplicas": most,
                "metrics": [dict(metric) for metric in policy["metrics"]],
            },
        },
    )

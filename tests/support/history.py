"""Jobs as the history reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def stamp(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def job(name: str = "digits", *, version: int = 1, **more: Any) -> dict[str, Any]:
    """A PyTorchJob of the namespace `team`, created an hour ago. `more` adds to its metadata."""
    meta = {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {**meta, "creationTimestamp": stamp(NOW - timedelta(hours=1)), **more},
        "spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}},
    }


def ended(name: str = "digits", state: str = "Succeeded", at: datetime = NOW, **more: Any) -> dict[str, Any]:
    """The same job, which ran from 50 minutes before `NOW` to `at`."""
    status = {
        "state": state,
        "startTime": stamp(NOW - timedelta(minutes=50)),
        "completionTime": stamp(at),
        "conditions": [
            {"type": "Running", "status": "True", "lastTransitionTime": stamp(NOW - timedelta(minutes=45))},
            {"type": state, "status": "True", "reason": f"Job{state}", "message": f"it {state.lower()}"},
        ],
    }
    return {**job(name, **more), "status": status}


USAGE = {
    "asOf": stamp(NOW - timedelta(minutes=10)),
    "seconds": {"queued": 60, "starting": 40, "running": 2000, "other": 7},
    "resourceSeconds": {"cpu": 100, "memory": 200, "nvidia.com/gpu": 300, "google.com/tpu": 50},
    "held": {"cpu": 1, "nvidia.com/gpu": 2},
    "interruptions": [
        {"cause": "Startup", "count": 1, "seconds": 40},
        {"cause": "Disruption", "count": 3, "seconds": 9, "resourceSeconds": {"cpu": 4}},
    ],
}

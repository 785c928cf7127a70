"""Kubernetes' controller of batch/v1 Jobs, as far as a Job with one pod at a time needs it, on a fake API server."""

from __future__ import annotations

from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from support.fake_api_server import FakeApiServer

DEFAULT_BACKOFF_LIMIT = 6
_LIMIT = {
    "type": "Failed",
    "status": "True",
    "reason": "BackoffLimitExceeded",
    "message": "Job has reached the specified backoff limit",
}
JOBS = "/apis/batch/v1/namespaces/{}/jobs"
PODS = "/api/v1/namespaces/{}/pods"
EVENTS = "/api/v1/namespaces/{}/events"


def work(server: FakeApiServer, namespace: str = "default") -> bool:
    """Create the pod of each Job that has none, and report the Jobs that have ended; whether there was something."""
    written = len(server.watch_events)
    for job in list(server.objects.get((namespace, "jobs"), {}).values()):
        if job["metadata"].get("deletionTimestamp") or _conditions(job):
            continue
        phases = [pod["status"]["phase"] for pod in _pods(server, namespace, job)]
        failed = phases.count("Failed")
        if "Succeeded" in phases:
            _finish(server, namespace, job, {"type": "Complete", "status": "True"})
        elif failed > job["spec"].get("backoffLimit", DEFAULT_BACKOFF_LIMIT):
            _finish(server, namespace, job, _LIMIT)
        elif _restarted_too_often(server, namespace, job):
            for pod in _pods(server, namespace, job):
                server.request(
                    "DELETE", f"{PODS.format(namespace)}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0}
                )
            _finish(server, namespace, job, _LIMIT)
        elif failed == len(phases):
            _create(server, namespace, job, failed)
    return len(server.watch_events) > written


def _restarted_too_often(server: FakeApiServer, namespace: str, job: Any) -> bool:
    """Whether the kubelet's restarts under OnFailure reach the limit; with a limit of 0 the first one exceeds it."""
    if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    statuses = [one for pod in _pods(server, namespace, job) for one in pod["status"].get("containerStatuses") or ()]
    restarts = sum(one.get("restartCount") or 0 for one in statuses)
    return restarts > 0 and restarts >= job["spec"].get("backoffLimit", DEFAULT_BACKOFF_LIMIT)


def _conditions(job: Any) -> list[Any]:
    return list((job.get("status") or {}).get("conditions") or ())


def _pods(server: FakeApiServer, namespace: str, job: Any) -> list[Any]:
    uid = job["metadata"]["uid"]
    pods = server.objects.get((namespace, "pods"), {}).values()
    return [pod for pod in pods if any(one["uid"] == uid for one in pod["metadata"].get("ownerReferences") or ())]


def _finish(server: FakeApiServer, namespace: str, job: Any, condition: Any) -> None:
    path = f"{JOBS.format(namespace)}/{job['metadata']['name']}/status"
    server.request("PUT", path, {**job, "status": {"conditions": [condition]}})


def _create(server: FakeApiServer, namespace: str, job: Any, number: int) -> None:
    owner = {name: job["metadata"][name] for name in ("name", "uid")}
    template = job["spec"]["template"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **template["metadata"],
            "name": f"{job['metadata']['name']}-{number}",  # random in Kubernetes
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "controller": True, **owner}],
        },
        "spec": template["spec"],
    }
    try:
        server.request("POST", PODS.format(namespace), pod)
    except ApiError as e:
        if e.status != 403:
            raise
        _report(server, namespace, job, f"Error creating: {e.message}")


def _report(server: FakeApiServer, namespace: str, job: Any, message: str) -> None:
    """The one Event on a Job whose pod is denied; of another denial it is written anew, of the same it counts."""
    name, known = f"{job['metadata']['name']}.denied", server.objects.get((namespace, "events"), {})
    if name in known and known[name]["message"] == message:
        return
    known.pop(name, None)
    involved = {"kind": "Job", "namespace": namespace, **{key: job["metadata"][key] for key in ("name", "uid")}}
    times = dict.fromkeys(("firstTimestamp", "lastTimestamp"), clock.stamp(server.now()))
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": involved, **times}
    server.request("POST", EVENTS.format(namespace), {**event, "reason": "FailedCreate", "message": message})

"""Applies a job, and shows its pods' phases and its first worker's log while it runs."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
import yaml
from kubernetes import client, config, watch

ACCURACY = re.compile(r"test_accuracy=([0-9.]+)")


class TrainingError(Exception):
    """The training failed or did not finish in time."""


@dataclass(frozen=True)
class Result:
    """The job's final status. ``accuracy`` is read from the training's log, ``None`` if the log does not contain it."""

    state: str
    reason: str
    status: Mapping[str, Any]
    accuracy: float | None
    seconds: float

    def text(self) -> str:
        """The status' main fields and the accuracy, as text."""
        shown = {k: v for k, v in self.status.items() if k not in ("specHash", "conditions", "observedGeneration")}
        conditions = [f"{x['type']}={x['status']}" for x in self.status.get("conditions") or ()]
        lines = yaml.safe_dump({"status": shown}, sort_keys=False).splitlines()
        lines += [
            f"conditions: {', '.join(conditions)}",
            f"test accuracy: {self.accuracy}   (job took {self.seconds:.1f} s)",
        ]
        return "\n".join(f"    {line}" for line in lines)


class Job:
    """One job in the cluster, by its manifest."""

    def __init__(self, kubeconfig: Path, manifest: Mapping[str, Any]) -> None:
        api = config.new_client_from_config(str(kubeconfig))
        # Any: in the client's annotations every field of every object may be None
        self._custom: Any = client.CustomObjectsApi(api)
        self._core: Any = client.CoreV1Api(api)
        self._manifest = manifest
        group, _, version = manifest["apiVersion"].partition("/")
        self.name: str = manifest["metadata"]["name"]
        self.namespace: str = manifest["metadata"].get("namespace", "default")
        self._where = (group, version, self.namespace, manifest["kind"].lower() + "s")

    def create(self) -> str:
        """Create the job, after deleting an earlier one of that name; returns its uid."""
        self.delete()
        created = self._custom.create_namespaced_custom_object(*self._where, self._manifest)
        return str(created["metadata"]["uid"])

    def delete(self) -> None:
        """Delete the job and wait until it and its pods are gone."""
        try:
            gone = self._custom.get_namespaced_custom_object(*self._where, self.name)
            self._custom.delete_namespaced_custom_object(*self._where, self.name, propagation_policy="Foreground")
        except client.ApiException as e:
            if e.status == 404:
                return
            raise
        stream = watch.Watch().stream(
            self._custom.list_namespaced_custom_object,
            *self._where,
            field_selector=f"metadata.name={self.name}",
            resource_version=gone["metadata"]["resourceVersion"],
            timeout_seconds=120,
        )
        if not any(event["type"] == "DELETED" for event in stream):
            raise TrainingError(f"the earlier job {self.name} still exists after 120 s")

    def changes(self, timeout: float) -> Any:
        """Watch events of the job."""
        stream = watch.Watch().stream(
            self._custom.list_namespaced_custom_object,
            *self._where,
            field_selector=f"metadata.name={self.name}",
            timeout_seconds=int(timeout),
        )
        return (event["object"] for event in stream)

    def pods(self, uid: str, timeout: float) -> Any:
        """Watch events of the job's pods."""
        stream = watch.Watch().stream(
            self._core.list_namespaced_pod,
            self.namespace,
            label_selector=f"dljob.operator/job-uid={uid}",
            timeout_seconds=int(timeout),
        )
        return ((event["type"], event["object"]) for event in stream)

    def log(self, pod: str, container: str, follow: bool = False) -> Any:
        """The container's log: a string or, with ``follow``, a stream of lines."""
        if not follow:
            return self._core.read_namespaced_pod_log(pod, self.namespace, container=container)
        return watch.Watch().stream(
            self._core.read_namespaced_pod_log, name=pod, namespace=self.namespace, container=container
        )

    def accuracy(self, uid: str) -> float | None:
        """The test accuracy from a worker's log."""
        selector = f"dljob.operator/job-uid={uid},dljob.operator/replica-type=worker"
        for pod in self._core.list_namespaced_pod(self.namespace, label_selector=selector).items:
            found = ACCURACY.findall(self.log(pod.metadata.name, pod.spec.containers[0].name))
            if found:
                return float(found[-1])
        return None


class Show:
    """Prints lines with the time since the start. Thread-safe."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self.over = threading.Event()
        """Set when the job has finished; then the follower threads ignore API errors, since the cluster may stop."""

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._started

    def line(self, text: str) -> None:
        with self._lock:
            print(f"    {self.elapsed:6.1f} s  {text}", flush=True)


def run(kubeconfig: Path, manifest: Mapping[str, Any], limit: float, keep: bool) -> Result:
    """Apply ``manifest`` and wait at most ``limit`` seconds for the job to finish; ``keep`` does not delete it."""
    job = Job(kubeconfig, manifest)
    show = Show()
    uid = job.create()
    show.line(f"{manifest['kind']} {job.name} created")
    threading.Thread(target=follow_pods, args=(job, uid, show, limit), daemon=True).start()
    status: Mapping[str, Any] = {}
    shown = ""
    for current in job.changes(limit):
        status = current.get("status") or {}
        line = (
            f"job: {status.get('phase', '-')}, state {status.get('state', '-')}, replicas {status.get('replicas', '-')}"
        )
        if status.get("reason"):
            line += f" ({status['reason'][:150]})"
        if line != shown and status:
            show.line(line)
            shown = line
        if status.get("phase") in ("Done", "Failed"):
            break
    else:
        raise TrainingError(f"the job did not finish within {limit:.0f} s; last state: {shown}")
    seconds = show.elapsed
    result = Result(str(status.get("state")), str(status.get("reason") or ""), status, job.accuracy(uid), seconds)
    show.over.set()
    if not keep:
        job.delete()
    return result


@contextmanager
def _while_it_lasts(show: Show, what: str) -> Iterator[None]:
    """Print a connection error, unless the job has finished."""
    try:
        yield
    except (client.ApiException, urllib3.exceptions.HTTPError) as e:
        if not show.over.is_set():
            show.line(f"({what} cannot be followed: {e})")


def follow_pods(job: Job, uid: str, show: Show, limit: float) -> None:
    """Show each pod's phases, and worker 0's log."""
    with _while_it_lasts(show, "the pods"):
        phases: dict[str, str] = {}
        following: set[str] = set()
        for event, pod in job.pods(uid, limit):
            name, phase = pod.metadata.name, "Deleted" if event == "DELETED" else pod.status.phase
            if phases.get(name) != phase:
                phases[name] = phase
                show.line(f"pod {name}: {phase}")
            first_worker = pod.metadata.labels.get("dljob.operator/replica-type") == "worker" and (
                pod.metadata.labels.get("dljob.operator/replica-index") == "0"
            )
            if first_worker and phase == "Running" and name not in following:
                following.add(name)
                threading.Thread(
                    target=follow_log, args=(job, name, pod.spec.containers[0].name, show), daemon=True
                ).start()


def follow_log(job: Job, pod: str, container: str, show: Show) -> None:
    with _while_it_lasts(show, f"the log of {pod}"):
        for line in job.log(pod, container, follow=True):
            show.line(f"worker 0 | {line}")

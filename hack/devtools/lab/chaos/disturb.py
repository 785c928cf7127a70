"""Faults on jobs and pods: what users and the cluster do to them, through the API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from devtools.lab.chaos import workload
from devtools.lab.chaos.faults import Fault
from devtools.lab.chaos.history import JobRecord, is_final
from devtools.lab.chaos.recorder import Recorder
from devtools.lab.chaos.resources import PODS, collection_of
from devtools.testbed.client import MERGE, Client

_JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True)
class Disturber:
    """Applies a fault to one of the present jobs or pods. Each method returns what it hit, "" for nothing."""

    client: Client
    recorder: Recorder
    namespace: str
    later: Callable[[float, Callable[[], None]], None]
    """Calls the function after so many seconds, or when the round settles."""

    def apply(self, fault: Fault) -> str:
        kind, _, what = fault.kind.partition(" ")
        return self._pod(fault, what) if kind == "pod" else self._job(fault, what)

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Create a job."""
        path = collection_of(manifest, self.namespace)
        made = self.client.request("POST", path, dict(manifest))
        # the answer to a repeated request may be that the job exists
        made = made or self.client.request("GET", f"{path}/{manifest['metadata']['name']}")
        if made:
            with self.recorder.history() as history:
                history.created.add(made["metadata"]["uid"])

    def resume(self, manifest: Mapping[str, Any]) -> None:
        """Let a suspended job run."""
        patch = workload.suspend(manifest, False)
        if patch is not None:
            self.client.request("PATCH", self._path(manifest), patch, MERGE)

    def _pod(self, fault: Fault, what: str) -> str:
        with self.recorder.history() as history:
            live = sorted((pod for pod in history.pods.values() if pod.is_live), key=lambda pod: pod.name)
            if not live:
                return ""
            pod = fault.chosen(live)
            history.disturbed.add(pod.job)
        path = f"{PODS.collection(self.namespace)}/{pod.name}"
        # a later pod of this name, which the recorder has not seen, may belong to another job
        only: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
        if what == "evicted":
            meta = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name}}
            self.client.request("POST", f"{path}/eviction", {**meta, "deleteOptions": only})
        else:
            self.client.request("DELETE", path, {**only, "gracePeriodSeconds": 0} if what == "killed" else only)
        return f"pod {pod.name}"

    def _job(self, fault: Fault, what: str) -> str:
        with self.recorder.history() as history:
            present = sorted((job for job in history.jobs.values() if job.exists), key=lambda job: job.name)
            jobs = [job for job in present if what in ("deleted", "re-created") or self._can(job, what)]
            if not jobs:
                return ""
            job = fault.chosen(jobs)
            (history.edited if what in ("edited", "suspended") else history.deleted).add(job.uid)
        path = self._path(job.manifest)
        if what == "edited":
            self.client.request("PATCH", path, workload.edit(job.manifest), _JSON_PATCH)
        elif what == "suspended":
            self.client.request("PATCH", path, workload.suspend(job.manifest, True), MERGE)
        else:
            # what the recorder has seen may be out of date: a job of this name that it has not seen must stay
            only = {"propagationPolicy": "Background", "preconditions": {"uid": job.uid}}
            self.client.request("DELETE", path, only)
        if what == "re-created":
            self.create(workload.anew(job.manifest))
        if what in ("suspended", "re-created"):
            self.later(fault.seconds, lambda: self.resume(job.manifest))
        return f"{job.kind} {job.name}"

    def _can(self, job: JobRecord, what: str) -> bool:
        if is_final(job.ended):
            return False
        if what == "edited":
            return workload.can_edit(job.manifest)
        return workload.suspend(job.manifest, True) is not None

    def _path(self, manifest: Mapping[str, Any]) -> str:
        return f"{collection_of(manifest, self.namespace)}/{manifest['metadata']['name']}"

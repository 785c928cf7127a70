"""Faults on jobs and pods: what users and the cluster do to them, through the API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from devtools.lab.chaos import workload
from devtools.lab.chaos.faults import Fault
from devtools.lab.chaos.history import JobRecord, is_final
from devtools.lab.chaos.recorder import Recorder
from devtools.lab.chaos.upstream import MERGE, Client
from devtools.lab.chaos.workload import resource_of

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

    def create(self, path: str, manifest: Mapping[str, Any]) -> None:
        """Create a job in the collection ``path``."""
        made = self.client.request("POST", path, dict(manifest))
        # the answer to a repeated request may be that the job exists
        self.recorder.created(made or self.client.request("GET", f"{path}/{manifest['metadata']['name']}"))

    def resume(self, path: str, manifest: Mapping[str, Any]) -> None:
        """Let a suspended job run."""
        patch = workload.suspend(manifest, False)
        if patch is not None:
            self.client.request("PATCH", path, patch, MERGE)

    def _pod(self, fault: Fault, what: str) -> str:
        live = [pod for pod in self.recorder.pods() if pod.is_live]
        if not live:
            return ""
        pod = fault.chosen(live)
        self.recorder.disturbs(pod.job)
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod.name}"
        # a later pod of this name, which the recorder has not seen, may belong to another job
        only: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
        if what == "evicted":
            meta = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name}}
            self.client.request("POST", f"{path}/eviction", {**meta, "deleteOptions": only})
        else:
            self.client.request("DELETE", path, {**only, "gracePeriodSeconds": 0} if what == "killed" else only)
        return f"pod {pod.name}"

    def _job(self, fault: Fault, what: str) -> str:
        jobs = [job for job in self.recorder.jobs() if what in ("deleted", "re-created") or self._can(job, what)]
        if not jobs:
            return ""
        job = jobs[int(fault.pick * len(jobs))]
        path = self._path(job)
        if what == "edited":
            self.recorder.edited(job.uid)
            self.client.request("PATCH", path, workload.edit(job.manifest), _JSON_PATCH)
        elif what == "suspended":
            self.recorder.edited(job.uid)
            self.client.request("PATCH", path, workload.suspend(job.manifest, True), MERGE)
            self.later(fault.seconds, lambda: self.resume(path, job.manifest))
        else:
            self.recorder.deletes(job.uid)
            # what the recorder has seen may be out of date: a job of this name that it has not seen must stay
            only = {"propagationPolicy": "Background", "preconditions": {"uid": job.uid}}
            self.client.request("DELETE", path, only)
            if what == "re-created":
                again = workload.anew(job.manifest)
                self.create(resource_of(again).path(self.namespace), again)
                self.later(fault.seconds, lambda: self.resume(path, job.manifest))
        return f"{job.kind} {job.name}"

    def _can(self, job: JobRecord, what: str) -> bool:
        if is_final(job.ended):
            return False
        if what == "edited":
            return workload.can_edit(job.manifest)
        return workload.suspend(job.manifest, True) is not None

    def _path(self, job: JobRecord) -> str:
        return f"{resource_of(job.manifest).path(self.namespace)}/{job.name}"

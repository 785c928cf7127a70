"""An in-memory cluster: it applies plans like the API server and simulates pods like the kubelet."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import paths
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner, is_owned_by
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.inputs import PlanSettings
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.invalid import may_have_pods, plan_invalid
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.plan import plan
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import early_ends, end_order, losses
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import has_finished
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import JSON_PATCH
from ansible_collections.dljob.operator.plugins.module_utils.shared.delete_options import delete_options
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import (
    MERGE,
    OWNED_KINDS,
    REPLACE,
    owned_kind,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion, Plan
from ansible_collections.dljob.operator.plugins.module_utils.values.reports import Reports

from support import batch_controller, native_gangs
from support.builders import MXNET, NOW, MXJob, Resource
from support.fake_api_server import FakeApiServer

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
DNS_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def is_quiet(done: Plan) -> bool:
    """Whether a plan writes nothing."""
    return (
        not (
            done.auxiliary_objects
            or done.services
            or done.pods
            or done.deletions
            or done.ensured_objects
            or done.delete_job
        )
        and done.status is None
    )


class FakeCluster:
    """One job and its owned objects, in an API server in memory. The kubelet's part is changed in place.

    Deleted running pods terminate until :meth:`kubelet_deletes`.
    """

    def __init__(
        self, job: MXJob | Resource, framework: Framework = MXNET, settings: PlanSettings | None = None
    ) -> None:
        made = job.resource() if isinstance(job, MXJob) else job
        self.framework = framework
        self.settings = settings or PlanSettings()
        self.now = NOW
        self.api = FakeApiServer(lambda: self.now)
        metadata = made["metadata"]
        self._namespace = metadata.get("namespace", "default")
        self._job = (self._namespace, paths.plural(made["kind"])), metadata["name"]
        self.api.add(self._job[0], made)
        self.events: list[EventNote] = []
        self.created: list[str] = []
        self.is_deleted = False
        self.reports: Callable[[datetime], Reports | None] = lambda now: None
        """What the engine knows of the programs' reports at that time."""

    # --- the objects

    @property
    def resource(self) -> Resource:
        """The job."""
        key, name = self._job
        return self.api.objects[key][name]

    @resource.setter
    def resource(self, resource: Resource) -> None:
        key, name = self._job
        self.api.objects[key][name] = resource

    @property
    def pods(self) -> dict[str, Resource]:
        return self._objects("Pod")

    @pods.setter
    def pods(self, pods: dict[str, Resource]) -> None:
        self.api.objects[self._namespace, "pods"] = pods

    @property
    def services(self) -> dict[str, Resource]:
        return self._objects("Service")

    @property
    def others(self) -> dict[str, dict[str, Resource]]:
        """By the registry's name of the kind."""
        return {kind: self._objects(kind) for kind in OWNED_KINDS if kind not in ("Pod", "Service")}

    def _objects(self, kind: str) -> dict[str, Resource]:
        owned = OWNED_KINDS[kind]
        found = self.api.objects.setdefault((self._namespace, owned.plural), {})
        if owned.name == owned.kind:
            return found
        # PodGroups of several API groups
        return {name: one for name, one in found.items() if one["apiVersion"] == owned.api_version}

    # --- the operator

    def planned(self) -> Plan:
        """The plan of the next reconcile."""
        watched = {kind: list(objects.values()) for kind, objects in self.others.items() if OWNED_KINDS[kind].watched}
        observed = build_observed_state(
            self._owner, self.framework.container, self.pods.values(), self.services.values(), watched
        )
        observed = dataclasses.replace(observed, reports=self.reports(self.now))
        try:
            job = parse_job(self.resource, self.framework)
        except InvalidJob as e:
            seen = observed if may_have_pods(self.resource) else Observed()
            return plan_invalid(self.resource, self.framework, e.problems, self.now, seen)
        return plan(job, self.framework, observed, self.now, self.settings)

    def step(self, status_gets_lost: bool = False) -> Plan:
        """One reconcile. With ``status_gets_lost`` the operator crashes before the status write."""
        self.api.release_groups()
        self.run_batch_jobs()
        done = self.planned()
        self.carry_out(done, status_gets_lost)
        self.run_batch_jobs()
        return done

    def carry_out(self, done: Plan, status_gets_lost: bool = False, read: str = "") -> None:
        """Write a plan that was made of the job with the resourceVersion ``read``, the present one by default.

        Raises :class:`ApiError` where the API server refuses an object; it refuses the status of a stale job.
        """
        read = read or self.version
        deleted = {deletion.name for deletion in done.deletions if deletion.kind == "ConfigMap"}
        needed = {pod["metadata"]["annotations"].get("dljob.operator/shared-environment") for pod in done.pods}
        assert not deleted & needed, "a plan does not delete a ConfigMap that its new pods need"
        for manifest in done.auxiliary_objects:
            kind = owned_kind(manifest)
            self._create(manifest, replace=kind.update == MERGE or (not kind.watched and kind.update == REPLACE))
        for manifest in (*done.services, *done.pods):
            self._create(manifest)
        for deletion in done.deletions:
            self._delete(deletion)
        for manifest in done.ensured_objects:
            self._create(manifest, replace=True)
        self._check_ranks()
        if status_gets_lost:
            return
        if done.status is not None and self._write_status(done.status, read):
            self.events.extend(done.events)
        self.is_deleted = self.is_deleted or done.delete_job

    def settle(self) -> list[Plan]:
        """Reconcile until there is nothing to do; the kubelet removes terminating pods.

        The clock advances only by the grace period that replicas have once the success target has succeeded, and by the
        seconds after which a failure is decided.
        """
        plans = []
        for _ in range(12):
            plans.append(self.step())
            if is_quiet(plans[-1]):
                if any(self._is_terminating(p) for p in self.pods.values()):
                    self.kubelet_deletes()
                elif self._is_ending and plans[-1].requeue_after:
                    self.advance(plans[-1].requeue_after)
                elif self._is_undecided(plans[-1]):
                    self.advance(end_order.REPORT_LAG)
                else:
                    return plans
        raise AssertionError(f"the job does not settle: {plans[-2:]}")

    def _is_undecided(self, last: Plan) -> bool:
        owner, container = self._owner, self.framework.container
        watched = {kind: list(objects.values()) for kind, objects in self.others.items() if OWNED_KINDS[kind].watched}
        observed = build_observed_state(owner, container, self.pods.values(), self.services.values(), watched)
        try:
            job = parse_job(self.resource, self.framework)
        except InvalidJob:
            return False
        if has_finished(job):
            return False
        if last == Plan(requeue_after=early_ends.mark(job, self.framework, observed, self.now)[1]):
            return last.requeue_after is not None
        lost = losses.find(job, observed, observed, self.status, self.now)
        return bool(lost.undecided) or (lost.unexplained is not None and last == Plan(requeue_after=lost.unexplained))

    @property
    def _is_ending(self) -> bool:
        return self.status.get("phase") == "CleanUp" or "has exited with 0: waiting" in self.status.get("reason", "")

    # --- the user

    def edit(self, change: Callable[[Any], object]) -> None:
        changed = copy.deepcopy(self.resource)
        change(changed["spec"])
        self.api.request("PUT", paths.object_path(changed), changed)

    def user_deletes(self, name: str) -> None:
        """Delete a pod like ``kubectl delete --wait=false``."""
        self._delete(Deletion("Pod", name, self.pods[name]["metadata"]["uid"]))

    # --- the kubelet

    def run_all(self) -> None:
        """Start all pending pods."""
        for pod in self.pods.values():
            self.run_pod(pod)

    def run(self, type_: str, index: int) -> None:
        """Start one pending pod."""
        self.run_pod(self.pod(type_, index))

    def run_pod(self, pod: Any) -> None:
        waits = self._is_terminating(pod) or not native_gangs.may_start(self.api.objects, pod)
        if pod["status"]["phase"] == "Pending" and not waits:
            self.set_state(pod, "Running", {"running": {"startedAt": self.time}})

    def start(self) -> None:
        """Reconcile a new job until all its replicas run."""
        self.settle()
        self.run_all()
        self.settle()

    def exit(self, type_: str, index: int, code: int, reason: str = "", message: str = "", seconds: float = 0) -> None:
        """The framework's container exits ``seconds`` from now, and the kubelet applies the pod's restart policy."""
        pod = self.pod(type_, index)
        finished = clock.stamp(self.now + timedelta(seconds=seconds))
        ended = {"exitCode": code, "reason": reason or ("Error" if code else "Completed"), "finishedAt": finished}
        before = (pod["status"].get("containerStatuses") or [{}])[0].get("state") or {}
        started = (before.get("running") or {}).get("startedAt")
        state = {"terminated": {**ended, "message": message, **({"startedAt": started} if started else {})}}
        policy = pod["spec"]["restartPolicy"]
        if policy == "Always" or (policy == "OnFailure" and code):
            before = pod["status"]["containerStatuses"][0]
            restarts = before["restartCount"] + 1
            self.set_state(pod, "Running", {"running": {"startedAt": self.time}})
            pod["status"]["containerStatuses"][0] |= {"restartCount": restarts, "lastState": state}
        else:
            self.set_state(pod, "Failed" if code else "Succeeded", state)

    def evict(self, type_: str, index: int) -> None:
        pod = self.pod(type_, index)
        pod["status"] |= {
            "phase": "Failed",
            "reason": "Evicted",
            "message": "The node was low on resource: memory.",
            "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}],
        }

    def kubelet_deletes(self) -> None:
        """Remove the terminating pods."""
        self.pods = {name: p for name, p in self.pods.items() if not self._is_terminating(p)}

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    # --- inspection

    @property
    def version(self) -> str:
        """The job's resourceVersion."""
        return str(self.resource["metadata"]["resourceVersion"])

    @property
    def time(self) -> str:
        return clock.stamp(self.now)

    @property
    def status(self) -> Mapping[str, Any]:
        return self.resource.get("status") or {}

    @property
    def outcome(self) -> tuple[str, str]:
        return self.status["phase"], self.status["state"]

    @property
    def conditions(self) -> list[tuple[str, str]]:
        return [(c["type"], c["status"]) for c in self.status["conditions"]]

    def pod(self, type_: str, index: int) -> Resource:
        """The pod of a replica; fails unless there is exactly one."""
        (found,) = (p for p in self.pods.values() if _replica(p) == (type_, index))
        return found

    def attempt(self, type_: str, index: int) -> int:
        return int(self.pod(type_, index)["metadata"]["labels"]["dljob.operator/attempt"])

    def replicas(self) -> list[str]:
        return sorted(f"{type_}-{index}" for type_, index in map(_replica, self.pods.values()))

    # --- implementation

    def run_batch_jobs(self) -> None:
        """The controller of batch Jobs and the garbage collector do their parts."""
        if any(flavor.batch_jobs for flavor in self.framework.flavors):
            batch_controller.work(self.api, self._namespace)
            while self.api.collect_garbage():
                pass

    def _create(self, manifest: Mapping[str, Any], replace: bool = False) -> None:
        """Create an object; one of that name may exist if the job owns it, and is replaced then or left."""
        name, kind = manifest["metadata"]["name"], manifest["kind"]
        assert (DNS_LABEL if kind == "Pod" else DNS_1035).fullmatch(name), name
        try:
            self.api.request("POST", paths.collection(manifest["apiVersion"], kind, self._namespace), manifest)
        except ApiError as e:
            present = self._objects(owned_kind(manifest).name)[name]
            if e.reason != "AlreadyExists" or not is_owned_by(present, self._owner):
                raise
            if replace:
                known = {field: present["metadata"][field] for field in ("uid", "resourceVersion")}
                body = {**manifest, "metadata": {**manifest["metadata"], **known}}
                if fields := owned_kind(manifest).fields:
                    theirs = {name: value for name, value in present["spec"].items() if name not in fields}
                    body["spec"] = {**manifest["spec"], **theirs}
                    body["metadata"] = {**present["metadata"], **body["metadata"]}
                self.api.request("PUT", paths.object_path(manifest), body)
            return
        if kind == "Pod":
            self.created.append(name)

    @property
    def _owner(self) -> Owner:
        return Owner(self._namespace, self.resource["metadata"]["uid"])

    def _delete(self, deletion: Deletion) -> None:
        path = f"{paths.collection(deletion.api_version, deletion.kind, self._namespace)}/{deletion.name}"
        try:
            kind = owned_kind({"kind": deletion.kind, "apiVersion": deletion.api_version})
            options = delete_options(deletion.uid, kind.propagation)
            self.api.request("DELETE", path, options)
        except ApiError as e:
            if e.status not in (404, 409):
                raise

    def _write_status(self, status: Mapping[str, Any], read: str) -> bool:
        patch = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": read},
            {"op": "add", "path": "/status", "value": status},
        ]
        try:
            self.api.request("PATCH", paths.object_path(self.resource, "status"), patch, None, JSON_PATCH)
        except ApiError as e:
            if e.reason != "Conflict":
                raise
            return False
        return True

    def _check_ranks(self) -> None:
        # a batch Job keeps its failed pods
        ranks = [
            _replica(p)
            for p in self.pods.values()
            if p["status"]["phase"] != "Failed" or p["metadata"]["ownerReferences"][0]["kind"] != "Job"
        ]
        assert len(ranks) == len(set(ranks)), f"two pods of one rank: {sorted(self.pods)}"

    def set_state(self, pod: Resource, phase: str, state: Mapping[str, Any]) -> None:
        container = self.framework.container_of([one["name"] for one in pod["spec"]["containers"]])
        status = {"name": container, "restartCount": 0, "state": dict(state)}
        before = pod["status"].get("containerStatuses")
        if before:
            status = {**before[0], **status, "restartCount": before[0]["restartCount"]}
        ready = {"type": "Ready", "status": str("running" in state)}
        disrupted = [one for one in pod["status"].get("conditions", ()) if one["type"] == "DisruptionTarget"]
        pod["status"] = {"phase": phase, "containerStatuses": [status], "conditions": [*disrupted, ready]}

    @staticmethod
    def _is_terminating(pod: Resource) -> bool:
        return bool(pod["metadata"].get("deletionTimestamp"))


def _replica(pod: Mapping[str, Any]) -> tuple[str, int]:
    labels = pod["metadata"]["labels"]
    return labels["dljob.operator/replica-type"], int(labels["dljob.operator/replica-index"])

"""`explain` on a real cluster: the words are those of the scheduler, the kubelet, admission and the operator."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from devtools.lab.chaos.cli import kwok_program
from devtools.testbed.base.settings import settings_from
from devtools.testbed.operator import OperatorProcess
from dljob.api import Api
from dljob.config import load
from dljob.why import Cause, explain
from dljob.why.read import snapshot
from kubernetes import client
from support import gang_races, kueue_jobs, volcano
from support.kueue import GROUP, VERSION
from support.live_jobs import Cluster, Job, Resource, until
from support.small_nodes import small_nodes
from support.why_jobs import CASES, NODE, Case

pytestmark = [pytest.mark.serial, pytest.mark.full]

TIMEOUT = 200.0
KEEP = "example.com/keep"


class Place:
    """A namespace, and what is found of its jobs."""

    def __init__(self, here: Cluster) -> None:
        self.here, self.namespace = here, here.namespace
        (proxy, *_) = here.core.list_namespaced_pod("kube-system", label_selector="k8s-app=kube-proxy").items
        self.root_image = proxy.spec.containers[0].image
        self.jobs: dict[str, Job] = {}

    def create(self, name: str, case: Case) -> Job:
        self.jobs[name] = self.here.create(case.manifest(name, self.namespace, self.root_image))
        return self.jobs[name]

    def explain(self, name: str) -> tuple[Cause, ...]:
        return why(self.here, self.jobs[name])

    def wait(self, cases: Mapping[str, Case]) -> None:
        """Until each job has its cause, with the words; the message lists those that have not."""
        seen: dict[str, Any] = {}

        def all_found() -> bool:
            for name in [one for one in cases if seen.get(one) != ()]:
                causes = self.explain(name)
                is_found = any(shows(one, cases[name]) for one in causes)
                seen[name] = () if is_found else (cases[name].cause, causes)
            return not any(seen.values())

        with suppress(AssertionError):
            until(all_found, timeout=TIMEOUT)
        missing = [
            f"{name}: not {wanted}: {causes}" for name, found in seen.items() if found for wanted, causes in [found]
        ]
        assert not missing, "\n".join(missing)


def shows(cause: Cause, case: Case) -> bool:
    words = " ".join(one.words for one in cause.evidence).lower()
    return cause.id == case.cause and case.words.lower() in words and bool(cause.fix)


def why(here: Cluster, job: Job) -> tuple[Cause, ...]:
    """As ``dljob why`` does, with all rights."""
    return explain(snapshot(reader(here), job.get(), datetime.now(UTC)))


@functools.cache
def reader(here: Cluster) -> Api:
    return Api(load(str(here.kubeconfig), None))


@contextmanager
def namespace(cluster: Path, **labels: str) -> Iterator[Cluster]:
    name = f"test-why-{uuid.uuid4().hex[:8]}"
    here = Cluster(cluster, name)
    here.core.create_namespace({"metadata": {"name": name, "labels": labels}})
    try:
        yield here
    finally:
        here.core.delete_namespace(name)


@pytest.fixture
def place(cluster: Path, operator_log: Path) -> Iterator[Place]:
    """A namespace with claims, and nodes that only exist in the API server."""
    with namespace(cluster) as here, ExitStack() as stack:
        stack.callback(_remove_shared, here)
        for kind, spec, pods in (("cordoned", {"unschedulable": True}, "9"), ("full", {}, "0"), ("dead", {}, "9")):
            _node(here, kind, spec, pods)
        _claim(here, "pending", storageClassName="no-such-class")
        for name in ("far", "lost"):
            _volume(here, name)
            _claim(here, name, storageClassName="", volumeName=f"{here.namespace}-{name}")
        _device_class(here)
        yield Place(here)


def _remove_shared(here: Cluster) -> None:
    core, custom = here.core, client.CustomObjectsApi(here.core.api_client)
    for kind in ("cordoned", "full", "dead"):
        core.delete_node(f"{here.namespace}-{kind}")
    for name in ("far", "lost"):
        with suppress(client.ApiException):
            core.delete_persistent_volume(f"{here.namespace}-{name}")
    custom.delete_cluster_custom_object("resource.k8s.io", "v1", "deviceclasses", here.namespace)


def _node(here: Cluster, kind: str, spec: Resource, pods: str) -> None:
    labels = {NODE: here.namespace, "why-kind": kind}
    name, taint = f"{here.namespace}-{kind}", {"key": NODE, "effect": "NoSchedule"}
    here.core.create_node({"metadata": {"name": name, "labels": labels}, "spec": {**spec, "taints": [taint]}})
    amounts = {"cpu": "4", "memory": "8Gi", "pods": pods}
    here.core.patch_node_status(name, {"status": {"capacity": amounts, "allocatable": amounts}})


def _claim(here: Cluster, name: str, **spec: Any) -> None:
    needs = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"metadata": {"name": name}, "spec": {**needs, **spec}}
    here.core.create_namespaced_persistent_volume_claim(here.namespace, body)


def _volume(here: Cluster, name: str) -> None:
    """A volume of a node that does not exist, for the claim of that name."""
    nowhere = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["nowhere"]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "local": {"path": "/tmp"},
        "claimRef": {"namespace": here.namespace, "name": name},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [nowhere]}]}},
    }
    here.core.create_persistent_volume({"metadata": {"name": f"{here.namespace}-{name}"}, "spec": spec})


def _lose(here: Cluster, name: str) -> None:
    """Delete the volume of a bound claim."""
    until(lambda: here.core.read_namespaced_persistent_volume_claim(name, here.namespace).status.phase == "Bound")
    here.core.delete_persistent_volume(f"{here.namespace}-{name}")
    here.core.patch_persistent_volume(f"{here.namespace}-{name}", {"metadata": {"finalizers": None}})


def _device_class(here: Cluster) -> None:
    custom, version = client.CustomObjectsApi(here.core.api_client), "resource.k8s.io/v1"
    selectors = [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]
    body = {"apiVersion": version, "kind": "DeviceClass", "metadata": {"name": here.namespace}}
    custom.create_cluster_custom_object(
        *version.split("/"), "deviceclasses", {**body, "spec": {"selectors": selectors}}
    )
    request = {"name": "gpu", "exactly": {"deviceClassName": here.namespace}}
    template = {
        "apiVersion": version,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    custom.create_namespaced_custom_object(*version.split("/"), here.namespace, "resourceclaimtemplates", template)


SMALL = {"hard": {"pods": "0"}}
ASKS = {"hard": {"limits.memory": "1Gi"}}
NAMESPACES: dict[str, Case] = {
    "quota": Case("quota", "exceeded quota"),
    "asks": Case("quota-unspecified", "must specify"),
    "range": Case("limit-range", "maximum cpu usage per Container"),
    "security": Case("pod-security", "violates PodSecurity"),
    "policy": Case("policy-denied", "no pods here"),
    "webhook": Case("webhook-silent", "failed calling webhook"),
}
"""Each in a namespace of its own with one rule."""


def test_what_the_api_server_does_not_create(cluster: Path, operator_log: Path) -> None:
    with ExitStack() as stack:
        places: dict[str, Place] = {}
        for name, case in NAMESPACES.items():
            labels = {"pod-security.kubernetes.io/enforce": "restricted"} if name == "security" else {}
            here = stack.enter_context(namespace(cluster, **labels))
            stack.enter_context(_rule(here, name))
            places[name] = Place(here)
            with_cpu = {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}} if name == "range" else {}
            places[name].create(name, Case(case.cause, case.words, container=with_cpu))
        for name, one in places.items():
            one.wait({name: NAMESPACES[name]})


@contextmanager
def _rule(here: Cluster, name: str) -> Iterator[None]:
    core, hooks = here.core, client.AdmissionregistrationV1Api(here.core.api_client)
    only_here = {"matchLabels": {"kubernetes.io/metadata.name": here.namespace}}
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    metadata = {"name": f"{name}.{here.namespace}.example.com"}
    if name in ("quota", "asks"):
        spec = SMALL if name == "quota" else ASKS
        core.create_namespaced_resource_quota(here.namespace, {"metadata": {"name": name}, "spec": spec})
        until(lambda: bool(core.read_namespaced_resource_quota(name, here.namespace).status.hard))
    if name == "range":
        limits = [{"type": "Container", "max": {"cpu": "1"}}]
        core.create_namespaced_limit_range(here.namespace, {"metadata": {"name": name}, "spec": {"limits": limits}})
    if name == "policy":
        spec = {
            "matchConstraints": {"resourceRules": [pods]},
            "validations": [{"expression": "false", "message": "no pods here"}],
        }
        hooks.create_validating_admission_policy({"metadata": metadata, "spec": spec})
        bound = {"policyName": metadata["name"], "validationActions": ["Deny"]}
        bound["matchResources"] = {"namespaceSelector": only_here}
        hooks.create_validating_admission_policy_binding({"metadata": metadata, "spec": bound})
        until(lambda: _is_denied(here))
    if name == "webhook":
        hook = {
            "name": metadata["name"],
            "clientConfig": {"url": "https://127.0.0.1:9/none"},
            "rules": [pods],
            "namespaceSelector": only_here,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail",
            "timeoutSeconds": 1,
        }
        hooks.create_validating_webhook_configuration({"metadata": metadata, "webhooks": [hook]})
        until(lambda: _is_denied(here))
    try:
        yield
    finally:
        if name == "policy":
            hooks.delete_validating_admission_policy_binding(metadata["name"])
            hooks.delete_validating_admission_policy(metadata["name"])
        if name == "webhook":
            hooks.delete_validating_webhook_configuration(metadata["name"])


def _is_denied(here: Cluster) -> bool:
    """Whether the rule is in force, which takes the API server a moment."""
    body = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    try:
        here.core.create_namespaced_pod(here.namespace, body, dry_run="All")
    except client.ApiException as error:
        return "serviceaccount" not in str(error.body)
    return False


def test_a_healthy_job_has_no_cause_at_any_time(cluster: Path, operator_log: Path) -> None:
    with namespace(cluster) as here:
        place = Place(here)
        for index in range(8):
            place.create(f"well-{index}", Case("", "", script=f"sleep {index}", workers=index % 3))
        alarms: list[Any] = []

        def all_ended() -> bool:
            alarms.extend((name, causes) for name in place.jobs if (causes := place.explain(name)))
            return all(job.status.get("completionTime") for job in place.jobs.values())

        until(all_ended, timeout=TIMEOUT)
        assert not alarms


def test_each_cause_is_found_in_the_words_of_who_says_it(place: Place) -> None:
    for name, case in CASES.items():
        place.create(name, case)
    _lose(place.here, "lost")
    kept = {
        "kept-job": Case("job-finalizer", KEEP),
        "kept-pod": Case("pod-finalizer", KEEP),
    }
    for name, case in kept.items():
        place.create(name, case)
    core = place.here.core
    until(lambda: place.here.pods(why="kept-pod") != [])
    core.patch_namespaced_pod("kept-pod-master-0", place.namespace, {"metadata": {"finalizers": [KEEP]}})
    core.delete_namespaced_pod("kept-pod-master-0", place.namespace, grace_period_seconds=1)
    place.jobs["kept-job"].patch({"metadata": {"finalizers": [KEEP]}})
    place.jobs["kept-job"].delete()
    try:
        place.wait(CASES | kept)
    finally:
        place.jobs["kept-job"].patch({"metadata": {"finalizers": None}})
        core.patch_namespaced_pod("kept-pod-master-0", place.namespace, {"metadata": {"finalizers": None}})


def wait_cause(here: Cluster, job: Job, id_: str, words: str) -> Cause:
    """The cause, once it is found with these words."""
    found: list[Cause] = []

    def is_found() -> bool:
        found[:] = why(here, job)
        return any(shows(one, Case(id_, words)) for one in found)

    with suppress(AssertionError):
        until(is_found, timeout=TIMEOUT / 2)
    chosen = [one for one in found if shows(one, Case(id_, words))]
    assert chosen, f"not {id_} of {job.name}: {found}"
    return chosen[0]


@pytest.mark.parametrize("scheduler", ["kubernetes", "volcano"])
def test_a_gang_that_waits(cluster: Path, crds: None, tmp_path: Path, scheduler: str) -> None:
    settings = settings_from()
    with namespace(cluster) as made, ExitStack() as stack:
        here = Cluster(cluster, made.namespace, own_operator=True)
        stack.enter_context(small_nodes(here.core, kwok_program(settings), cluster, here.namespace, tmp_path))
        if scheduler == "volcano":
            stack.enter_context(volcano.installed(settings, cluster, tmp_path))
        arguments = ["--namespace", here.namespace, "--gang-scheduler-name", scheduler]
        operator = stack.enter_context(OperatorProcess(cluster, tmp_path / "operator.log", arguments))
        operator.wait_ready()
        first = gang_races.job(here, "first")
        first.wait_running()
        assert why(here, first) == ()
        second = gang_races.job(here, "second")
        cause = wait_cause(here, second, "gang-incomplete", "")
        assert "3 pods" in cause.sentence
        gang_races.end(first, second)


QUEUED: dict[str, Case] = {
    "second": Case("kueue-waits", "insufficient unused quota for cpu"),
    "large": Case("kueue-too-large", "maximum capacity"),
    "homeless": Case("kueue-queue-missing", "no-such-queue"),
    "orphan": Case("kueue-queue-inactive", "ClusterQueue"),
    "stopped": Case("kueue-queue-stopped", "stopPolicy: Hold"),
    "third": Case("kueue-deactivated", "deactivated"),
    "checked": Case("kueue-admission-check", "budget is Pending"),
    "evicted": Case("kueue-evicted", "Preempted"),
}


@pytest.fixture
def queues(cluster: Path, crds: None, api: client.ApiClient, tmp_path: Path) -> Iterator[kueue_jobs.Place]:
    """Kueue, with a queue for each cause."""
    with kueue_jobs.place(cluster, api, tmp_path, ["--kueue", "workloads"]) as place:
        place.queue("busy")
        place.queue("small", cpu=2)
        place.queue("stopped", stopPolicy="Hold")
        place.kueue.local_queue(place.namespace, "orphan", "no-such-cluster-queue")
        place.kueue.priority("high", 1000)
        place.queue("contested", preemption={"withinClusterQueue": "LowerPriority"})
        _admission_check(place.kueue.custom, "budget")
        place.queue("checked", admissionChecksStrategy={"admissionChecks": [{"name": "budget"}]})
        yield place


def _admission_check(custom: Any, name: str) -> None:
    """One whose controller is ready and decides nothing."""
    where = (GROUP, VERSION, "admissionchecks")
    body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "AdmissionCheck", "metadata": {"name": name}}
    custom.create_cluster_custom_object(*where, {**body, "spec": {"controllerName": "example.com/budget"}})
    ready = {
        "type": "Active",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    custom.patch_cluster_custom_object_status(*where, name, {"status": {"conditions": [ready]}})


def test_a_job_that_waits_for_kueue(queues: kueue_jobs.Place) -> None:
    first = queues.create("PyTorchJob", "first", "busy")
    queues.wait_running(first)
    assert why(queues.here, first) == ()
    low = queues.create("MXJob", "evicted", "contested")
    queues.wait_workload(low, "Admitted")
    jobs = {"evicted": low}
    of_queue = {
        "second": "busy",
        "large": "small",
        "homeless": "no-such-queue",
        "orphan": "orphan",
        "stopped": "stopped",
        "third": "busy",
        "checked": "checked",
    }
    for name, queue in of_queue.items():
        jobs[name] = queues.create("PyTorchJob", name, queue)
        if name in ("second", "third"):
            queues.wait_workload(jobs[name], "QuotaReserved", "False")
    urgent = queues.create("MXJob", "urgent", "contested", **{kueue_jobs.PRIORITY: "high"})
    assert "at position 1 of 2" in wait_cause(queues.here, jobs["second"], "kueue-waits", "").sentence
    assert "at position 2 of 2" in wait_cause(queues.here, jobs["third"], "kueue-waits", "").sentence
    workload = queues.workload(jobs["third"])["metadata"]["name"]
    where = (GROUP, VERSION, queues.namespace, "workloads", workload)
    queues.kueue.custom.patch_namespaced_custom_object(*where, {"spec": {"active": False}})
    for name, case in QUEUED.items():
        wait_cause(queues.here, jobs[name], case.cause, case.words)
    for job in (first, urgent, *jobs.values()):
        job.delete()

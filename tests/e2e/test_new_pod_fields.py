"""Fields of pods and Jobs that came with Kubernetes 1.34 to 1.37, in jobs of real pods."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from devtools.testbed.operator import OperatorProcess
from e2e.test_mpi import launchers, mpijob
from kubernetes import client
from support.live_jobs import SHELL_IMAGE, UNTIL_ENDED, UNTIL_RELEASED, Cluster, Job, Resource, until, v1_job

FAILS_ONCE = f"[ -e /shared/failed ] || {{ touch /shared/failed; echo lost a peer; exit 42; }}; {UNTIL_RELEASED}"


@pytest.fixture(scope="module")
def minor(cluster: Path, api: client.ApiClient) -> int:
    """The cluster's Kubernetes 1.x."""
    found = re.match(r"\d+", client.VersionApi(api).get_code().minor)
    assert found
    return int(found[0])


def one_replica(manifest: Resource) -> Resource:
    """The pod spec of a v1 job that is left with its scheduler, whose containers share a volume."""
    replicas = manifest["spec"]["mxReplicaSpecs"]
    for type_ in ("Server", "Worker"):
        del replicas[type_]
    spec: Resource = replicas["Scheduler"]["template"]["spec"]
    spec["volumes"] = [{"name": "shared", "emptyDir": {}}]
    spec["containers"][0]["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}]
    return spec


def rule(action: str) -> Resource:
    exit_codes = {"operator": "In", "values": [42]}
    return {"restartPolicy": "Never", "restartPolicyRules": [{"action": action, "exitCodes": exit_codes}]}


def restarted(pods: list[Resource]) -> bool:
    """Whether the program of the only pod runs again."""
    statuses = [one for pod in pods for one in pod["status"].get("containerStatuses") or () if one["name"] == "mxnet"]
    return [one["restartCount"] for one in statuses if "running" in one["state"]] == [1]


def failures(job: Job) -> list[str]:
    return [reason for type_, reason, _ in job.cluster.events(job.name) if type_ == "Warning"]


@pytest.mark.parametrize(
    ("action", "since", "in_sidecar"),
    [("Restart", 35, False), ("RestartAllContainers", 36, False), ("RestartAllContainers", 36, True)],
    ids=["alone", "all", "all by a sidecar"],
)
def test_a_container_that_a_rule_restarts_has_not_failed(
    here: Cluster, minor: int, action: str, since: int, in_sidecar: bool
) -> None:
    """Not even under Never, and although the program exits with 0 where the kubelet stops it."""
    if minor < since:
        pytest.skip(f"Kubernetes 1.{since} has the action {action} by default")
    manifest = v1_job("again", scheduler=UNTIL_RELEASED if in_sidecar else FAILS_ONCE, run_policy={"backoffLimit": 1})
    spec = one_replica(manifest)
    container = spec["containers"][0]
    if in_sidecar:
        script = f"sleep 1; {FAILS_ONCE.replace(UNTIL_RELEASED, UNTIL_ENDED)}"
        sidecar = {"name": "sidecar", "image": SHELL_IMAGE, "command": ["sh", "-c", script]}
        spec["containers"].append({**sidecar, "volumeMounts": container["volumeMounts"], **rule(action)})
    else:
        container |= rule(action)
    job = here.create(manifest)
    (pod,) = here.wait_pods(job.uid, restarted, "the restart")
    status = job.wait_running()
    assert "failure" not in status
    job.release("scheduler")
    status = job.wait_end()
    assert (status["state"], status.get("retries")) == ("Succeeded", None)
    assert [one["metadata"]["uid"] for one in job.pods()] == [pod["metadata"]["uid"]]
    assert failures(job) == []


def test_a_restart_by_a_rule_counts_once_for_the_limit(here: Cluster, minor: int) -> None:
    if minor < 36:
        pytest.skip("Kubernetes 1.36 has the action RestartAllContainers by default")
    manifest = v1_job("counts", scheduler=FAILS_ONCE, run_policy={"backoffLimit": 0, "cleanPodPolicy": "All"})
    one_replica(manifest)["containers"][0] |= rule("RestartAllContainers")
    failure = here.create(manifest).wait_end()["failure"]
    assert (failure["pod"], failure["reason"]) == ("counts-scheduler-0", "BackoffLimitExceeded")
    assert "the job's replicas ended 1 times with an error" in failure["message"]
    assert "restarted pod counts-scheduler-0 in place (restartCount 1)" in failure["message"]


def test_what_the_node_need_not_run_reaches_the_pod(here: Cluster) -> None:
    """A scheduling gate keeps the pod from its node."""
    manifest = v1_job("passes")
    spec = one_replica(manifest)
    fields: Resource = {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
        "schedulingGates": [{"name": "dljob-test/gate"}],
    }
    claims = [{"name": "gpu", "request": "first"}]
    spec |= fields
    spec["containers"][0]["resources"]["claims"] = claims
    job = here.create(manifest)
    (pod,) = here.wait_pods(job.uid, lambda pods: len(pods) == 1, "its pod")
    assert {name: pod["spec"].get(name) for name in fields} == fields
    assert pod["spec"]["containers"][0]["resources"]["claims"] == claims


def test_a_volume_with_the_files_of_an_image(here: Cluster, minor: int) -> None:
    if minor < 35:
        pytest.skip("Kubernetes 1.35 has image volumes by default")
    manifest = v1_job("reads", scheduler="cmp /bin/busybox /data/busybox && grep ' /data .*[ ,]ro[, ]' /proc/mounts")
    spec = one_replica(manifest)
    spec["volumes"].append({"name": "data", "image": {"reference": SHELL_IMAGE, "pullPolicy": "IfNotPresent"}})
    spec["containers"][0]["volumeMounts"].append({"name": "data", "mountPath": "/data", "subPath": "bin"})
    status = here.create(manifest).wait_end()
    assert status["state"] == "Succeeded", status.get("failure")


def test_a_pod_with_users_of_its_own(here: Cluster) -> None:
    """Where the node's runtime has no user namespaces, the job says so."""
    manifest = v1_job("mapped", scheduler="! grep ' 0  *0 ' /proc/self/uid_map")
    one_replica(manifest)["hostUsers"] = False
    job = here.create(manifest)
    (pod,) = here.wait_pods(job.uid, lambda pods: any("nodeName" in pod["spec"] for pod in pods), "a node")
    handlers = here.core.read_node(pod["spec"]["nodeName"]).status.runtime_handlers
    if any(handler.features.user_namespaces for handler in handlers if not handler.name):
        status = job.wait_end()
        assert status["state"] == "Succeeded", status.get("failure")
        return
    cause = "FailedCreatePodSandBox: Failed to create pod sandbox: can't set `spec.hostUsers: false`"
    job.wait(lambda status: cause in (status.get("reason") or ""), "the cause")


def test_a_pod_that_is_resized_in_place_stays(here: Cluster, minor: int) -> None:
    if minor < 35:
        pytest.skip("Kubernetes 1.35 has resizes for good")
    manifest = v1_job("resized", scheduler=UNTIL_RELEASED)
    one_replica(manifest)
    job = here.create(manifest)
    before = job.wait_running()
    pod = job.pod("scheduler")
    name = pod["metadata"]["name"]
    resources = {"requests": {"cpu": "20m"}}
    here.core.patch_namespaced_pod_resize(
        name, here.namespace, {"spec": {"containers": [{"name": "mxnet", "resources": resources}]}}
    )

    def resized(pods: list[Resource]) -> bool:
        (status,) = (one for one in pods[0]["status"]["containerStatuses"])
        return bool(status["resources"] == resources and status["allocatedResources"] == resources["requests"])

    (after,) = here.wait_pods(job.uid, resized, "its new size")
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]
    job.patch({"metadata": {"annotations": {"dljob-test/reconcile": "now"}}})
    job.release("scheduler")
    assert job.wait_end()["state"] == "Succeeded"
    (last,) = job.pods()
    status = last["status"]["containerStatuses"][0]
    assert (last["metadata"]["uid"], status["restartCount"]) == (pod["metadata"]["uid"], 0)
    assert before["observedGeneration"] == job.status["observedGeneration"]


def test_a_launcher_that_is_resumed_with_other_resources(here: Cluster) -> None:
    """Its batch Job is a new one, so it does not matter whether Kubernetes lets those of a suspended Job change."""
    job = here.create(mpijob("resumed", UNTIL_RELEASED, cleanPodPolicy="All"))
    job.wait_running()
    job.patch({"spec": {"runPolicy": {"suspend": True}}})
    here.wait_pods(job.uid, lambda pods: not pods, "no pods while suspended")
    until(lambda: launchers(here) == [])
    template = job.get()["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
    resources = {"requests": {"cpu": "15m", "memory": "16Mi"}}
    template["spec"]["containers"][0]["resources"] = resources
    job.patch({"spec": {"mpiReplicaSpecs": {"Launcher": {"template": template}}}})
    job.patch({"spec": {"runPolicy": {"suspend": False}}})
    job.wait_running()
    assert job.pod("launcher")["spec"]["containers"][0]["resources"] == resources
    job.release("launcher")
    assert job.wait_end()["state"] == "Succeeded"


@pytest.fixture
def log(own: Cluster, tmp_path: Path) -> Iterator[Path]:
    """The log of an operator of the namespace."""
    path = tmp_path / "operator.log"
    with OperatorProcess(own.kubeconfig, path, ["--namespace", own.namespace]) as process:
        process.wait_ready()
        yield path


def test_a_namespace_that_is_deleted_with_running_jobs(own: Cluster, log: Path) -> None:
    """Kubernetes deletes the pods first (1.34 or newer), and refuses new ones; finalizers keep the jobs' statuses."""
    manifests = [v1_job("never"), v1_job("on-failure", "OnFailure"), mpijob("launched", "sleep 86400 & wait")]
    for manifest in manifests:
        manifest["metadata"]["finalizers"] = ["dljob-test/keep"]
    jobs = [own.create(manifest) for manifest in manifests]
    for job in jobs:
        job.wait_running()
    first = {pod["metadata"]["uid"] for pod in own.pods()}
    seen: set[str] = set()

    def gone(pods: list[Resource]) -> bool:
        seen.update(pod["metadata"]["uid"] for pod in pods)
        return not pods

    own.core.delete_namespace(own.namespace)
    try:
        for job in jobs:
            own.wait_pods(job.uid, gone, "no pods")
        for job in jobs:
            until(lambda job=job: "deletionTimestamp" in job.get()["metadata"])
        statuses = [job.status for job in jobs]
    finally:
        for job in jobs:
            job.patch({"metadata": {"finalizers": None}})
    for job in jobs:
        job.wait_deleted()
    found = [(one["state"], one.get("failure"), one.get("retries")) for one in statuses]
    assert found == [("Running", None, None)] * len(jobs)
    assert seen <= first, "no pod is created again"
    lines = log.read_text().splitlines()
    assert [line for line in lines if " INFO " not in line and not line.startswith("ready: ")] == []
    assert sum(" reconciled " in line for line in lines) < 20 * len(jobs), "it does not try again and again"

"""The filter ``job_status``: a job's status from its pods, equal to the one that the operator reports."""

from __future__ import annotations

import base64
import copy
import importlib
import json
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.dljob.operator.plugins.filter import job_status as plugin
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import replica_statuses
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.plugin_utils import framework as framework_of_a_role
from devtools.build.collection.environment import COLLECTIONS, environ
from support import kinds
from support.builders import (
    CAFFE2,
    ECHO_DECLARATION,
    MPI,
    MXNET,
    PADDLE,
    TENSORFLOW,
    UID,
    MXJob,
    Pod,
    Resource,
    caffe2job,
    echojob,
    manifest_of,
    mpijob,
    mxjob,
    paddlejob,
    pod_of,
    pods_of,
    stamp,
    tfjob,
)
from support.fake_cluster import FakeCluster

ROOT = Path(__file__).resolve().parents[3]
job_status: Callable[..., Any] = plugin.FilterModule().filters()["job_status"]


class CollectionsFilters:
    """Ansible's loader, for the filters of this collection: outside a run it finds none."""

    def get(self, name: str) -> Any:
        found = [path for path in (ROOT / "plugins/filter").glob("*.py") if name == f"dljob.operator.{path.stem}"]
        if not found:
            return None
        module = importlib.import_module(f"ansible_collections.dljob.operator.plugins.filter.{found[0].stem}")
        return SimpleNamespace(j2_function=module.FilterModule().filters()[found[0].stem])


@pytest.fixture(autouse=True)
def _filters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framework_of_a_role, "filter_loader", CollectionsFilters())


def of_role(name: str) -> dict[str, Any]:
    """The role's declaration, with its filters."""
    return dict(yaml.safe_load((ROOT / f"roles/{name}/vars/main.yml").read_text())[f"{name}_framework"])


def status_of(job: MXJob, *pods: Pod, **arguments: Any) -> Any:
    made = [pod.resource() for pod in pods]
    return job_status(made, job.resource(), of_role("mxnet"), **{"now": stamp(60), **arguments})


def digits() -> MXJob:
    return mxjob("digits").v1().servers(1).workers(2)


def conditions(status: Any) -> list[tuple[str, str]]:
    return [(x["type"], x["status"]) for x in status["conditions"]]


def counts(desired: int, **states: int) -> dict[str, int]:
    return {"desired": desired, "active": 0, "succeeded": 0, "failed": 0, "pending": 0, **states}


# --- counts, conditions and failure


def test_without_pods_all_replicas_are_pending() -> None:
    status = status_of(digits())
    assert status["replicaStatuses"] == {
        "Scheduler": counts(1, pending=1),
        "Server": counts(1, pending=1),
        "Worker": counts(2, pending=2),
    }
    assert (status["state"], status["phase"], status["failure"]) == ("Created", "Creating", {})
    assert conditions(status) == [("Created", "True")]


@pytest.mark.parametrize(
    ("change", "worker"),
    [
        (lambda pod: pod, counts(2, active=1, pending=1)),
        (lambda pod: pod.running(), counts(2, active=2)),
        (lambda pod: pod.running().deleting(), counts(2, active=1, pending=1)),
        (lambda pod: pod.succeeded(), counts(2, active=1, succeeded=1)),
        (lambda pod: pod.failed(1), counts(2, active=1, failed=1)),
        (lambda pod: pod.failed(137), counts(2, active=1, failed=1)),
        (lambda pod: pod.refused_by_node(), counts(2, active=1, failed=1)),
        (lambda pod: pod.running().of_another_spec(), counts(2, active=1, pending=1)),
    ],
)
@pytest.mark.parametrize("flavor", ["v1", "v1alpha1", "fioravanzo", "mpba"])
def test_a_replica_by_the_state_of_its_pod(
    change: Callable[[Pod], Pod], worker: Mapping[str, int], flavor: str
) -> None:
    job = digits().flavor(flavor)
    scheduler, server, first, second = pods_of(job.job())
    status = status_of(job, scheduler.running(), server.running(), first.running(), change(second))
    assert status["replicaStatuses"] == {
        "Scheduler": counts(1, active=1),
        "Server": counts(1, active=1),
        "Worker": worker,
    }


def test_running_once_every_replica_is() -> None:
    status = status_of(digits(), *(pod.running() for pod in pods_of(digits().job())))
    assert (status["state"], status["phase"]) == ("Running", "Running")
    assert conditions(status) == [("Created", "True"), ("Running", "True")]
    running = status["conditions"][-1]
    assert (running["reason"], running["message"]) == ("MXJobRunning", "MXJob digits is running.")
    assert running["lastTransitionTime"] == stamp(60)


def test_succeeded_with_its_chief() -> None:
    scheduler, *others = pods_of(digits().job())
    status = status_of(digits(), scheduler.succeeded(), *(pod.running() for pod in others))
    assert status["state"] == "Succeeded"
    assert conditions(status)[-1] == ("Succeeded", "True")
    assert status["replicaStatuses"]["Worker"] == counts(2, succeeded=2), "v1 takes those that still run for done"


def test_failed_with_pod_container_code_and_log() -> None:
    *others, last = pods_of(digits().job())
    log = "Traceback\nValueError: no digits"
    failed = last.failed(1, message=log)
    status = status_of(digits(), *(pod.running() for pod in others), failed)
    assert status["state"] == "Failed"
    failure = status["failure"]
    assert {key: failure[key] for key in ("pod", "container", "exitCode", "reason", "log")} == {
        "pod": "digits-worker-1",
        "container": "mxnet",
        "exitCode": 1,
        "reason": "Error",
        "log": log,
    }
    assert failure["message"].startswith("container mxnet of pod digits-worker-1 exited with 1 (Error): ")
    condition = status["conditions"][-1]
    assert (condition["type"], condition["reason"], condition["message"]) == (
        "Failed",
        "MXJobFailed",
        failure["message"],
    )


def test_a_failure_without_a_container_and_without_a_log() -> None:
    *others, last = pods_of(digits().job())
    last.change(lambda pod: pod.update(status={"phase": "Failed", "reason": "OutOfcpu"}))
    status = status_of(digits(), *(pod.running() for pod in others), last)
    assert status["failure"] == {
        "pod": "digits-worker-1",
        "container": "",
        "exitCode": None,
        "reason": "OutOfcpu",
        "message": "pod digits-worker-1 failed: OutOfcpu",
        "log": "",
    }


def test_a_failure_that_is_tried_again_is_not_the_jobs() -> None:
    job = digits().restart("ExitCode")
    *others, last = pods_of(job.job())
    status = status_of(job, *(pod.running() for pod in others), last.failed(137))
    assert (status["state"], status["failure"]) == ("Restarting", {})
    assert status["replicaStatuses"]["Worker"] == counts(2, active=1, failed=1)


def test_the_deadline_is_over_at_the_time_that_is_given() -> None:
    job = digits().run_policy(activeDeadlineSeconds=30)
    pods = [pod.running() for pod in pods_of(job.job())]
    assert status_of(job, *pods, now=stamp(29))["state"] == "Running"
    assert status_of(job, *pods, now=stamp(31))["failure"]["reason"] == "DeadlineExceeded"
    assert status_of(job, *pods, now=None)["state"] == "Failed", "without a time it is the present"


def test_what_keeps_a_pod_from_running() -> None:
    status = status_of(digits(), pod_of(digits().job(), "worker").waiting("ImagePullBackOff", "no such image"))
    assert status["reason"] == "digits-worker-0: ImagePullBackOff: no such image"


def test_a_replica_of_the_only_type_that_waits_is_not_active() -> None:
    """The status of a Caffe2Job counts it so."""
    resource = caffe2job(3)
    fake_cluster = FakeCluster(resource, CAFFE2)
    fake_cluster.settle()
    fake_cluster.run("worker", 0)
    status = job_status(list(fake_cluster.pods.values()), resource, of_role("caffe2"))
    assert status["replicaStatuses"] == {"Worker": counts(3, active=1, pending=2)}


def test_a_finished_job_keeps_its_outcome_when_its_pods_are_gone() -> None:
    fake_cluster = finished(FakeCluster(digits()))
    assert status_for(fake_cluster, pods=[]) == status_for(fake_cluster)
    assert status_for(fake_cluster, pods=[])["replicaStatuses"]["Worker"] == counts(2, succeeded=2)


def test_the_status_of_a_peer_that_names_no_state() -> None:
    peers = {
        "conditions": [{"type": "Failed", "status": "True", "reason": "MXJobFailed", "message": "it broke"}],
        "replicaStatuses": {"Scheduler": {"active": True}, "Server": None, "Worker": {"failed": 1, "active": "1"}},
    }
    status = status_of(digits().status(**peers))
    assert status["state"] == "Failed"
    assert status["replicaStatuses"]["Worker"] == counts(2, failed=1, pending=1)
    assert (status["failure"]["reason"], status["failure"]["message"]) == ("MXJobFailed", "it broke")


def test_a_job_of_another_controller_has_the_status_of_that() -> None:
    job = digits().run_policy(managedBy="example.com/other").status(conditions=[{"type": "Created", "status": "True"}])
    status = status_of(job, *(pod.running() for pod in pods_of(job.job())))
    assert (status["state"], conditions(status)) == ("", [("Created", "True")])
    job.status(conditions=[{"type": "Succeeded", "status": "True"}])
    assert status_of(job)["state"] == "Succeeded"


# --- which pods are the job's


def alike(name: str, uid: str = UID) -> MXJob:
    """Jobs with the same spec hashes, so that only the owner distinguishes their pods."""
    return mxjob(name).v1().servers(1).workers(2).option(RuntimeId="ab12").uid(uid)


def test_pods_of_other_jobs_are_ignored() -> None:
    other, older = alike("other", "another-uid"), alike("digits", "uid-of-a-deleted-one")
    foreign = [pod.failed(1) for job in (other, older) for pod in pods_of(job.job())]
    own = [pod.running() for pod in pods_of(alike("digits").job())]
    assert status_of(alike("digits"), *foreign, *own) == status_of(alike("digits"), *own)


def without_owner(pod: Pod) -> Pod:
    return pod.change(lambda made: made["metadata"].pop("ownerReferences"))


def test_a_pod_without_owners_belongs_to_the_job_of_its_label() -> None:
    own = [without_owner(pod.running()) for pod in pods_of(digits().job())]
    assert status_of(digits(), *own)["state"] == "Running"
    assert status_of(digits().uid("another-uid"), *own)["replicaStatuses"]["Worker"] == counts(2, pending=2)


def test_a_label_is_not_believed_against_the_owner() -> None:
    pods = [pod.failed(1) for pod in pods_of(alike("other", "another-uid").job())]
    for pod in pods:
        pod.change(lambda made: made["metadata"]["labels"].update({"dljob.operator/job-uid": UID}))
    assert status_of(alike("digits"), *pods) == status_of(alike("digits"))


@pytest.mark.parametrize("namespace", ["default", None])
@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize("flavor", ["v1", "v1alpha1", "fioravanzo", "mpba"])
def test_a_manifest_without_a_uid(flavor: str, owned: bool, namespace: str | None) -> None:
    job = digits().flavor(flavor)
    pods = [pod.running() if owned else without_owner(pod.running()) for pod in pods_of(job.job())]
    foreign = [pod.failed(1).resource() for pod in pods_of(mxjob("other").flavor(flavor).uid("another-uid").job())]
    written = job.resource()
    written["metadata"] = {"name": "digits", **({"namespace": namespace} if namespace else {})}
    given = [*foreign, *(pod.resource() for pod in pods)]
    status = job_status(given, written, of_role("mxnet"))
    assert status["replicaStatuses"]["Worker"] == counts(2, active=2)
    assert conditions(status)[-1] == ("Running", "True")


def test_a_manifest_without_a_uid_whose_labels_join_namespace_and_name() -> None:
    fake_cluster = FakeCluster(caffe2job(2), CAFFE2)
    fake_cluster.settle()
    fake_cluster.run_all()
    written = copy.deepcopy(fake_cluster.resource)
    del written["metadata"]["uid"], written["status"]
    pods = copy.deepcopy(list(fake_cluster.pods.values()))
    for pod in pods:
        del pod["metadata"]["ownerReferences"]
    assert job_status(pods, written, "caffe2")["replicaStatuses"] == {"Worker": counts(2, active=2)}


def test_the_namespace_of_a_manifest_without_a_uid() -> None:
    here, there = digits(), digits().uid("another-uid")
    pods = [pod.running() for pod in pods_of(here.job())]
    far = [pod.change(lambda made: made["metadata"].update(namespace="far")) for pod in pods_of(there.job())]
    written = here.resource()
    del written["metadata"]["uid"]
    given = [pod.resource() for pod in (*pods, *far)]
    assert job_status(given, written, "mxnet")["replicaStatuses"]["Worker"] == counts(2, active=2)
    written["metadata"]["namespace"] = "far"
    assert job_status(given, written, "mxnet")["replicaStatuses"]["Worker"] == counts(2, pending=2)
    del written["metadata"]["namespace"]
    with pytest.raises(
        AnsibleFilterError, match=r"job: metadata.uid is missing, and there are pods of 2 jobs named digits"
    ):
        job_status(given, written, "mxnet")


# --- agreement with the operator


def started(fake_cluster: FakeCluster) -> FakeCluster:
    fake_cluster.start()
    return fake_cluster


def begun(fake_cluster: FakeCluster) -> FakeCluster:
    fake_cluster.settle()
    first, *_ = fake_cluster.replicas()
    fake_cluster.run(*_replica(first))
    return fake_cluster


def failing(code: int, message: str = "") -> Callable[[FakeCluster], FakeCluster]:
    def fail(fake_cluster: FakeCluster) -> FakeCluster:
        fake_cluster.start()
        fake_cluster.exit(*_replica(fake_cluster.replicas()[-1]), code, message=message)
        return fake_cluster

    return fail


def evicted(fake_cluster: FakeCluster) -> FakeCluster:
    fake_cluster.start()
    fake_cluster.evict(*_replica(fake_cluster.replicas()[-1]))
    return fake_cluster


def ended(fake_cluster: FakeCluster) -> FakeCluster:
    fake_cluster.start()
    for name in fake_cluster.replicas():
        fake_cluster.exit(*_replica(name), 0)
    return fake_cluster


def finished(fake_cluster: FakeCluster) -> FakeCluster:
    ended(fake_cluster).settle()
    return fake_cluster


def suspended(fake_cluster: FakeCluster) -> FakeCluster:
    fake_cluster.start()
    fake_cluster.edit(lambda spec: spec.setdefault("runPolicy", {}).update(suspend=True))
    fake_cluster.settle()
    return fake_cluster


def edited(fake_cluster: FakeCluster) -> FakeCluster:
    fake_cluster.start()
    fake_cluster.edit(lambda spec: spec.update(RuntimeId="another", RuntimeID="another"))
    return fake_cluster


def _replica(name: str) -> tuple[str, int]:
    type_, _, index = name.rpartition("-")
    return type_, int(index)


STATES: dict[str, Callable[[FakeCluster], FakeCluster]] = {
    "new": lambda fake_cluster: fake_cluster,
    "begun": begun,
    "started": started,
    "retryable": failing(137),
    "failed": failing(1, "Traceback: no digits"),
    "evicted": evicted,
    "ended": ended,
    "finished": finished,
}
JOBS: dict[str, tuple[Resource, Framework]] = {
    **{name: (digits().flavor(name).resource(), MXNET) for name in ("v1", "v1alpha1", "fioravanzo", "mpba")},
    "v1 ExitCode": (digits().restart("ExitCode").resource(), MXNET),
    "v1 Always": (digits().restart("Always").resource(), MXNET),
    "v1 restartScope Job": (digits().restart("ExitCode").run_policy(restartScope="Job").resource(), MXNET),
    "v1 backoffLimit": (digits().restart("OnFailure").run_policy(backoffLimit=0).resource(), MXNET),
    "TfJob": (tfjob(master=1, worker=2, ps=2), TENSORFLOW),
    "TFJob": (tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=2, ps=1), TENSORFLOW),
    "Caffe2Job": (caffe2job(3), CAFFE2),
    "PaddleJob of workers": (paddlejob(worker=3), PADDLE),
    **{kind: (job, framework) for kind, (framework, job) in kinds.plain_jobs().items()},
}


def status_for(fake_cluster: FakeCluster, **changes: Any) -> Any:
    pods = changes.pop("pods", None)
    given = list(fake_cluster.pods.values()) if pods is None else pods
    return job_status(
        given, {**fake_cluster.resource, **changes}, of_role(fake_cluster.framework.name), now=fake_cluster.time
    )


def agrees(fake_cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The filter gives what the operator's plan writes, and the counts from which that renders ``replicaStatuses``."""
    rendered: list[dict[str, Any]] = []
    with monkeypatch.context() as patch:
        render = replica_statuses.render
        patch.setattr(replica_statuses, "render", lambda job, made: rendered.append(made) or render(job, made))
        written = fake_cluster.planned().status
    expected = fake_cluster.status if written is None else written
    status = status_for(fake_cluster)
    assert {key: status[key] for key in ("state", "phase", "reason")} == {
        key: expected[key] for key in ("state", "phase", "reason")
    }
    assert status["conditions"] == expected["conditions"]
    failure = expected.get("failure", {})
    assert {key: status["failure"][key] for key in ("pod", "container", "exitCode", "reason") if key in failure} == {
        key: failure[key] for key in failure if key != "message"
    }
    if rendered:  # a finished job keeps the counts it has
        names = {"active": "Running", "succeeded": "Succeeded", "failed": "Failed", "pending": "Pending"}
        assert status["replicaStatuses"] == {
            type_: {"desired": made.total(), **{name: made[state] for name, state in names.items()}}
            for type_, made in rendered[-1].items()
        }


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("job", JOBS)
def test_the_operators_own_status(job: str, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cluster = STATES[state](FakeCluster(*JOBS[job]))
    agrees(fake_cluster, monkeypatch)
    if state not in (
        "finished",
        "ended",
        "failed",
    ):  # the job is not finished: they still agree after the next reconcile
        fake_cluster.step()
        agrees(fake_cluster, monkeypatch)


@pytest.mark.parametrize("change", [suspended, edited])
@pytest.mark.parametrize("job", ["v1", "v1alpha1", "TFJob", "Caffe2Job"])
def test_the_operators_own_status_after_an_edit(
    job: str, change: Callable[[FakeCluster], FakeCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    agrees(change(FakeCluster(*JOBS[job])), monkeypatch)


def test_the_pods_of_a_batch_job() -> None:
    """They belong to that Job; the job's label says whose they are."""
    fake_cluster = FakeCluster(mpijob(), MPI)
    fake_cluster.start()
    assert status_for(fake_cluster)["state"] == "Running"
    assert status_for(fake_cluster)["replicaStatuses"]["Launcher"]["active"] == 1
    fake_cluster.exit("launcher", 0, 0)
    assert status_for(fake_cluster)["state"] == "Succeeded"


# --- input that is wrong


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        ({"resources": []}, "the input must be a list of Pods, as kubernetes.core.k8s_info returns it in resources"),
        ("pods", "the input must be a list of Pods, .* not str"),
        (None, "the input must be a list of Pods"),
        (["a"], "item 0 of the input must be a Pod: it has no metadata"),
        ([{"metadata": {}}, {"kind": "Service", "metadata": {}}], "item 1 of the input must be a Pod, not a Service"),
    ],
)
def test_pods_that_are_none(pods: Any, message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=f"job_status: {message}"):
        job_status(pods, digits().resource(), "mxnet")


@pytest.mark.parametrize(
    "job",
    [None, "digits", [], {}, {"apiVersion": "v1", "kind": "MXJob"}, {"apiVersion": "v1", "metadata": {"name": "x"}}],
)
def test_a_job_that_is_none(job: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="job_status: job must be the manifest of one job"):
        job_status([], job, "mxnet")


@pytest.mark.parametrize(
    ("framework", "message"),
    [
        (None, "framework must be the declaration of a framework"),
        ({}, "framework must be the declaration of a framework"),
        (
            "theano",
            "framework: there is no role 'theano' .* one of caffe2, jax, mpi, mxnet, paddle, pytorch, tensorflow, xgboost",
        ),
        ("../roles/mxnet", "framework: there is no role"),
        ({"name": "echo"}, "framework: the framework lacks 'container'"),
        ({**ECHO_DECLARATION, "hooks": {"pod": "a.b.c"}}, "framework: hooks.pod: there is no filter 'a.b.c'"),
    ],
)
def test_a_framework_that_is_none(framework: Any, message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=f"job_status: {message}"):
        job_status([], echojob(), framework)


@pytest.mark.parametrize("now", ["noon", 12, True])
def test_a_time_that_is_none(now: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="job_status: now must be a time such as"):
        job_status([], digits().resource(), "mxnet", now=now)


def test_a_job_that_is_not_valid_gives_every_error() -> None:
    job = digits().entry("Worker", replicas="two").run_policy(cleanPodPolicy="Some").resource()
    with pytest.raises(AnsibleFilterError, match="the job is not valid: ") as caught:
        job_status([], job, "mxnet")
    assert "spec.mxReplicaSpecs.Worker.replicas must be a whole number, not 'two'" in str(caught.value)
    assert "spec.runPolicy.cleanPodPolicy: 'Some' is none of" in str(caught.value)


def test_the_frameworks_own_validation() -> None:
    with pytest.raises(AnsibleFilterError, match=r"the job is not valid: .*nfsPath"):
        job_status([], caffe2job(2, backendSpecs={"backendType": "nfs"}), "caffe2")


def test_a_job_of_another_framework() -> None:
    with pytest.raises(AnsibleFilterError, match=r"the job is not valid: .*MXJob"):
        job_status([], digits().resource(), "pytorch")


def test_neither_environment_nor_files_of_a_framework_are_needed() -> None:
    declared = {**ECHO_DECLARATION, "environment": "no.such.plugin"}
    status = job_status([], echojob(), declared)
    assert status["replicaStatuses"] == {"Leader": counts(1, pending=1), "Follower": counts(2, pending=2)}
    resource = tfjob(master=1, ps=1)
    by_name, declared = (
        job_status([], resource, given, now=stamp(60)) for given in ("tensorflow", of_role("tensorflow"))
    )
    assert by_name == declared


def test_the_input_is_left_as_it_is() -> None:
    job, pods = digits().resource(), [manifest_of(digits().job(), "worker")]
    del job["metadata"]["uid"]
    before = copy.deepcopy((job, pods))
    job_status(pods, job, "mxnet")
    assert (job, pods) == before


# --- in a playbook


def test_in_a_playbook(tmp_path: Path) -> None:
    """By the role's name and by its declaration. Strings of a pod are not evaluated as templates."""
    *others, last = pods_of(digits().job())
    pods = [*(pod.running().resource() for pod in others), last.failed(1, message="{{ 6 * 7 }}").resource()]
    given = {"pods": pods, "job": digits().resource(), "caffe2": caffe2job(2), "now": stamp(60)}
    (tmp_path / "given.json").write_text(json.dumps(given))
    expressions = {
        "given": f"{{{{ lookup('ansible.builtin.file', '{tmp_path}/given.json') | from_json }}}}",
        "by_name": "{{ given.pods | dljob.operator.job_status(given.job, 'mxnet', now=given.now) }}",
        "declared": "{{ given.pods | dljob.operator.job_status(given.job, framework=mxnet_framework, now=given.now) }}",
        "validated": "{{ [] | dljob.operator.job_status(given.caffe2, 'caffe2', now=given.now) }}",
    }
    shown = "{{ 'MADE' ~ ({'by_name': by_name, 'declared': declared, 'validated': validated} | to_json | b64encode) ~ '!' }}"
    tasks = [
        {"ansible.builtin.include_vars": {"file": str(ROOT / "roles/mxnet/vars/main.yml")}},
        {"ansible.builtin.debug": {"msg": shown}, "vars": expressions},
        {
            "ansible.builtin.debug": {"msg": "{{ 'pods' | dljob.operator.job_status(given.job, 'mxnet') }}"},
            "vars": expressions,
        },
    ]
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    command = ["ansible-playbook", "-i", "localhost,", "-c", "local", str(playbook)]
    env = environ(ANSIBLE_COLLECTIONS_PATH=str(COLLECTIONS))
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    printed = " ".join((done.stdout + done.stderr).split())
    found = re.search("MADE([^!]*)!", printed)
    assert found, printed
    made = json.loads(base64.b64decode(found[1]))
    expected = job_status(pods, digits().resource(), "mxnet", now=stamp(60))
    assert made["by_name"] == made["declared"] == expected
    assert made["by_name"]["failure"]["log"] == "{{ 6 * 7 }}"
    assert made["validated"]["replicaStatuses"] == {"Worker": counts(2, pending=2)}
    assert "job_status: the input must be a list of Pods" in printed


def test_its_documented_sample_has_the_keys_that_there_are() -> None:
    documented = yaml.safe_load(plugin.RETURN)["_value"]
    (last, *_) = pods_of(digits().job())
    status = status_of(digits(), last.failed(1))
    assert set(documented["contains"]) == set(documented["sample"]) == set(status)
    assert set(documented["contains"]["failure"]["contains"]) == set(status["failure"])
    assert list(documented["contains"]["replicaStatuses"]["contains"]) == list(status["replicaStatuses"]["Worker"])

"""JobView: for each kind and flavor, by the statuses of this operator, of training-operator v1 and of mpi-operator."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import ACCELERATORS
from dljob import kinds, quantity, view
from dljob.view import Durations, Failure, JobView, Replicas
from hypothesis import given
from hypothesis import strategies as st
from support.builders import NOW, ROOT
from support.fake_cluster import FakeCluster
from support.kinds import FRAMEWORKS

Resource = dict[str, Any]
EXAMPLES = {
    path.relative_to(ROOT).as_posix(): job
    for path in sorted(
        [*ROOT.glob("examples/*.yaml"), *ROOT.glob("examples/gpu/*.yaml"), *ROOT.glob("tests/manifests/*.yaml")]
    )
    for job in yaml.safe_load_all(path.read_text())
    if job and job["kind"].endswith("Job")
}
OWN_KINDS = {name: job for name, job in EXAMPLES.items() if job["kind"] != "DLJob"}


def named(job: Resource) -> Resource:
    metadata = {**job["metadata"], "namespace": "team", "uid": "uid-1", "creationTimestamp": stamp(-60)}
    return {**copy.deepcopy(job), "metadata": metadata}


def stamp(seconds: float) -> str:
    return (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def framework_of(job: Resource) -> Any:
    return FRAMEWORKS[kinds.kind_of(job).framework]


@pytest.mark.parametrize("name", OWN_KINDS)
def test_it_reads_the_replicas_as_the_operator_does(name: str) -> None:
    job = named(OWN_KINDS[name])
    wanted = {group.type: group.replicas for group in parse_job(job, framework_of(job)).groups}
    assert {one.type: one.desired for one in view.view(job, now=NOW).replicas} == wanted


@pytest.mark.parametrize("name", OWN_KINDS)
def test_the_life_of_a_job_of_this_operator(name: str) -> None:
    """With the status alone, as in a list, and with the pods."""
    job = named(OWN_KINDS[name])
    (job["spec"].get("runPolicy") or {}).pop("suspend", None) if isinstance(job["spec"], dict) else None
    cluster = FakeCluster(job, framework_of(job))
    seen = [seen_of(cluster)[0]]
    for _ in range(6):
        cluster.settle()
        cluster.start()
        cluster.run_all()
        cluster.run_batch_jobs()
        cluster.settle()
        states = seen_of(cluster)
        seen.append(states[0])
        assert states[0] == states[1], "the pods change the counts, not the state"
    assert seen[0] == view.CREATED
    assert seen[-1] in (view.RUNNING, view.SUCCEEDED)
    alone, with_pods = (view.view(cluster.resource, pods, now=cluster.now) for pods in ((), cluster.pods.values()))
    assert alone.ready == with_pods.ready
    assert {one.pending for one in alone.replicas} == {0}


def seen_of(cluster: FakeCluster) -> list[str]:
    return [view.view(cluster.resource, pods, now=cluster.now).state for pods in ((), cluster.pods.values())]


# --- what others write


def condition(type_: str, at: float, status: str = "True", reason: str = "", message: str = "") -> Resource:
    times = dict.fromkeys(("lastUpdateTime", "lastTransitionTime"), stamp(at))
    return {"type": type_, "status": status, "reason": reason or f"PyTorchJob{type_}", "message": message, **times}


def of_v1(
    *conditions: Resource, kind: str = "PyTorchJob", field: str = "pytorchReplicaSpecs", **status: Any
) -> Resource:
    """A job as training-operator v1 or mpi-operator leaves it: conditions, and neither state nor phase."""
    entry = {"replicas": 2, "template": {"spec": {"containers": [{"name": "pytorch", "resources": RESOURCES}]}}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "j", "namespace": "team", "uid": "uid-1", "creationTimestamp": stamp(-60)},
        "spec": {field: {"Worker": entry}},
        "status": {"conditions": list(conditions), **status},
    }


RESOURCES = {"limits": {"nvidia.com/gpu": 2, "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}
BEGUN = condition("Created", -59)
V1 = {
    "not taken up": (of_v1(), view.CREATED, Durations(queued=60)),
    "created": (of_v1(BEGUN, startTime=stamp(-50)), view.STARTING, Durations(10, 50)),
    "running": (
        of_v1(BEGUN, condition("Running", -30), startTime=stamp(-50), replicaStatuses={"Worker": {"active": 2}}),
        view.RUNNING,
        Durations(10, 20, 30),
    ),
    "restarting": (
        of_v1(BEGUN, condition("Running", -9, "False"), condition("Restarting", -9), startTime=stamp(-50)),
        view.RESTARTING,
        Durations(10, None, 50),
    ),
    "succeeded": (
        of_v1(
            *(BEGUN, condition("Running", -5, "False"), condition("Succeeded", -5)),
            startTime=stamp(-50),
            completionTime=stamp(-5),
        ),
        view.SUCCEEDED,
        Durations(10, None, 45),
    ),
    "failed": (
        of_v1(BEGUN, condition("Failed", -20, reason="PyTorchJobFailed", message="it failed"), startTime=stamp(-50)),
        view.FAILED,
        Durations(10, None, 30),
    ),
    "invalid": (
        of_v1(condition("Failed", -20, reason="PyTorchJobFailedValidation", message="no container")),
        view.INVALID,
        Durations(queued=40),
    ),
    "no status at all": ({**of_v1(), "status": None}, view.CREATED, Durations(queued=60)),
}


@pytest.mark.parametrize("name", V1)
def test_a_job_of_training_operator(name: str) -> None:
    job, state, durations = V1[name]
    seen = view.view(job, now=NOW)
    assert (seen.state, seen.durations) == (state, durations)


@pytest.mark.parametrize(
    ("suspend", "labels", "conditions", "state"),
    [
        (True, {}, (), view.SUSPENDED),
        (True, {view.QUEUE_LABEL: "user"}, (), view.QUEUED),
        (False, {}, (condition("Suspended", -9),), view.SUSPENDED),
        (False, {view.QUEUE_LABEL: "user"}, (condition("Suspended", -9),), view.QUEUED),
        (
            False,
            {view.QUEUE_LABEL: "user"},
            (condition("Suspended", -9, "False"), condition("Running", -8)),
            view.RUNNING,
        ),
    ],
)
def test_a_job_that_waits(suspend: bool, labels: dict[str, str], conditions: Any, state: str) -> None:
    job = of_v1(*conditions)
    job["spec"]["runPolicy"] = {"suspend": suspend}
    job["metadata"]["labels"] = labels
    seen = view.view(job, now=NOW)
    assert (seen.state, seen.queue) == (state, labels.get(view.QUEUE_LABEL, ""))


def test_a_job_that_is_deleted_but_not_one_that_has_ended() -> None:
    job = of_v1(BEGUN, condition("Running", -30))
    job["metadata"]["deletionTimestamp"] = stamp(-1)
    assert view.view(job, now=NOW).state == view.DELETING
    job["status"]["conditions"].append(condition("Succeeded", -2))
    assert view.view(job, now=NOW).state == view.SUCCEEDED


@pytest.mark.parametrize(
    ("phase", "state"),
    [("Creating", view.STARTING), ("Running", view.RUNNING), ("CleanUp", view.STARTING), ("", view.CREATED)],
)
def test_a_job_of_mx_operator_has_a_phase_and_no_conditions(phase: str, state: str) -> None:
    job = named(EXAMPLES["tests/manifests/mx_job_dist.yaml"])
    counted = {"ReplicasStates": {"Running": 1}, "mx_replica_type": "SCHEDULER", "state": "Running"}
    job["status"] = {"phase": phase, "state": "Running" if phase else "", "replicaStatuses": [counted]}
    seen = view.view(job, now=NOW)
    assert seen.state == state
    assert next(one for one in seen.replicas if one.type == "Scheduler").running == 1


def pod(name: str, labels: Resource, phase: str = "Running", owner: Resource | None = None, **status: Any) -> Resource:
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "labels": labels,
            "creationTimestamp": stamp(-40),
            "ownerReferences": [owner or {"kind": "PyTorchJob", "name": "j", "uid": "uid-1", "controller": True}],
        },
        "spec": {"nodeName": f"node-of-{name}", "containers": [{"name": "pytorch"}, {"name": "sidecar"}]},
        "status": {"phase": phase, **status},
    }


def worker(index: int, phase: str = "Running", **status: Any) -> Resource:
    labels = {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": str(index)}
    return pod(f"j-worker-{index}", {view.JOB_NAME_LABEL: "j", **labels}, phase, **status)


def ended(code: int, at: float, **more: Any) -> Resource:
    state = {"exitCode": code, "finishedAt": stamp(at), "reason": "Error", **more}
    main = {"name": "pytorch", "restartCount": 1, "state": {"terminated": state}}
    return {"containerStatuses": [{"name": "sidecar", "restartCount": 7}, main]}


def test_pods_are_newer_than_the_status() -> None:
    job = of_v1(BEGUN, condition("Running", -30), replicaStatuses={"Worker": {"active": 2}})
    other = {**worker(0), "metadata": {**worker(0)["metadata"], "ownerReferences": [{"uid": "another"}]}}
    seen = view.view(job, [worker(0), worker(1, "Pending"), other], now=NOW)
    assert seen.replicas == (Replicas("Worker", 2, pending=1, running=1),)
    assert seen.nodes == ("node-of-j-worker-0", "node-of-j-worker-1")


def test_the_pod_that_ended_first_explains_a_failure_of_training_operator() -> None:
    job = V1["failed"][0]
    assert view.view(job, now=NOW).failure == Failure("PyTorchJobFailed", "it failed")
    pods = [worker(0, "Failed", **ended(1, -20)), worker(1, "Failed", **ended(137, -25, reason="OOMKilled"))]
    seen = view.view(job, pods, now=NOW)
    assert seen.failure == Failure("OOMKilled", "it failed", "j-worker-1", "pytorch", 137)
    assert seen.restarts == 2, "of the container that trains"


def test_this_operators_failure_and_restarts() -> None:
    job = of_v1(condition("Failed", -20), state="Failed", retries={"worker-0": 2, "job": 1}, reason="Error: a sentence")
    job["status"]["failure"] = {
        "pod": "j-worker-0",
        "container": "pytorch",
        "exitCode": 3,
        "reason": "Error",
        "message": "x",
    }
    seen = view.view(job, now=NOW)
    assert seen.failure == Failure("Error", "x", "j-worker-0", "pytorch", 3)
    assert (seen.restarts, seen.reason) == (3, "Error: a sentence")


def test_the_launcher_of_mpi_operator_is_a_pod_of_a_batch_job() -> None:
    job = of_v1(BEGUN, condition("Running", -9), kind="MPIJob", field="mpiReplicaSpecs", startTime=stamp(-50))
    job["apiVersion"] = "kubeflow.org/v2beta1"
    job["spec"]["mpiReplicaSpecs"]["Launcher"] = {"template": {"spec": {"containers": [{"name": "mpi"}]}}}
    label = {view.JOB_NAME_LABEL: "j", "training.kubeflow.org/job-role": "launcher"}
    batch = {"kind": "Job", "name": "j-launcher", "uid": "of-the-batch-job", "controller": True}
    pods = [
        pod("j-launcher-abcde", label, "Failed", batch),
        {**pod("j-launcher-fghij", label, "Running", batch)},
        pod("j-worker-0", {view.JOB_NAME_LABEL: "j", "training.kubeflow.org/job-role": "worker"}),
    ]
    pods[1]["metadata"]["creationTimestamp"] = stamp(-5)
    seen = view.view(job, pods, now=NOW)
    assert seen.replicas == (Replicas("Launcher", 1, running=1), Replicas("Worker", 2, pending=1, running=1))


def test_requests_of_all_replicas_and_groups() -> None:
    job = of_v1()
    group = {
        "name": "large",
        "replicas": 1,
        "template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 8}}}]}},
    }
    job["spec"]["pytorchReplicaSpecs"]["Worker"] |= {"replicas": 3, "groups": [group]}
    assert view.view(job, now=NOW).requests == view.Requests(gpus=12, cpu=1.0, memory=2 * 1024**3)


def test_requests_of_a_dljob_in_its_short_form() -> None:
    job = named(EXAMPLES["examples/dljob-digits.yaml"])
    assert view.view(job, now=NOW).requests == view.Requests(cpu=pytest.approx(0.3), memory=3 * 256 * 1024**2)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("100m", 0.1),
        ("1.5Gi", 1.5 * 1024**3),
        ("1e3", 1000),
        ("2k", 2000),
        (3, 3),
        (".5", 0.5),
        ("", 0),
        *((none, 0) for none in ("Gi", "1e999999999", "1e9999M", "\u0661", None, "1_0", "nan")),
    ],
)
def test_quantities(text: Any, value: float) -> None:
    assert float(quantity.parse(text)) == value


def test_init_containers_run_before_the_others_and_sidecars_beside_them() -> None:
    def one(cpu: str, **more: Any) -> Resource:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {"containers": [one("1")], "initContainers": [one("1", restartPolicy="Always"), one("3")]}
    assert view.pod_requests(spec)["cpu"] == 4
    assert view.pod_requests({**spec, "overhead": {"cpu": "250m"}})["cpu"] == 4.25
    assert view.pod_requests({**spec, "overhead": {"cpu": "-250", "nvidia.com/gpu": "-1"}}) == {
        "cpu": 0,
        "nvidia.com/gpu": 0,
    }
    assert view.pod_requests({**spec, "containers": [one("5")]})["cpu"] == 6


def test_owner_and_user() -> None:
    job = of_v1()
    job["metadata"]["ownerReferences"] = [{"kind": "Trial", "name": "t", "controller": True}]
    job["metadata"]["annotations"] = {"dljob.operator/user": "ada"}
    seen = view.view(job, now=NOW)
    assert (seen.owner, seen.user) == ("Trial/t", "ada")


def test_plain_data_has_kubernetes_spelling() -> None:
    plain = view.view(V1["failed"][0], now=NOW).as_dict()
    assert plain["apiVersion"] == "kubeflow.org/v1"
    assert plain["failure"]["exitCode"] is None
    assert plain["replicas"][0] == {
        "type": "Worker",
        "desired": 2,
        "pending": 2,
        "running": 0,
        "succeeded": 0,
        "failed": 0,
    }


def test_now_is_the_time_of_the_call_by_default() -> None:
    assert view.view(of_v1()).age == pytest.approx((datetime.now(UTC) - NOW).total_seconds() + 60, abs=5)


KEYS = (
    *("replicas", "template", "spec", "containers", "initContainers", "resources", "limits", "cpu", "groups", "count"),
    *(
        "conditions",
        "type",
        "status",
        "replicaStatuses",
        "Worker",
        "active",
        "failure",
        "retries",
        "startTime",
        "phase",
    ),
    *("pytorchReplicaSpecs", "replicaSpecs", "runPolicy", "schedulingPolicy", "labels", "ownerReferences", "overhead"),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=20,
)


@given(st.sampled_from(kinds.ALL), st.fixed_dictionaries({"metadata": ANYTHING, "spec": ANYTHING, "status": ANYTHING}))
def test_any_object_has_a_view(kind: kinds.Kind, fields: Resource) -> None:
    job = {"apiVersion": f"{kind.group}/{kind.versions[0]}", "kind": kind.kind, **fields}
    assert view.view(job, [fields], now=NOW).state in view.STATES


@given(
    st.sampled_from(kinds.ALL),
    st.fixed_dictionaries({"spec": ANYTHING, "status": ANYTHING}),
    st.sampled_from([None, "nonsense", "2026-01-02T12:00:00Z"]),
)
def test_a_view_grows_older_without_its_object(kind: kinds.Kind, fields: Resource, created: str | None) -> None:
    job = {"apiVersion": f"{kind.group}/v1", "kind": kind.kind, "metadata": {"creationTimestamp": created}, **fields}
    _expect_the_same_later(job)


@pytest.mark.parametrize("types", [(), ("Running",), ("Running", "Succeeded"), ("Failed",), ("Created", "Suspended")])
@pytest.mark.parametrize("start", [{}, {"startTime": stamp(-40)}])
@pytest.mark.parametrize("end", [{}, {"completionTime": stamp(-10)}])
def test_a_view_of_each_state_grows_older(types: tuple[str, ...], start: Resource, end: Resource) -> None:
    conditions = [{"type": one, "status": "True", "lastTransitionTime": stamp(-20)} for one in types]
    _expect_the_same_later(of_v1(*conditions, **start, **end))


def _expect_the_same_later(job: Resource) -> None:
    seen, later = view.view(job, now=NOW), NOW + timedelta(hours=1)
    assert view.aged(seen, view.times_of(job, seen.state), later) == view.view(job, now=later)


def test_the_folder_of_examples_is_where_this_file_looks() -> None:
    assert {kinds.kind_of(job).framework for job in OWN_KINDS.values()} == set(FRAMEWORKS)
    assert isinstance(view.view(of_v1()), JobView) and Path(ROOT / "examples").is_dir()


def test_accelerators_are_those_of_the_operator() -> None:
    assert view._GPU_NAMES == ACCELERATORS  # noqa: SLF001

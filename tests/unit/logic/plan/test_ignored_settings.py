"""The user learns which settings of a template the operator sets itself: an Event, and a line in the status."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import ignored_settings
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework, Hooks
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan
from support.builders import (
    CAFFE2,
    JAX,
    MPI,
    MXNET,
    PADDLE,
    PYTORCH,
    TENSORFLOW,
    caffe2job,
    grouped,
    jaxjob,
    manifest_of,
    mpijob,
    mpijob_v1,
    mxjob,
    paddlejob,
    pod_context,
    pytorchjob,
    tfjob,
)
from support.fake_cluster import FakeCluster, is_quiet

Resource = dict[str, Any]
RANK, WORLD_SIZE = {"name": "RANK", "value": "0"}, {"name": "WORLD_SIZE", "value": "1"}
EXPECTED = {
    "Master": "env of container pytorch: WORLD_SIZE",
    "Worker": "env of container pytorch: RANK, WORLD_SIZE",
}


def template(resource: Resource, type_: str) -> Any:
    (entries,) = (v for k, v in resource["spec"].items() if k.lower().endswith("replicaspecs"))
    if isinstance(entries, list):
        return next(e for e in entries if type_.upper() in e.values())["template"]
    return (entries if "template" in entries else entries[type_])["template"]


def with_env(resource: Resource, *env: Mapping[str, Any]) -> Resource:
    """``resource`` with the variables in the first container of all templates of its map."""
    made = copy.deepcopy(resource)
    (entries,) = (v for k, v in made["spec"].items() if k.endswith("ReplicaSpecs"))
    for entry in entries.values():
        entry["template"]["spec"]["containers"][0]["env"] = [dict(one) for one in env]
    return made


def ignored(resource: Resource, framework: Framework = PYTORCH) -> dict[str, str]:
    job = parse_job(resource, framework)
    return ignored_settings.find(job, pod_context(job, framework))


def test_the_variables_that_make_every_process_the_first_one() -> None:
    assert ignored(with_env(pytorchjob(1, 2), RANK, WORLD_SIZE)) == EXPECTED, "RANK is right in the master"


@pytest.mark.parametrize(
    "resource",
    [
        pytorchjob(1, 2),
        with_env(pytorchjob(1, 2), {"name": "OWN", "value": "1"}, {"name": "PYTHONUNBUFFERED", "value": "0"}),
        with_env(pytorchjob(1, 2), {"name": "MASTER_PORT", "value": "23456"}, {"name": "WORLD_SIZE", "value": "3"}),
        with_env(paddlejob(0, 1), {"name": "POD_IP_DUMMY", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}),
    ],
    ids=["none", "tuning", "the operator's values", "the operator's source"],
)
def test_nothing_to_report(resource: Resource) -> None:
    assert ignored(resource, PADDLE if resource["kind"] == "PaddleJob" else PYTORCH) == {}


def test_the_last_replica_of_a_template_decides_too() -> None:
    assert ignored(with_env(jaxjob(3), {"name": "PROCESS_ID", "value": "0"}), JAX) == {
        "Worker": "env of container jax: PROCESS_ID"
    }
    assert ignored(with_env(jaxjob(1), {"name": "PROCESS_ID", "value": "0"}), JAX) == {}


def labelled(labels: Mapping[str, Any], annotations: Mapping[str, Any] | None = None) -> Resource:
    resource = pytorchjob(1, 1)
    template(resource, "Worker")["metadata"] = {"labels": dict(labels), "annotations": dict(annotations or {})}
    return resource


OF_LABELS: Mapping[str, tuple[Resource, str]] = {
    "managed-by": (labelled({"app.kubernetes.io/managed-by": "Helm"}), "labels: app.kubernetes.io/managed-by"),
    "v1": (
        labelled({"training.kubeflow.org/job-name": "x", "training.kubeflow.org/replica-type": "worker"}),
        "labels: training.kubeflow.org/job-name",
    ),
    "own": (labelled({"dljob.operator/job-uid": "x"}), "labels: dljob.operator/job-uid"),
    "group": (labelled({"dljob.operator/replica-group": "x"}), "labels: dljob.operator/replica-group"),
    "hash": (labelled({}, {"dljob.operator/spec-hash": "x"}), "annotations: dljob.operator/spec-hash"),
    "shared": (
        labelled({}, {"dljob.operator/shared-environment": "x"}),
        "annotations: dljob.operator/shared-environment",
    ),
    "both": (
        labelled({"a": "b", "dljob.operator/attempt": "7"}, {"dljob.operator/spec-hash": "x", "c": None}),
        "labels: dljob.operator/attempt; annotations: dljob.operator/spec-hash",
    ),
}


@pytest.mark.parametrize("case", OF_LABELS)
def test_labels_and_annotations(case: str) -> None:
    resource, expected = OF_LABELS[case]
    assert ignored(resource) == {"Worker": expected}


@pytest.mark.parametrize("version", ["v1", "v2beta1"])
def test_a_workers_index_in_the_labels_of_an_mpijob(version: str) -> None:
    resource = mpijob_v1() if version == "v1" else mpijob(runLauncherAsWorker=True)
    template(resource, "Worker")["metadata"] = {"labels": {"training.kubeflow.org/replica-index": "0"}}
    job = parse_job(resource, MPI)
    first = 0 if version == "v1" else 1
    made = [manifest_of(job, "worker", index, framework=MPI)["metadata"]["labels"] for index in (0, 1)]
    assert [labels["training.kubeflow.org/replica-index"] for labels in made] == [str(first), str(first + 1)]
    assert ignored(resource, MPI) == {"Worker": "labels: training.kubeflow.org/replica-index"}


@pytest.mark.parametrize(
    ("own", "of_the_replicas", "run_policy", "is_ignored"),
    [
        ("Always", "OnFailure", {}, True),
        ("OnFailure", "OnFailure", {}, False),
        ("OnFailure", None, {}, False),
        ("Always", None, {}, True),
        ("OnFailure", "ExitCode", {}, True),
        ("Never", "ExitCode", {}, False),
        ("OnFailure", "OnFailure", {"restartScope": "Job"}, False),
        ("", "Never", {}, False),
    ],
)
def test_restart_policy(own: str, of_the_replicas: str | None, run_policy: Resource, is_ignored: bool) -> None:
    resource = pytorchjob(1, 1, runPolicy=run_policy)
    template(resource, "Worker")["spec"]["restartPolicy"] = own
    if of_the_replicas:
        resource["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = of_the_replicas
    assert ignored(resource) == ({"Worker": "restartPolicy"} if is_ignored else {})


@pytest.mark.parametrize("own", ["Always", "OnFailure", "Never"])
def test_the_restart_policy_of_a_list_layout_is_the_templates(own: str) -> None:
    assert ignored(mxjob().v1alpha1().pod("Scheduler", restartPolicy=own).resource(), MXNET) == {}
    other = mxjob().v1alpha1().pod("Scheduler", restartPolicy=own).entry("Scheduler", restartPolicy="ExitCode")
    assert ignored(other.resource(), MXNET) == ({} if own == "Never" else {"Scheduler": "restartPolicy"})


@pytest.mark.parametrize(
    ("framework", "resource", "type_", "expected"),
    [
        (PYTORCH, pytorchjob(1, 1), "Worker", {}),
        (TENSORFLOW, tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2), "Worker", {"Worker": "hostname, subdomain"}),
        (MPI, mpijob(), "Launcher", {"Launcher": "hostname, subdomain"}),
        (CAFFE2, caffe2job(2), "Worker", {"Worker": "hostname, subdomain"}),
        (TENSORFLOW, tfjob(master=1, worker=1), "Worker", {"Worker": "hostname, subdomain"}),
    ],
)
def test_hostname_and_subdomain(framework: Framework, resource: Resource, type_: str, expected: dict[str, str]) -> None:
    template(resource, type_)["spec"].update(hostname="coordinator", subdomain="mesh")
    assert ignored(resource, framework) == expected


def test_a_full_name_that_is_too_long() -> None:
    resource = pytorchjob(1, 1)
    resource["metadata"]["name"] = "f" * 50
    template(resource, "Worker")["spec"]["setHostnameAsFQDN"] = True
    assert ignored(resource) == {"Worker": "setHostnameAsFQDN (the full name has more than 64 characters)"}


def test_all_templates_of_a_type_are_in_one_text() -> None:
    resource = with_env(pytorchjob(1, 3), WORLD_SIZE)
    resource = grouped(resource, "Worker", large=(1, {"env": [RANK]}), small=(0, {"env": [{"name": "MASTER_ADDR"}]}))
    template(resource, "Worker")["spec"]["subdomain"] = "mesh"
    assert ignored(resource)["Worker"] == "env of container pytorch: RANK, WORLD_SIZE"


def test_its_length_is_bounded() -> None:
    many = [{"name": f"ECHO_{number}_{'x' * 100}", "value": "own"} for number in range(500)]
    containers = [{"name": f"c{number}", "image": "x", "env": many} for number in range(60)]
    resource = pytorchjob(1, 1000)
    template(resource, "Worker")["spec"]["containers"] += containers
    environment = {one["name"]: "ours" for one in many}
    framework = dataclasses.replace(PYTORCH, hooks=Hooks(environment=lambda _: environment))
    text = ignored(resource, framework)["Worker"]
    assert text.startswith(f"env of container c0: ECHO_0_{'x' * 54}..., ECHO_1_")
    assert len(text) == ignored_settings.TEXT_LENGTH
    short = {"Worker": "env of container c0: " + ", ".join(f"V{n}" for n in range(10)) + " and 490 more"}
    template(resource, "Worker")["spec"]["containers"][1:] = [
        {"name": "c0", "image": "x", "env": [{"name": f"V{n}", "value": "own"} for n in range(500)]}
    ]
    framework = dataclasses.replace(PYTORCH, hooks=Hooks(environment=lambda _: {f"V{n}": "1" for n in range(500)}))
    assert ignored(resource, framework) == short


# --- in the status and as an Event


def events(plans: list[Plan]) -> list[str]:
    return [event.message for plan in plans for event in plan.events if event.reason == "IgnoredSettings"]


MESSAGE = (
    "The operator sets these itself and ignores the template's: Master: env of container pytorch: WORLD_SIZE; "
    "Worker: env of container pytorch: RANK, WORLD_SIZE"
)


def started(resource: Resource) -> tuple[FakeCluster, list[Plan]]:
    cluster = FakeCluster(resource, PYTORCH)
    plans = cluster.settle()
    cluster.run_all()
    return cluster, [*plans, *cluster.settle()]


def test_one_event_and_a_line_in_the_status() -> None:
    cluster, plans = started(with_env(pytorchjob(1, 2), RANK, WORLD_SIZE))
    assert events(plans) == [MESSAGE]
    assert [event.type for plan in plans for event in plan.events if event.reason == "IgnoredSettings"] == ["Warning"]
    assert cluster.status["ignoredSettings"] == EXPECTED
    assert is_quiet(cluster.step()), "and nothing more to write"


def test_no_line_without_any() -> None:
    cluster, plans = started(pytorchjob(1, 2))
    assert events(plans) == []
    assert "ignoredSettings" not in cluster.status


def test_also_where_the_first_status_was_deferred() -> None:
    """Or was lost: the pods exist, and no pod is created any more."""
    cluster = FakeCluster(with_env(pytorchjob(1, 2), RANK, WORLD_SIZE), PYTORCH)
    cluster.step(status_gets_lost=True)
    cluster.run_all()
    assert events(cluster.settle()) == [MESSAGE]
    assert cluster.status["ignoredSettings"] == EXPECTED


def test_also_of_a_job_that_ends_before_its_first_status() -> None:
    cluster = FakeCluster(with_env(pytorchjob(1, 0), WORLD_SIZE, RANK, {"name": "MASTER_ADDR"}), PYTORCH)
    cluster.step(status_gets_lost=True)
    cluster.run_all()
    cluster.exit("master", 0, 0)
    assert len(events(cluster.settle())) == 1
    assert cluster.status["state"] == "Succeeded"
    assert cluster.status["ignoredSettings"] == {"Master": "env of container pytorch: MASTER_ADDR"}


def test_a_restart_does_not_repeat_it() -> None:
    cluster, _ = started(with_env(pytorchjob(1, 2), RANK, WORLD_SIZE))
    cluster.user_deletes("example-job-worker-1")
    cluster.kubelet_deletes()
    plans = cluster.settle()
    assert any(plan.pods for plan in plans)
    assert events(plans) == []
    assert cluster.status["ignoredSettings"] == EXPECTED


def test_a_changed_spec_repeats_it() -> None:
    cluster, _ = started(with_env(pytorchjob(1, 2), RANK, WORLD_SIZE))
    cluster.edit(lambda spec: template({"spec": spec}, "Worker")["spec"]["containers"][0].update(env=[RANK]))
    plans = []
    for _ in range(3):
        plans += cluster.settle()
        cluster.kubelet_deletes()
    cluster.run_all()
    plans += cluster.settle()
    assert len(events(plans)) == 1
    assert cluster.status["ignoredSettings"] == {**EXPECTED, "Worker": "env of container pytorch: RANK"}


def test_a_changed_spec_without_any_removes_it() -> None:
    cluster, _ = started(with_env(pytorchjob(1, 2), RANK, WORLD_SIZE))

    def without(spec: Any) -> None:
        for type_ in ("Master", "Worker"):
            template({"spec": spec}, type_)["spec"]["containers"][0].pop("env")

    cluster.edit(without)
    plans = []
    for _ in range(3):
        plans += cluster.settle()
        cluster.kubelet_deletes()
    cluster.run_all()
    assert events([*plans, *cluster.settle()]) == []
    assert "ignoredSettings" not in cluster.status


def test_a_job_that_runs_since_an_earlier_release_is_left_alone() -> None:
    cluster, _ = started(with_env(pytorchjob(1, 2), RANK, WORLD_SIZE))
    status = {name: value for name, value in cluster.status.items() if name != "ignoredSettings"}
    cluster.resource = {**cluster.resource, "status": status}
    assert is_quiet(cluster.step())
    cluster.user_deletes("example-job-worker-1")
    cluster.kubelet_deletes()
    assert events(cluster.settle()) == [MESSAGE], "the new pod has other variables than the one before"


# --- nothing is overwritten in silence


def test_every_field_of_a_template_is_kept_or_reported() -> None:
    """Whatever the operator will overwrite in the future has to be reported too."""
    spec = {
        "activeDeadlineSeconds": 7,
        "affinity": {"own": 1},
        "automountServiceAccountToken": False,
        "dnsPolicy": "None",
        "enableServiceLinks": True,
        "ephemeralContainers": [],
        "hostAliases": [{"ip": "127.0.0.1", "hostnames": ["own"]}],
        "hostIPC": True,
        "hostNetwork": True,
        "hostPID": True,
        "hostUsers": False,
        "hostname": "own",
        "hostnameOverride": "own",
        "imagePullSecrets": [{"name": "own"}],
        "nodeName": "own",
        "nodeSelector": {"own": "1"},
        "os": {"name": "linux"},
        "overhead": {"cpu": "1"},
        "preemptionPolicy": "Never",
        "priority": 7,
        "priorityClassName": "own",
        "readinessGates": [{"conditionType": "own"}],
        "resourceClaims": [{"name": "own"}],
        "restartPolicy": "Always",
        "runtimeClassName": "own",
        "schedulerName": "own",
        "schedulingGates": [{"name": "own"}],
        "securityContext": {"runAsUser": 7},
        "serviceAccountName": "own",
        "setHostnameAsFQDN": True,
        "shareProcessNamespace": True,
        "subdomain": "own",
        "terminationGracePeriodSeconds": 7,
        "tolerations": [{"key": "own"}],
        "topologySpreadConstraints": [{"maxSkew": 7}],
        "volumes": [{"name": "own"}],
    }
    resource = tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2)
    own = template(resource, "Worker")
    own["metadata"] = {"labels": {"app.kubernetes.io/managed-by": "own", "own": "1"}, "annotations": {"own": "1"}}
    own["spec"].update(spec)
    own["spec"]["containers"][0]["env"] = [{"name": "TF_CONFIG", "value": "{}"}, {"name": "OWN", "value": "1"}]
    job = parse_job(resource, TENSORFLOW)
    made = manifest_of(job, "worker", framework=TENSORFLOW)
    changed = {name for name in own["spec"] if made["spec"].get(name) != own["spec"][name]}
    assert changed == {"containers", "hostname", "subdomain", "restartPolicy"}
    assert ignored(resource, TENSORFLOW)["Worker"] == (
        "env of container tensorflow: TF_CONFIG; labels: app.kubernetes.io/managed-by; hostname, subdomain, restartPolicy"
    )

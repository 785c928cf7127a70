"""The cluster spec, the input of every hook."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import (
    PLACEHOLDERS,
    build_cluster_spec,
    own_template,
    placeholders,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from support.builders import MPI, MXNET, UID, MXJob, grouped, mpijob_v1, mxjob, seen_from


def test_shape() -> None:
    job = mxjob("digits").v1alpha1().workers(2).option(RuntimeId="76no").entry("Scheduler", PsRootPort=9000)
    job.template_metadata("Worker", annotations={"a": "b"})
    least: dict[str, object] = {"containers": ["mxnet"], "fields": {}, "limits": [], "service_account": ""}
    least["processors"] = {}
    assert seen_from(job.job(), "Worker", 1) == {
        "job": {
            "name": "digits",
            "namespace": "default",
            "uid": UID,
            "kind": "MXJob",
            "api_version": "kubeflow.org/v1alpha1",
            "runtime_id": "76no",
            "mode": "dist",
            "form": "v1alpha1",
            "version": "",
        },
        "replicas": {
            "Scheduler": [{"host": "scheduler-76no-0.mxjob-76no", "port": 9000, "rank": 0}],
            "Worker": [
                {"host": "worker-76no-0.mxjob-76no", "port": 9091, "rank": 1},
                {"host": "worker-76no-1.mxjob-76no", "port": 9091, "rank": 2},
            ],
        },
        "templates": {
            "Scheduler": {**least, "annotations": {}},
            "Worker": {**least, "annotations": {"a": "b"}},
        },
        "spec": {},
        "files": {},
        "settings": {},
        "service_domain": "",
        "total": 3,
        "attempt": 0,
        "task": {"type": "Worker", "index": 1, "rank": 2},
    }


@pytest.mark.parametrize(
    ("job", "different"),
    [
        pytest.param(
            mxjob("digits").v1alpha1().workers(2).option(RuntimeId="76no").entry("Scheduler", PsRootPort=9000),
            {
                "rank": 2,
                "count": 2,
                "total": 3,
                "host": "worker-76no-1.mxjob-76no",
                "rank0_host": "scheduler-76no-0.mxjob-76no",
                "rank0_port": 9000,
            },
            id="v1alpha1",
        ),
        pytest.param(
            mxjob("digits").v1().servers(2).workers(3).option(RuntimeId="76no"),
            {
                "rank": 4,
                "count": 3,
                "total": 6,
                "host": "digits-worker-1",
                "rank0_host": "digits-scheduler-0",
                "rank0_port": 9091,
            },
            id="v1",
        ),
    ],
)
def test_the_values_of_the_placeholders(job: MXJob, different: dict[str, object]) -> None:
    values = placeholders(seen_from(job.job(), "Worker", 1))
    assert values == {
        "job": "digits",
        "namespace": "default",
        "uid": UID,
        "runtime_id": "76no",
        "kind": "MXJob",
        "kind_lower": "mxjob",
        "type": "Worker",
        "type_lower": "worker",
        "type_upper": "WORKER",
        "index": 1,
        "port": 9091,
        **different,
    }
    assert values.keys() == PLACEHOLDERS


def test_rank_0_where_the_first_type_has_no_replica() -> None:
    job = mxjob("digits").v1().without("Scheduler").servers(0).workers(2).option(jobMode="local").job()
    assert placeholders(seen_from(job, "Worker", 1))["rank0_host"] == "digits-worker-0"


def test_ranks_follow_the_framework_and_not_the_user() -> None:
    job = mxjob().v1().without("Scheduler").workers(2).servers(1).scheduler(1).job()
    assert [g.type for g in job.groups] == ["Worker", "Server", "Scheduler"]
    cluster = seen_from(job, "Scheduler")
    assert {t: [m["rank"] for m in members] for t, members in cluster["replicas"].items()} == {
        "Scheduler": [0],
        "Server": [1],
        "Worker": [2, 3],
    }


def test_what_a_template_limits_and_its_account() -> None:
    """Of all containers; a template is not validated yet."""
    job = mpijob_v1()
    spec = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    spec["serviceAccountName"] = "trainer"
    spec["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1, "cpu": 1}, "requests": {"memory": 1}}
    spec["containers"] += [{"name": "more", "image": "i", "resources": {"limits": {"cpu": 1, "memory": 1}}}]
    found = build_cluster_spec(parse_job(job, MPI), MPI)["templates"]
    assert found["Launcher"]["limits"] == ["cpu", "memory", "nvidia.com/gpu"]
    assert found["Launcher"]["service_account"] == "trainer"
    assert (found["Worker"]["limits"], found["Worker"]["service_account"]) == ([], "")
    spec["containers"][1]["resources"] = {"limits": ["cpu"]}
    assert build_cluster_spec(parse_job(job, MPI), MPI)["templates"]["Launcher"]["limits"] == ["cpu", "nvidia.com/gpu"]


def test_processors_by_container() -> None:
    job = mpijob_v1()
    spec = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    spec["containers"][0]["resources"] = {"limits": {"cpu": "1500m"}}
    more = {"name": "more", "image": "i", "resources": {"limits": {"cpu": 1, "amd.com/gpu": 1}}}
    spec["containers"] += [more, {"name": "aside", "image": "i"}]
    found = build_cluster_spec(parse_job(job, MPI), MPI)["templates"]
    assert found["Worker"]["processors"] == {spec["containers"][0]["name"]: 2}
    assert found["Launcher"]["processors"] == {}


def test_groups() -> None:
    """Hooks learn of the templates; what is a function of type and index stays as it is."""
    resource = grouped(mxjob().v1().workers(4).resource(), "Worker", large=(1, {"name": "mxnet"}), small=(2, {}))
    entry = resource["spec"]["mxReplicaSpecs"]["Worker"]
    entry["groups"][0]["template"]["metadata"] = {"annotations": {"a": "b"}}
    entry["groups"][0]["template"]["spec"]["containers"].append({"name": "gpu", "image": "gpu:1"})
    job = parse_job(resource, MXNET)
    plain = {"annotations": {}, "containers": ["mxnet"], "limits": [], "processors": {}, "service_account": ""}
    own = {**plain, "fields": {}}
    large = {**plain, "replicas": 1, "annotations": {"a": "b"}, "containers": ["mxnet", "gpu"]}
    small = {**plain, "replicas": 2}
    clusters = [seen_from(job, "Worker", index) for index in range(4)]
    assert all(
        cluster["templates"] == {"Scheduler": own, "Worker": {**own, "groups": {"large": large, "small": small}}}
        for cluster in clusters
    )
    assert [cluster["task"].get("group") for cluster in clusters] == ["large", "small", "small", None]
    assert [own_template(cluster)["containers"] for cluster in clusters] == [["mxnet", "gpu"], *[["mxnet"]] * 3]
    assert "group" not in seen_from(job, "Scheduler")["task"]

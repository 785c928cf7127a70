"""The ConfigMap with the shared environment of a large job; every process gets the same values as without it."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import shared_env_configmap
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import CAFFE2, MXNET, TENSORFLOW, MXJob, Resource, mxjob, seen_from
from support.fake_cluster import FakeCluster, is_quiet

REFERENCE = re.compile(r"\$\(([A-Za-z0-9_.-]+)\)")


def large(workers: int = 60) -> MXJob:
    return mxjob("digits").v1().servers(1).workers(workers).run_policy(cleanPodPolicy="Running")


def read_by(fake_cluster: FakeCluster, type_: str, index: int) -> dict[str, str]:
    """The environment of a replica's process, resolved like in the kubelet; all referenced ConfigMaps must exist."""
    found: dict[str, str] = {}
    container = fake_cluster.pod(type_, index)["spec"]["containers"][0]
    for entry in container["env"]:
        source = (entry.get("valueFrom") or {}).get("configMapKeyRef")
        if source:
            found[entry["name"]] = fake_cluster.others["ConfigMap"][source["name"]]["data"][source["key"]]
        else:
            found[entry["name"]] = REFERENCE.sub(lambda m: found[m[1]], entry["value"])
    return {name: text for name, text in found.items() if not name.startswith(shared_env_configmap.PREFIX)}


def expected_env(job: DLJob, type_: str, index: int) -> Mapping[str, str]:
    return MXNET.hooks.environment(seen_from(job, type_, index))


def config_maps(fake_cluster: FakeCluster) -> dict[str, Resource]:
    return {n: m for n, m in fake_cluster.others.get("ConfigMap", {}).items() if m["metadata"].get("annotations")}


def spec_of(kind: str, replicas: Mapping[str, int], **more: Any) -> dict[str, Any]:
    container = {"MXJob": "mxnet", "TFJob": "tensorflow", "Caffe2Job": "caffe2"}[kind]
    template = {"spec": {"containers": [{"name": container, "image": "train:1"}]}}
    if kind == "Caffe2Job":
        return {"replicaSpecs": {"replicas": replicas["WORKER"], "template": template}, **more}
    field = {"MXJob": "mxReplicaSpecs", "TFJob": "tfReplicaSpecs"}[kind]
    return {field: {t: {"replicas": n, "template": template} for t, n in replicas.items()}, **more}


def world_of(kind: str, version: str, framework: Framework, replicas: Mapping[str, int], **more: Any) -> FakeCluster:
    metadata = {"name": "digits", "namespace": "default", "uid": "e800b1ed", "generation": 1}
    spec = spec_of(kind, replicas, **more)
    return FakeCluster({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}, framework)


JOBS = {
    "MXNet": ("MXJob", "kubeflow.org/v1", MXNET, {"Scheduler": 1, "Server": 20, "Worker": 101}, {}),
    "TensorFlow": ("TFJob", "kubeflow.org/v1", TENSORFLOW, {"Chief": 1, "PS": 12, "Worker": 70}, {}),
    "workers alone": ("TFJob", "kubeflow.org/v1", TENSORFLOW, {"Worker": 120}, {}),
    "Caffe2": (
        *("Caffe2Job", "kubeflow.org/v1alpha1", CAFFE2, {"WORKER": 64}),
        {"backendSpecs": {"backendType": "redis", "redisHost": "redis"}},
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_every_process_gets_the_value_of_its_filter(name: str) -> None:
    kind, version, framework, replicas, more = JOBS[name]
    fake_cluster = world_of(kind, version, framework, replicas, **more)
    fake_cluster.settle()
    assert len(config_maps(fake_cluster)) == 1
    job = parse_job(fake_cluster.resource, framework)
    for group in job.groups:
        for index in range(group.replicas):
            assert read_by(fake_cluster, group.type.lower(), index) == framework.hooks.environment(
                seen_from(job, group.type, index, framework)
            )


@pytest.mark.parametrize("name", JOBS)
def test_the_pods_grow_no_more_with_their_number(name: str) -> None:
    kind, version, framework, replicas, more = JOBS[name]
    sizes = []
    for factor in (1, 3):
        fake_cluster = world_of(
            kind, version, framework, {t: n if n == 1 else n * factor for t, n in replicas.items()}, **more
        )
        fake_cluster.settle()
        sizes.append(max(len(json.dumps(p["spec"]["containers"])) for p in fake_cluster.pods.values()))
    assert sizes[1] < sizes[0] + 50


@settings(max_examples=20)
@given(st.integers(50, 130), st.integers(1, 30))
def test_whatever_the_numbers(workers: int, servers: int) -> None:
    fake_cluster = FakeCluster(large(workers).servers(servers))
    fake_cluster.settle()
    job = parse_job(fake_cluster.resource, MXNET)
    for type_, index in (("Scheduler", 0), ("Server", servers - 1), ("Worker", workers // 2), ("Worker", workers - 1)):
        assert read_by(fake_cluster, type_.lower(), index) == expected_env(job, type_, index)


def test_the_pods_of_a_small_job_contain_the_whole_environment() -> None:
    fake_cluster = FakeCluster(large(shared_env_configmap.FROM_REPLICAS - 3))
    fake_cluster.settle()
    assert not config_maps(fake_cluster)
    assert "cluster" in json.loads(
        next(e for e in _env(fake_cluster, "worker", 0) if e["name"] == "MX_CONFIG")["value"]
    )
    one_more = FakeCluster(large(shared_env_configmap.FROM_REPLICAS - 2))
    one_more.settle()
    assert len(config_maps(one_more)) == 1


def test_a_large_job_with_a_small_environment_has_none() -> None:
    fake_cluster = FakeCluster(mxjob("digits").v1alpha1().servers(1).workers(200))
    fake_cluster.settle()
    assert len(fake_cluster.pods) == 202
    assert not config_maps(fake_cluster)


def test_what_the_container_sets_itself_changes_nothing() -> None:
    job = large()
    fake_cluster = FakeCluster(job.container("Worker", env=[{"name": "MX_CONFIG", "value": "mine"}]))
    fake_cluster.settle()
    shared, own = (e for e in _env(fake_cluster, "worker", 3) if "MX_CONFIG" in e["name"])
    assert shared["name"] == "DLJOB_SHARED_MX_CONFIG"
    assert own["value"].startswith("$(DLJOB_SHARED_MX_CONFIG)")


def test_variables_after_one_that_has_a_source_or_is_taken_are_set() -> None:
    source = {"fieldRef": {"fieldPath": "status.podIP"}}
    environment = {"OWN": "x", "IP": source, "FIRST": "1", "LAST": "2"}
    assert list(shared_env_configmap.variables(environment, {"OWN"}, None)) == [
        {"name": "IP", "valueFrom": source},
        {"name": "FIRST", "value": "1"},
        {"name": "LAST", "value": "2"},
    ]


def test_a_dollar_stays_in_the_pod() -> None:
    """Kubernetes expands $(NAME) in values of the pod spec, but not in values from a ConfigMap."""
    declared = {"TALK": "x" * 2000 + "$(HOME){index}"}
    fake_cluster = FakeCluster(
        large(), _mxnet(lambda cluster: {"TALK": declared["TALK"].format(index=cluster["task"]["index"])})
    )
    fake_cluster.settle()
    assert not config_maps(fake_cluster)


@pytest.mark.parametrize(("beyond", "expected"), [(0, 1), (1, 0)])
def test_what_exceeds_a_config_map_stays_in_the_pod(beyond: int, expected: int) -> None:
    text = "x" * (shared_env_configmap.LARGEST + beyond)
    fake_cluster = FakeCluster(large(), _mxnet(lambda cluster: {"LONG": f"{text}{cluster['task']['index']}"}))
    fake_cluster.settle()
    assert len(config_maps(fake_cluster)) == expected


def test_it_is_the_jobs_and_cannot_change() -> None:
    fake_cluster = FakeCluster(large())
    fake_cluster.settle()
    ((name, made),) = config_maps(fake_cluster).items()
    assert made["immutable"] is True
    assert made["metadata"]["ownerReferences"][0]["uid"] == fake_cluster.resource["metadata"]["uid"]
    assert {p["metadata"]["annotations"]["dljob.operator/shared-environment"] for p in fake_cluster.pods.values()} == {
        name
    }
    fake_cluster.run_all()
    fake_cluster.settle()
    assert is_quiet(fake_cluster.planned())


def test_it_comes_before_the_pods_that_need_it() -> None:
    done = FakeCluster(large()).planned()
    assert [m["kind"] for m in done.auxiliary_objects] == ["ConfigMap"]
    assert len(done.pods) == 62


def test_a_restarted_replica_finds_it_there() -> None:
    fake_cluster = FakeCluster(large())
    fake_cluster.start()
    before = fake_cluster.others["ConfigMap"]
    fake_cluster.user_deletes(fake_cluster.pod("worker", 7)["metadata"]["name"])
    fake_cluster.kubelet_deletes()
    done = fake_cluster.step()
    assert len(done.pods) == 1
    assert not done.auxiliary_objects
    fake_cluster.settle()
    assert fake_cluster.others["ConfigMap"] == before
    assert read_by(fake_cluster, "worker", 7) == expected_env(parse_job(fake_cluster.resource, MXNET), "Worker", 7)


def test_a_deleted_config_map_is_created_again() -> None:
    """A container that the kubelet restarts needs it."""
    fake_cluster = FakeCluster(large())
    fake_cluster.start()
    ((name, made),) = config_maps(fake_cluster).items()
    fake_cluster.others["ConfigMap"].clear()
    done = fake_cluster.step()
    assert done.ensured_objects, "a denied request is reported and does not fail the job"
    assert not done.auxiliary_objects
    assert fake_cluster.others["ConfigMap"][name]["data"] == made["data"]
    assert is_quiet(fake_cluster.planned())


def test_after_scaling_the_old_one_goes_with_the_last_pod_that_reads_it() -> None:
    fake_cluster = FakeCluster(large())
    fake_cluster.start()
    (old,) = config_maps(fake_cluster)
    fake_cluster.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"].update(replicas=70))
    fake_cluster.step()
    assert old in config_maps(fake_cluster), "its pods are still going"
    fake_cluster.settle()
    fake_cluster.run_all()
    fake_cluster.settle()
    (new,) = config_maps(fake_cluster)
    assert new != old
    assert len(fake_cluster.pods) == 72
    assert read_by(fake_cluster, "worker", 69) == expected_env(parse_job(fake_cluster.resource, MXNET), "Worker", 69)


def test_an_edit_that_leaves_the_others_running_leaves_them_their_part() -> None:
    """v1 passes annotations of a template to all replicas; replicas that do not restart keep the old ones."""
    fake_cluster = FakeCluster(large())
    fake_cluster.start()
    kept = fake_cluster.pod("server", 0)["metadata"]["annotations"]["dljob.operator/shared-environment"]
    metadata = {"annotations": {"tuner-server-key": "k" * 20}}
    fake_cluster.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"]["template"].update(metadata=metadata))
    fake_cluster.settle()
    fake_cluster.run_all()
    fake_cluster.settle()
    assert kept in config_maps(fake_cluster)
    assert len(config_maps(fake_cluster)) == 2
    assert "k" * 20 in read_by(fake_cluster, "worker", 0)["MX_CONFIG"]
    assert "k" * 20 not in read_by(fake_cluster, "server", 0)["MX_CONFIG"]


def test_replicas_that_wait_for_another_try_find_it_there() -> None:
    """All replicas have failed and wait for their restart delay, so that no pod refers to it."""
    fake_cluster = FakeCluster(large())
    fake_cluster.start()
    for name in list(fake_cluster.pods):
        fake_cluster.user_deletes(name)
    fake_cluster.kubelet_deletes()
    assert not fake_cluster.pods
    job = parse_job(fake_cluster.resource, MXNET)
    seen = build_observed_state(
        Owner("default", job.uid), "mxnet", (), (), {"ConfigMap": fake_cluster.others["ConfigMap"].values()}
    )
    assert shared_env_configmap.deletions(seen)
    assert shared_env_configmap.surplus(job, seen) == ()


@pytest.mark.parametrize(("policy", "left"), [("Running", 0), ("All", 0), ("None", 1)])
def test_a_finished_job_keeps_it_only_where_it_keeps_everything(policy: str, left: int) -> None:
    fake_cluster = FakeCluster(large().run_policy(cleanPodPolicy=policy))
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Done", "Succeeded")
    assert len(config_maps(fake_cluster)) == left


def test_what_an_older_release_made_is_left_alone() -> None:
    """Its pods contain the whole environment."""
    fake_cluster = FakeCluster(large())
    fake_cluster.start()
    for pod in fake_cluster.pods.values():
        del pod["metadata"]["annotations"]["dljob.operator/shared-environment"]
    fake_cluster.others["ConfigMap"].clear()
    assert is_quiet(fake_cluster.planned())


def _env(fake_cluster: FakeCluster, type_: str, index: int) -> list[dict[str, Any]]:
    return list(fake_cluster.pod(type_, index)["spec"]["containers"][0]["env"])


def _mxnet(environment: Any) -> Framework:
    return dataclasses.replace(MXNET, hooks=dataclasses.replace(MXNET.hooks, environment=environment))

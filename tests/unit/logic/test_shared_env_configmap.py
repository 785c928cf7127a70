"""What a large job's processes read alike stands in one ConfigMap, and every process reads what it always read."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.environment import shared_env_configmap
from ansible_collections.dljob.operator.plugins.module_utils.logic.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import CAFFE2, MXNET, TENSORFLOW, MXJob, Resource, mxjob, seen_from
from support.fake_cluster import World, is_quiet

REFERENCE = re.compile(r"\$\(([A-Za-z0-9_.-]+)\)")


def large(workers: int = 60) -> MXJob:
    return mxjob("digits").v1().servers(1).workers(workers).run_policy(cleanPodPolicy="Running")


def read_by(world: World, type_: str, index: int) -> dict[str, str]:
    """The environment of a replica's process: what the kubelet makes of the pod, where all that it names is there."""
    found: dict[str, str] = {}
    container = world.pod(type_, index)["spec"]["containers"][0]
    for entry in container["env"]:
        source = (entry.get("valueFrom") or {}).get("configMapKeyRef")
        if source:
            found[entry["name"]] = world.others["ConfigMap"][source["name"]]["data"][source["key"]]
        else:
            found[entry["name"]] = REFERENCE.sub(lambda m: found[m[1]], entry["value"])
    return {name: text for name, text in found.items() if not name.startswith(shared_env_configmap.PREFIX)}


def told(job: DLJob, type_: str, index: int) -> Mapping[str, str]:
    return MXNET.environment(seen_from(job, type_, index))


def config_maps(world: World) -> dict[str, Resource]:
    return {n: m for n, m in world.others.get("ConfigMap", {}).items() if m["metadata"].get("annotations")}


def spec_of(kind: str, replicas: Mapping[str, int], **more: Any) -> dict[str, Any]:
    container = {"MXJob": "mxnet", "TFJob": "tensorflow", "Caffe2Job": "caffe2"}[kind]
    template = {"spec": {"containers": [{"name": container, "image": "train:1"}]}}
    if kind == "Caffe2Job":
        return {"replicaSpecs": {"replicas": replicas["WORKER"], "template": template}, **more}
    field = {"MXJob": "mxReplicaSpecs", "TFJob": "tfReplicaSpecs"}[kind]
    return {field: {t: {"replicas": n, "template": template} for t, n in replicas.items()}, **more}


def world_of(kind: str, version: str, framework: Framework, replicas: Mapping[str, int], **more: Any) -> World:
    metadata = {"name": "digits", "namespace": "default", "uid": "e800b1ed", "generation": 1}
    spec = spec_of(kind, replicas, **more)
    return World({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}, framework)


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
def test_every_process_reads_what_its_filter_says(name: str) -> None:
    kind, version, framework, replicas, more = JOBS[name]
    world = world_of(kind, version, framework, replicas, **more)
    world.settle()
    assert len(config_maps(world)) == 1
    job = parse_job(world.resource, framework)
    for group in job.groups:
        for index in range(group.replicas):
            assert read_by(world, group.type.lower(), index) == framework.environment(
                seen_from(job, group.type, index, framework)
            )


@pytest.mark.parametrize("name", JOBS)
def test_the_pods_grow_no_more_with_their_number(name: str) -> None:
    kind, version, framework, replicas, more = JOBS[name]
    sizes = []
    for factor in (1, 3):
        world = world_of(
            kind, version, framework, {t: n if n == 1 else n * factor for t, n in replicas.items()}, **more
        )
        world.settle()
        sizes.append(max(len(json.dumps(p["spec"]["containers"])) for p in world.pods.values()))
    assert sizes[1] < sizes[0] + 50


@settings(max_examples=20)
@given(st.integers(50, 130), st.integers(1, 30))
def test_whatever_the_numbers(workers: int, servers: int) -> None:
    world = World(large(workers).servers(servers))
    world.settle()
    job = parse_job(world.resource, MXNET)
    for type_, index in (("Scheduler", 0), ("Server", servers - 1), ("Worker", workers // 2), ("Worker", workers - 1)):
        assert read_by(world, type_.lower(), index) == told(job, type_, index)


def test_a_small_job_says_it_all_in_its_pods() -> None:
    world = World(large(shared_env_configmap.FROM_REPLICAS - 3))
    world.settle()
    assert not config_maps(world)
    assert "cluster" in json.loads(next(e for e in _env(world, "worker", 0) if e["name"] == "MX_CONFIG")["value"])


def test_a_large_job_whose_processes_read_little_has_none() -> None:
    world = World(mxjob("digits").v1alpha1().servers(1).workers(200))
    world.settle()
    assert len(world.pods) == 202
    assert not config_maps(world)


def test_what_the_container_sets_itself_it_need_not_share() -> None:
    job = large()
    world = World(job.container("Worker", env=[{"name": "MX_CONFIG", "value": "mine"}]))
    world.settle()
    assert [e for e in _env(world, "worker", 3) if "MX_CONFIG" in e["name"]] == [{"name": "MX_CONFIG", "value": "mine"}]


def test_a_dollar_stays_in_the_pod() -> None:
    """There Kubernetes reads it, as it did before; in what comes from a ConfigMap it would not."""
    declared = {"TALK": "x" * 2000 + "$(HOME){index}"}
    world = World(large(), _mxnet(lambda cluster: {"TALK": declared["TALK"].format(index=cluster["task"]["index"])}))
    world.settle()
    assert not config_maps(world)


def test_what_no_config_map_can_hold_stays_in_the_pod() -> None:
    text = "x" * (shared_env_configmap.LARGEST + 1)
    world = World(large(), _mxnet(lambda cluster: {"LONG": f"{text}{cluster['task']['index']}"}))
    world.settle()
    assert not config_maps(world)


def test_it_is_the_jobs_and_cannot_change() -> None:
    world = World(large())
    world.settle()
    ((name, made),) = config_maps(world).items()
    assert made["immutable"] is True
    assert made["metadata"]["ownerReferences"][0]["uid"] == world.resource["metadata"]["uid"]
    assert {p["metadata"]["annotations"]["dljob.operator/shared-environment"] for p in world.pods.values()} == {name}
    world.run_all()
    world.settle()
    assert is_quiet(world.planned())


def test_it_comes_before_the_pods_that_need_it() -> None:
    done = World(large()).planned()
    assert [m["kind"] for m in done.auxiliary_objects] == ["ConfigMap"]
    assert len(done.pods) == 62


def test_a_restarted_replica_finds_it_there() -> None:
    world = World(large())
    world.start()
    before = world.others["ConfigMap"]
    world.user_deletes(world.pod("worker", 7)["metadata"]["name"])
    world.kubelet_deletes()
    done = world.step()
    assert len(done.pods) == 1
    assert not done.auxiliary_objects
    world.settle()
    assert world.others["ConfigMap"] == before
    assert read_by(world, "worker", 7) == told(parse_job(world.resource, MXNET), "Worker", 7)


def test_deleted_by_somebody_it_comes_back() -> None:
    """A container that the kubelet starts again needs it."""
    world = World(large())
    world.start()
    ((name, made),) = config_maps(world).items()
    world.others["ConfigMap"].clear()
    done = world.step()
    assert done.ensured_objects, "a refusal of which is told, and fails nothing"
    assert not done.auxiliary_objects
    assert world.others["ConfigMap"][name]["data"] == made["data"]
    assert is_quiet(world.planned())


def test_after_scaling_the_old_one_goes_with_the_last_pod_that_reads_it() -> None:
    world = World(large())
    world.start()
    (old,) = config_maps(world)
    world.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"].update(replicas=70))
    world.step()
    assert old in config_maps(world), "its pods are still going"
    world.settle()
    world.run_all()
    world.settle()
    (new,) = config_maps(world)
    assert new != old
    assert len(world.pods) == 72
    assert read_by(world, "worker", 69) == told(parse_job(world.resource, MXNET), "Worker", 69)


def test_an_edit_that_leaves_the_others_running_leaves_them_their_part() -> None:
    """v1 hands annotations of a template to everybody; whoever does not start anew still reads the old ones."""
    world = World(large())
    world.start()
    kept = world.pod("server", 0)["metadata"]["annotations"]["dljob.operator/shared-environment"]
    metadata = {"annotations": {"tuner-server-key": "k" * 20}}
    world.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"]["template"].update(metadata=metadata))
    world.settle()
    world.run_all()
    world.settle()
    assert kept in config_maps(world)
    assert len(config_maps(world)) == 2
    assert "k" * 20 in read_by(world, "worker", 0)["MX_CONFIG"]
    assert "k" * 20 not in read_by(world, "server", 0)["MX_CONFIG"]


def test_replicas_that_wait_for_another_try_find_it_there() -> None:
    """All of them have failed and wait out their back-off: no pod is left to refer to it."""
    world = World(large())
    world.start()
    for name in list(world.pods):
        world.user_deletes(name)
    world.kubelet_deletes()
    assert not world.pods
    job = parse_job(world.resource, MXNET)
    seen = build_observed_state(job.uid, "mxnet", (), (), {"ConfigMap": world.others["ConfigMap"].values()})
    assert shared_env_configmap.deletions(seen)
    assert shared_env_configmap.surplus(job, seen) == ()


@pytest.mark.parametrize(("policy", "left"), [("Running", 0), ("All", 0), ("None", 1)])
def test_a_finished_job_keeps_it_only_where_it_keeps_everything(policy: str, left: int) -> None:
    world = World(large().run_policy(cleanPodPolicy=policy))
    world.start()
    world.exit("scheduler", 0, 0)
    world.settle()
    assert world.outcome == ("Done", "Succeeded")
    assert len(config_maps(world)) == left


def test_what_an_older_release_made_is_left_alone() -> None:
    """Its pods say all of it themselves."""
    world = World(large())
    world.start()
    for pod in world.pods.values():
        del pod["metadata"]["annotations"]["dljob.operator/shared-environment"]
    world.others["ConfigMap"].clear()
    assert is_quiet(world.planned())


def _env(world: World, type_: str, index: int) -> list[dict[str, Any]]:
    return list(world.pod(type_, index)["spec"]["containers"][0]["env"])


def _mxnet(environment: Any) -> Framework:
    return dataclasses.replace(MXNET, environment=environment)

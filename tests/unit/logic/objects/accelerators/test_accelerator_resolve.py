"""Accelerators in a plan: the cluster info that it needs, what is added to its pods, and when the job waits."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.accelerators.resolve import (
    AGAIN,
    required_info,
    resolve_accelerators,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import conclude
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import (
    ALPHA_GPU,
    GPU,
    GRPC_SERVER_FILE,
    Accelerator,
    ClusterInfo,
    HostVolume,
    OperatorConfig,
    RequiredInfo,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import ApplyResult
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan
from support.builders import (
    CAFFE2,
    MPI,
    MXNET,
    TENSORFLOW,
    Resource,
    caffe2job,
    mpijob,
    mxjob,
    role_file,
    tf_template,
    tfjob,
)
from support.fake_cluster import FakeCluster

CONFIG = OperatorConfig({ALPHA_GPU: Accelerator((HostVolume("libs", "/nvidia", "/usr/lib/nvidia"),))})
BROKEN = OperatorConfig(problems={ALPHA_GPU: "ConfigMap default/c, data.k: accelerators[a].volumes must be a list"})


class Cluster(FakeCluster):
    """A fake cluster whose operator has a cluster info."""

    cluster_info = ClusterInfo()

    def planned(self) -> Plan:
        job = parse_job(self.resource, self.framework)
        resolution = resolve_accelerators(super().planned(), self.framework, self.cluster_info)
        concluded = conclude(job, resolution, ApplyResult(), self.now)
        return dataclasses.replace(
            resolution.plan,
            status=concluded.status,
            events=concluded.events,
            requeue_after=concluded.requeue_after,
        )


def gpu(name: str = ALPHA_GPU) -> dict[str, Any]:
    return {"resources": {"limits": {name: 1}}}


def tensorflow(name: str = ALPHA_GPU) -> Resource:
    """A master with a GPU, a parameter server without."""
    job = tfjob(master=1, ps=1)
    job["spec"]["replicaSpecs"][0]["template"] = tf_template(**gpu(name))
    return job


def cluster(job: Resource, cluster_info: ClusterInfo, framework: Framework = TENSORFLOW) -> Cluster:
    made = Cluster(job, framework)
    made.cluster_info = cluster_info
    return made


def needs(job: Resource, framework: Framework) -> RequiredInfo:
    planned = FakeCluster(job, framework).planned()
    return required_info(planned, framework)


def volumes(pod: Any) -> list[str]:
    return [v["name"] for v in pod["spec"].get("volumes", ())]


class TestNeeds:
    def test_a_job_without_accelerators_needs_nothing(self) -> None:
        assert not needs(mxjob().resource(), MXNET)
        assert not needs(tfjob(master=1, worker=1), TENSORFLOW)

    def test_the_alpha_name_needs_the_nodes_and_any_name_the_configuration(self) -> None:
        assert needs(mxjob().workers(1).container("Worker", **gpu()).resource(), MXNET) == RequiredInfo(True, True)
        assert needs(mxjob().workers(1).container("Worker", **gpu(GPU)).resource(), MXNET) == RequiredInfo(True, False)

    def test_a_default_parameter_server_needs_the_setting_of_its_file(self) -> None:
        assert needs(tfjob(master=1, ps=1), TENSORFLOW) == RequiredInfo(True, False, frozenset({GRPC_SERVER_FILE}))

    def test_a_plan_that_creates_nothing_needs_nothing(self) -> None:
        fake_cluster = FakeCluster(tensorflow(), TENSORFLOW)
        fake_cluster.start()
        assert not required_info(fake_cluster.planned(), TENSORFLOW)


@pytest.mark.parametrize(
    ("job", "framework", "type_"),
    [
        (tensorflow(), TENSORFLOW, "master"),
        (mxjob().workers(1).container("Worker", **gpu()).resource(), MXNET, "worker"),
        (caffe2job(pod={"containers": [{"name": "caffe2", "image": "i", **gpu()}]}), CAFFE2, "worker"),
    ],
    ids=["tensorflow", "mxnet", "caffe2"],
)
def test_in_every_framework_only_requesting_replicas_are_changed(
    job: Resource, framework: Framework, type_: str
) -> None:
    fake_cluster = cluster(job, ClusterInfo(CONFIG), framework)
    fake_cluster.start()
    with_it = {
        replica.rpartition("-")[0]
        for replica in fake_cluster.replicas()
        if "libs" in volumes(_pod(fake_cluster, replica))
    }
    assert with_it == {type_}


def test_the_launcher_of_a_batch_job_too() -> None:
    job = mpijob(runLauncherAsWorker=True)
    for replicas in job["spec"]["mpiReplicaSpecs"].values():
        replicas["template"]["spec"]["containers"][0] |= gpu()
    fake_cluster = cluster(job, ClusterInfo(CONFIG), MPI)
    fake_cluster.start()
    for type_ in ("launcher", "worker"):
        assert "libs" in volumes(fake_cluster.pod(type_, 0))


def test_a_changed_configuration_applies_to_new_pods_only() -> None:
    job = mxjob().v1alpha1().container("Worker", **gpu()).workers(2).resource()
    fake_cluster = cluster(job, ClusterInfo(CONFIG), MXNET)
    fake_cluster.start()
    fake_cluster.cluster_info = ClusterInfo(
        OperatorConfig({ALPHA_GPU: Accelerator((HostVolume("newer", "/nvidia", "/opt"),))})
    )
    before = set(fake_cluster.pods)
    fake_cluster.settle()
    assert set(fake_cluster.pods) == before
    fake_cluster.evict("worker", 1)
    fake_cluster.settle()
    assert volumes(fake_cluster.pod("worker", 0)) == ["libs"]
    assert volumes(fake_cluster.pod("worker", 1)) == ["newer"]
    assert len(fake_cluster.pods) == 3


class TestTheConfigurationIsWrong:
    def test_the_job_waits_and_its_status_names_the_invalid_key(self) -> None:
        fake_cluster = cluster(tensorflow(), ClusterInfo(BROKEN, watched=True))
        first = fake_cluster.step()
        assert (first.pods, first.services, first.auxiliary_objects, first.requeue_after) == ((), (), (), None)
        assert fake_cluster.status["reason"] == BROKEN.problems[ALPHA_GPU]
        assert fake_cluster.outcome == ("Creating", "Running")
        assert [(e.type, e.reason, e.message) for e in fake_cluster.events] == [
            ("Warning", "FailedCreatePod", BROKEN.problems[ALPHA_GPU])
        ]

    def test_the_event_is_written_once(self) -> None:
        fake_cluster = cluster(tensorflow(), ClusterInfo(BROKEN, watched=True))
        fake_cluster.step()
        assert fake_cluster.step().status is None
        assert len(fake_cluster.events) == 1

    def test_the_job_continues_once_the_config_map_is_fixed(self) -> None:
        fake_cluster = cluster(tensorflow(), ClusterInfo(BROKEN, watched=True))
        fake_cluster.settle()
        fake_cluster.cluster_info = ClusterInfo(CONFIG, watched=True)
        fake_cluster.start()
        assert fake_cluster.replicas() == ["master-0", "ps-0"]
        assert (fake_cluster.status["reason"], fake_cluster.outcome) == ("", ("Running", "Running"))

    def test_without_a_watch_the_job_is_requeued(self) -> None:
        assert cluster(tensorflow(), ClusterInfo(BROKEN)).step().requeue_after == AGAIN
        job = mxjob().workers(1).container("Worker", **gpu()).run_policy(activeDeadlineSeconds=5).resource()
        assert cluster(job, ClusterInfo(BROKEN), MXNET).step().requeue_after == 5

    @pytest.mark.parametrize(("name", "waits"), [(ALPHA_GPU, True), (GPU, False), ("rdma/hca", False), ("", False)])
    def test_others_do_not_wait(self, name: str, waits: bool) -> None:
        job = tensorflow(name) if name else tfjob(master=1, ps=1)
        assert (cluster(job, ClusterInfo(BROKEN)).step().pods == ()) == waits

    @pytest.mark.parametrize(("name", "waits"), [(GPU, True), ("", False)])
    def test_an_unreadable_file_concerns_every_resource(self, name: str, waits: bool) -> None:
        job = tensorflow(name) if name else tfjob(master=1, ps=1)
        broken = OperatorConfig(problems={"": "no YAML"})
        assert (cluster(job, ClusterInfo(broken)).step().pods == ()) == waits

    def test_the_clusters_name_counts_too(self) -> None:
        broken = OperatorConfig(problems={GPU: "wrong"})
        assert cluster(tensorflow(), ClusterInfo(broken, frozenset({GPU}))).step().pods == ()
        assert cluster(tensorflow(), ClusterInfo(broken, frozenset({ALPHA_GPU}))).step().pods != ()


@pytest.mark.parametrize(("texts", "program"), [({}, None), ({GRPC_SERVER_FILE: "print()\n"}, "print()\n")])
def test_the_setting_replaces_the_parameter_servers_program(texts: dict[str, str], program: str | None) -> None:
    fake_cluster = cluster(tfjob(master=1, ps=2), ClusterInfo(programs=texts))
    fake_cluster.start()
    wanted = {"grpc_tensorflow_server.py": program or role_file("tensorflow", "parameter_server.py")}
    assert fake_cluster.others["ConfigMap"]["cm-ps-76no"]["data"] == wanted
    fake_cluster.others["ConfigMap"].clear()
    fake_cluster.settle()
    assert fake_cluster.others["ConfigMap"]["cm-ps-76no"]["data"] == wanted, "created again, for the running servers"


def test_what_could_not_be_read_is_reported() -> None:
    for info in (ClusterInfo(CONFIG), ClusterInfo(BROKEN)):
        planned = FakeCluster(tensorflow(), TENSORFLOW).planned()
        assert resolve_accelerators(planned, TENSORFLOW, info, ("no right",)).warnings == ("no right",)


def _pod(fake_cluster: FakeCluster, replica: str) -> Any:
    type_, _, index = replica.rpartition("-")
    return fake_cluster.pod(type_, int(index))

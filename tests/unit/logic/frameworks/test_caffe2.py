"""Caffe2: golden strings of the environment, and validation of the rendezvous."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from support.builders import CAFFE2, UID, Resource, caffe2job, environment_of, manifest_of

NFS = {"backendType": "nfs", "nfsPath": "/shared/digits"}
NONE = {"backendType": "none"}


def parsed(resource: Resource) -> DLJob:
    return parse_job(resource, CAFFE2)


def pod(resource: Resource, index: int = 0) -> Resource:
    return manifest_of(parsed(resource), "Worker", index, framework=CAFFE2)


def environment(resource: Resource, index: int = 0) -> dict[str, str]:
    return environment_of(pod(resource, index), "caffe2")


def problem(resource: Resource) -> str:
    with pytest.raises(InvalidJob) as caught:
        parsed(resource)
    (only,) = caught.value.problems
    return only


# --- the environment


def test_the_second_of_two_workers_that_meet_at_redis() -> None:
    assert environment(caffe2job(RuntimeID="1529307087"), 1) == {
        "SHARD_ID": "1",
        "NUM_SHARDS": "2",
        "RUN_ID": "1529307087",
        "CAFFE2_CONFIG": '{"cluster":{"worker":["example-job-worker-0:2222","example-job-worker-1:2222"]},'
        '"task":{"type":"worker","index":1}}',
        "REDIS_HOST": "redis-service",
        "REDIS_PORT": "6379",
        "NFS_PATH": "",
    }


def test_of_two_workers_that_meet_in_a_directory() -> None:
    # fields of another backend have no effect: with both, a program would not know which backend to use
    found = environment(caffe2job(backendSpecs={**NFS, "redisHost": "left-over", "redisPort": 1}))
    assert (found["NFS_PATH"], found["REDIS_HOST"], found["REDIS_PORT"]) == ("/shared/digits", "", "6379")


def test_a_single_worker_needs_no_rendezvous() -> None:
    resource = caffe2job(workers=None)
    del resource["spec"]["backendSpecs"]
    found = environment(resource)
    assert (found["NUM_SHARDS"], found["REDIS_HOST"], found["NFS_PATH"]) == ("1", "", "")


@pytest.mark.parametrize(
    ("workers", "given", "host"),
    [
        (2, {"redisHost": "r"}, "r"),
        (2, {"backendType": "", "redisHost": "r"}, "r"),
        (1, {"redisHost": "r"}, ""),
        (1, {"backendType": "redis", "redisHost": "r"}, "r"),
    ],
)
def test_a_job_that_names_no_backend(workers: int, given: dict[str, Any], host: str) -> None:
    assert environment(caffe2job(workers, backendSpecs=given))["REDIS_HOST"] == host


def test_redis_own_port_is_the_default() -> None:
    assert environment(caffe2job(backendSpecs={"backendType": "redis", "redisHost": "r"}))["REDIS_PORT"] == "6379"
    assert environment(caffe2job(backendSpecs={"redisHost": "r", "redisPort": 7000}))["REDIS_PORT"] == "7000"


def test_all_containers_get_it() -> None:
    containers = [
        {"name": "caffe2", "image": "c2:1", "env": [{"name": "REDIS_HOST", "value": "mine"}]},
        {"name": "board", "image": "board:1"},
    ]
    made = pod(caffe2job(pod={"containers": containers}))
    assert environment_of(made, "caffe2")["REDIS_HOST"] == "redis-service"
    assert environment_of(made, "board")["REDIS_HOST"] == "redis-service"


def test_the_names_in_the_config_are_those_of_the_pods() -> None:
    made = [pod(caffe2job(), index) for index in (0, 1)]
    named = json.loads(environment_of(made[0], "caffe2")["CAFFE2_CONFIG"])["cluster"]["worker"]
    assert [f"{p['spec']['hostname']}:2222" for p in made] == named
    # the pods resolve them in the domain of the Service, whose name is their subdomain
    for p in made:
        assert p["spec"]["dnsConfig"]["searches"] == [f"{p['spec']['subdomain']}.default.svc.cluster.local"]


# --- the pod


def test_labels_are_the_original_ones() -> None:
    labels = pod(caffe2job(RuntimeID="1529307087"), 1)["metadata"]["labels"]
    assert {name: text for name, text in labels.items() if "/" not in name} == {
        "group_name": "kubeflow.org",
        "caffe2_job_key": "default-example-job",
        "runtime_id": "1529307087",
        "caffe2_replica_type": "worker",
        "caffe2_replica_index": "1",
    }


@pytest.mark.parametrize("host_network", [False, True])
def test_no_port_that_could_keep_two_replicas_off_one_node(host_network: bool) -> None:
    made = pod(caffe2job(pod={"hostNetwork": host_network}))
    assert "ports" not in made["spec"]["containers"][0]
    assert made["spec"].get("dnsPolicy") == ("ClusterFirstWithHostNet" if host_network else None)


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_the_restart_policy_is_the_templates(policy: str) -> None:
    assert pod(caffe2job(pod={"restartPolicy": policy}))["spec"]["restartPolicy"] == policy


def test_the_default_restart_policy_is_never() -> None:
    assert pod(caffe2job())["spec"]["restartPolicy"] == "Never"


# --- the job as a whole


@pytest.mark.parametrize("field", ["RuntimeID", "RuntimeId"])
def test_two_spellings_of_the_runtime_id(field: str) -> None:
    assert parsed(caffe2job(**{field: "aycw"})).runtime_id == "aycw"


def test_two_runtime_ids() -> None:
    assert parsed(caffe2job(RuntimeID="aycw", RuntimeId="aycw")).runtime_id == "aycw"
    assert problem(caffe2job(RuntimeID="aycw", RuntimeId="76no")) == (
        "spec has RuntimeID and RuntimeId, which are spellings of one field and differ: keep one of them"
    )
    assert problem(caffe2job(RuntimeID="AYCW")).startswith("spec.RuntimeID: 'AYCW' must hold only")


@pytest.mark.parametrize(
    ("workers", "backend", "said"),
    [
        (2, {"backendType": "redis"}, "spec.backendSpecs.redisHost is missing: name the Redis server"),
        (2, {"backendType": "redis", "redisHost": ""}, "spec.backendSpecs.redisHost is missing"),
        (2, {}, "spec.backendSpecs.redisHost is missing"),
        (2, None, "spec.backendSpecs.redisHost is missing"),
        (2, {"backendType": "nfs"}, "spec.backendSpecs.nfsPath is missing: name the directory"),
        (2, NONE, "spec.backendSpecs.backendType is none, and the job has 2 replicas"),
        (2, {"backendType": "mpi"}, "spec.backendSpecs.backendType: 'mpi' is none of redis, nfs, none"),
        (1, {"backendType": ["redis"]}, "spec.backendSpecs.backendType: \"['redis']\" is none of"),
        (2, {"redisHost": "r", "redisPort": 0}, "spec.backendSpecs.redisPort is 0: it must be a whole number"),
        (2, {"redisHost": "r", "redisPort": 65536}, "spec.backendSpecs.redisPort is 65536: it must be"),
        (2, {"redisHost": "r", "redisPort": "6379"}, "spec.backendSpecs.redisPort is '6379': it must be"),
        (2, {"redisHost": {"a": 1}}, "spec.backendSpecs.redisHost is missing"),
        (2, ["redis"], "spec.backendSpecs must be a map"),
    ],
)
def test_invalid_backends(workers: int, backend: Any, said: str) -> None:
    assert problem(caffe2job(workers, backendSpecs=backend)).startswith(said)


@pytest.mark.parametrize(
    ("workers", "backend"),
    [
        *((1, NONE), (1, None), (1, {}), (1, NFS), (2, NFS), (64, {"redisHost": "r"})),
        *((2, {"redisHost": "r", "redisPort": port}) for port in (1, 65535)),
    ],
)
def test_valid_backends(workers: int, backend: Any) -> None:
    assert parsed(caffe2job(workers, backendSpecs=backend)).total == workers


def test_no_workers() -> None:
    with pytest.raises(InvalidJob, match="the job has no replicas"):
        parsed(caffe2job(0))


def test_a_label_of_two_names_may_get_too_long() -> None:
    resource = caffe2job()
    resource["metadata"] |= {"name": "j" * 40, "namespace": "n" * 30}
    text = problem(resource)
    assert text.startswith("metadata.name is 8 characters too long: the pods' label caffe2_job_key would be nnn")


def test_an_edit_of_the_backend_restarts_all_replicas() -> None:
    before, after = (pod(caffe2job(backendSpecs={"redisHost": host}))["metadata"] for host in ("one", "two"))
    assert before["annotations"] != after["annotations"]
    assert before["ownerReferences"][0]["uid"] == UID


@pytest.mark.parametrize(
    "chief",
    [{"replicaName": "MASTER", "replicaIndex": 0}, {"replicaName": "WORKER", "replicaIndex": 2}, {"replicaIndex": "0"}],
)
def test_a_termination_policy_has_no_effect(chief: dict[str, Any]) -> None:
    """Old manifests have one, and a Caffe2Job needs all of its workers."""
    resource = caffe2job(backend=NFS, terminationPolicy={"chief": chief})
    assert parsed(resource).succeeds_by == "all"

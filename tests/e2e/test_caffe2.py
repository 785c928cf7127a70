"""Real Caffe2: the manifest of caffe2-operator unchanged, and our own examples, on two shards each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.testbed.base.settings import settings_from
from kubernetes import client
from support.gpus import advertised
from support.live_jobs import Cluster, Job, start_server
from support.upstream_manifests import preferred

ROOT = Path(__file__).resolve().parents[2]
ACCURACY = re.compile(r"final: test_accuracy=([0-9.]+) shards=(\d+) epochs=\d+ backend=(\w+)")

pytestmark = pytest.mark.training


def example(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((ROOT / "examples" / name).read_text(encoding="utf-8")))


@pytest.fixture
def redis(here: Cluster) -> str:
    """A real Redis server in the test's namespace, ready, as the example brings it along; its Service's name."""
    _, deployment, service = example("caffe2-digits-redis.yaml")
    return start_server(here, deployment, service)


@pytest.fixture
def four_gpus(api: client.ApiClient, operator_log: Path) -> Iterator[None]:
    with advertised(client.CoreV1Api(api), operator_log):
        yield


def final(here: Cluster, job: Job) -> tuple[float, int, str]:
    """Accuracy, number of shards and backend, as worker 0's own log says."""
    pod = job.pod("worker", 0)
    log = here.log(pod["metadata"]["name"], "caffe2")
    # its own name in CAFFE2_CONFIG, which it has looked up
    assert f"{job.name}-worker-0 is {pod['status']['podIP']}, on " in log
    found = ACCURACY.search(log)
    assert found, log
    return float(found[1]), int(found[2]), found[3]


def ended_well(status: dict[str, Any]) -> None:
    assert (status["phase"], status["state"], status["reason"]) == ("Done", "Succeeded", "")
    assert status["replicaStatuses"] == {"succeeded": 2}
    # a training of a second may end before the kubelet has ever reported its pods Running
    types = [c["type"] for c in status["conditions"]]
    assert types == ["Created", *(["Running"] if "Running" in types else []), "Succeeded"]


@pytest.mark.serial
def test_upstream_manifest_trains(here: Cluster, redis: str, four_gpus: None) -> None:
    job = here.create(preferred("caffe2-redis.yaml"))
    status = job.wait_end()
    ended_well(status)
    accuracy, shards, backend = final(here, job)
    assert (shards, backend) == (2, "redis")
    assert accuracy >= 0.9
    pods = [job.pod("worker", index) for index in (0, 1)]
    # the node's own network, twice on one node: nothing of ours may claim a port of it
    assert pods[0]["spec"]["nodeName"] == pods[1]["spec"]["nodeName"] == settings_from().node
    for index, pod in enumerate(pods):
        assert pod["spec"]["hostNetwork"] is True
        assert pod["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
        labels = {k: v for k, v in pod["metadata"]["labels"].items() if "/" not in k}
        assert labels == {
            "group_name": "kubeflow.org",
            "caffe2_job_key": f"{here.namespace}-{job.name}",
            "runtime_id": status["runtimeId"],
            "caffe2_replica_type": "worker",
            "caffe2_replica_index": str(index),
        }
        env = {e["name"]: e.get("value", "") for e in pod["spec"]["containers"][0]["env"]}
        assert (env["SHARD_ID"], env["NUM_SHARDS"], env["RUN_ID"]) == (str(index), "2", status["runtimeId"])
        assert (env["REDIS_HOST"], env["REDIS_PORT"], env["NFS_PATH"]) == (redis, "6379", "")
        assert json.loads(env["CAFFE2_CONFIG"])["task"] == {"type": "worker", "index": index}


def test_example_meets_at_redis(here: Cluster, redis: str) -> None:
    job = here.create(example("caffe2-digits-redis.yaml")[0])
    ended_well(job.wait_end())
    accuracy, shards, backend = final(here, job)
    assert (shards, backend) == (2, "redis")
    assert accuracy >= 0.95


def test_example_meets_in_a_directory_on_the_nodes_network(here: Cluster) -> None:
    job = here.create(example("caffe2-digits-nfs.yaml")[0])
    ended_well(job.wait_end())
    accuracy, shards, backend = final(here, job)
    assert (shards, backend) == (2, "nfs")
    assert accuracy >= 0.95
    assert job.pod("worker", 0)["spec"]["hostNetwork"] is True


def test_a_failed_worker_fails_the_job(here: Cluster, redis: str) -> None:
    """With real processes: what the other one waits for does not come, and it is not left waiting."""
    manifest = example("caffe2-digits-redis.yaml")[0]
    container = manifest["spec"]["replicaSpecs"]["template"]["spec"]["containers"][0]
    container["command"] = ["sh", "-c", 'test "$SHARD_ID" = 0 || exit 3; exec python /opt/dljob/caffe2/train_digits.py']
    del container["args"]
    job = here.create(manifest)
    status = job.wait_end()
    assert status["state"] == "Failed"
    assert (status["failure"]["pod"], status["failure"]["exitCode"]) == ("caffe2-digits-redis-worker-1", 3)
    left = here.wait_pods(job.uid, lambda pods: len(pods) == 1, "only the failed pod", 60)
    assert left[0]["metadata"]["name"] == "caffe2-digits-redis-worker-1"

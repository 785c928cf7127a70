"""The sample statuses of mx-operator and tf-operator, reproduced exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.builders import TENSORFLOW, mxjob
from support.fake_cluster import FakeCluster
from support.upstream_manifests import from_each_source, load

SAMPLE_OF_MXJOB = """
phase: Running
reason: ""
replicaStatuses:
- ReplicasStates:
    Running: 1
  mx_replica_type: SCHEDULER
  state: Running
- ReplicasStates:
    Running: 1
  mx_replica_type: SERVER
  state: Running
- ReplicasStates:
    Running: 1
  mx_replica_type: WORKER
  state: Running
state: Running
"""

SAMPLE_OF_TFJOB = """
phase: Done
reason: ""
replicaStatuses:
- ReplicasStates:
    Succeeded: 1
  state: Succeeded
  tf_replica_type: MASTER
- ReplicasStates:
    Running: 1
  state: Running
  tf_replica_type: WORKER
- ReplicasStates:
    Running: 2
  state: Running
  tf_replica_type: PS
state: Succeeded
"""


def shown(status: Any) -> str:
    """The fields of the sample, in the format of ``kubectl get -o yaml``."""
    fields = ("phase", "reason", "replicaStatuses", "state")
    return yaml.safe_dump({name: status[name] for name in fields}, sort_keys=True)


def as_printed(sample: str) -> str:
    return yaml.safe_dump(yaml.safe_load(sample), sort_keys=True)


@pytest.mark.parametrize("path", from_each_source("mx_job_dist.yaml"))
def test_a_running_mxjob(path: Path) -> None:
    resource = load(path)
    resource["metadata"] |= {"namespace": "default", "uid": "e800b1ed-9c6c-11e8-962f-704d7b2c0a63", "generation": 1}
    resource["spec"]["RuntimeId"] = "aycw"
    fake_cluster = FakeCluster(resource)
    fake_cluster.start()
    assert shown(fake_cluster.status) == as_printed(SAMPLE_OF_MXJOB)
    assert fake_cluster.status["runtimeId"] == "aycw"
    assert sorted(name.rpartition("-")[0] for name in fake_cluster.pods) == [
        "scheduler-aycw-0",
        "server-aycw-0",
        "worker-aycw-0",
    ]


def test_a_running_mxjob_of_each_list_flavor() -> None:
    for flavor in ("v1alpha1", "fioravanzo", "mpba"):
        fake_cluster = FakeCluster(mxjob().flavor(flavor).servers(1).workers(1))
        fake_cluster.start()
        assert shown(fake_cluster.status) == as_printed(SAMPLE_OF_MXJOB), flavor


@pytest.mark.parametrize("path", from_each_source("tf_job.yaml"))
def test_a_tfjob_that_is_done_while_its_workers_still_run(path: Path) -> None:
    resource = load(path)
    resource["metadata"] |= {"namespace": "default", "uid": "e11f9577-b5e5-11e7-8522-42010a8e01a4", "generation": 1}
    resource["spec"]["RuntimeId"] = "76no"
    fake_cluster = FakeCluster(resource, TENSORFLOW)
    fake_cluster.start()
    assert {name.rpartition("-")[0] for name in fake_cluster.pods} >= {"ps-76no-0", "ps-76no-1"}
    fake_cluster.exit("master", 0, 0)
    fake_cluster.settle()
    assert shown(fake_cluster.status) == as_printed(SAMPLE_OF_TFJOB)

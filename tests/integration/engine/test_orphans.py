"""The collector of what deleted jobs have left, against a real API server.

The pods here have no owner, so that Kubernetes' garbage collector leaves them alone: the collector takes the job of an
object from its caller.
"""

from __future__ import annotations

import pytest
from integration.engine.support import PODS, Jobs

from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.orphans import DeletedJob, Orphan, OrphanCollector


def _orphan(kube: KubeApi, jobs: Jobs, kind: ApiResource, name: str, uid: str) -> Orphan:
    """A pod as the cache has it, and the job to which it would refer."""
    pod = kube.get(PODS.item(jobs.namespace, name))
    return Orphan(DeletedJob(kind, jobs.namespace, name, uid), PODS, pod)


def test_only_what_belongs_to_a_deleted_job_is_deleted(
    kube: KubeApi, jobs: Jobs, echojobs: ApiResource, caplog: pytest.LogCaptureFixture
) -> None:
    jobs.create("present")
    jobs.create_nested("nested", levels=1500)
    jobs.create("again")
    items = kube.list_objects(echojobs.collection(jobs.namespace))["items"]
    uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}
    assert uids.keys() == {"present", "nested", "again"}
    cases = {**uids, "again": "uid of the job that had this name before", "gone": "uid of a deleted job"}
    for name in cases:
        jobs.create_pod(name, None)
    orphans = [_orphan(kube, jobs, echojobs, name, uid) for name, uid in cases.items()]
    collector = OrphanCollector(kube, lambda: orphans)
    collector.collect()
    collector.collect()
    left = kube.get(PODS.collection(jobs.namespace))["items"]
    assert {pod["metadata"]["name"] for pod in left if "deletionTimestamp" not in pod["metadata"]} == {
        "present",
        "nested",
    }
    assert "cannot delete" not in caplog.text

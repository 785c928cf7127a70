"""The cluster spec, the input of every hook."""

from __future__ import annotations

from support.builders import UID, mxjob, seen_from


def test_shape() -> None:
    job = mxjob("digits").v1alpha1().workers(2).option(RuntimeId="76no").entry("Scheduler", PsRootPort=9000)
    job.template_metadata("Worker", annotations={"a": "b"})
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
        },
        "replicas": {
            "Scheduler": [{"host": "scheduler-76no-0.mxjob-76no", "port": 9000, "rank": 0}],
            "Worker": [
                {"host": "worker-76no-0.mxjob-76no", "port": 9091, "rank": 1},
                {"host": "worker-76no-1.mxjob-76no", "port": 9091, "rank": 2},
            ],
        },
        "templates": {
            "Scheduler": {"annotations": {}, "containers": ["mxnet"], "fields": {}},
            "Worker": {"annotations": {"a": "b"}, "containers": ["mxnet"], "fields": {}},
        },
        "spec": {},
        "files": {},
        "total": 3,
        "attempt": 0,
        "task": {"type": "Worker", "index": 1, "rank": 2},
    }


def test_ranks_follow_the_framework_and_not_the_user() -> None:
    job = mxjob().v1().without("Scheduler").workers(2).servers(1).scheduler(1).job()
    assert [g.type for g in job.groups] == ["Worker", "Server", "Scheduler"]
    cluster = seen_from(job, "Scheduler")
    assert {t: [m["rank"] for m in members] for t, members in cluster["replicas"].items()} == {
        "Scheduler": [0],
        "Server": [1],
        "Worker": [2, 3],
    }

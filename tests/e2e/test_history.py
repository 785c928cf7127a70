"""The history with real operators and pods: PostgreSQL fails, the operator is killed, and its successor loses no job."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from devtools.testbed.offline.postgresql import PostgreSQL
from devtools.testbed.operator import ProbedOperator
from support.live_jobs import Cluster, Job
from support.polling import until
from support.postgresql import running

from dljob_operator.history.queries import Filter, History


@pytest.fixture
def postgresql() -> Iterator[PostgreSQL]:
    with running() as made:
        yield made


def ending(name: str, command: str) -> dict[str, Any]:
    container = {"name": "pytorch", "image": "dljob/shell:1", "command": ["sh", "-c", command]}
    spec = {"containers": [{**container, "resources": {"requests": {"cpu": "10m"}}}]}
    master = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": spec}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": {"Master": master}},
    }


def operator(own: Cluster, folder: Path, url: str) -> ProbedOperator:
    folder.mkdir()
    options = ("--namespace", own.namespace, "--usage", "on", "--history-database", url)
    return ProbedOperator(own.kubeconfig, folder, options)


def rows(url: str) -> list[dict[str, Any]]:
    history = History(url)
    try:
        return [dict(row) for row in history.newest(100, Filter())]
    finally:
        history.close()


def run(own: Cluster, number: int, code: int = 0) -> Job:
    job = own.create(ending(f"job-{number}", f"sleep 1; exit {code}"))
    job.wait_end()
    return job


def test_no_job_is_lost_and_none_is_there_twice(own: Cluster, postgresql: PostgreSQL, tmp_path: Path) -> None:
    url = postgresql.url
    with operator(own, tmp_path / "first", url) as first:
        run(own, 0)
        until(lambda: len(rows(url)) == 1, timeout=30, pause=0.2)
        postgresql.kill()
        run(own, 1, code=3)
        gone = run(own, 2)
        gone.delete()
        gone.wait_deleted()
        postgresql.start()
        until(lambda: len(rows(url)) == 3, "those that ended meanwhile, also a deleted one", timeout=90, pause=0.5)
        postgresql.kill()
        run(own, 3)
        first.kill()
    with operator(own, tmp_path / "second", url):
        run(own, 4)
        postgresql.start()
        until(lambda: len(rows(url)) == 5, timeout=90, pause=0.5)
    found = sorted(rows(url), key=lambda row: str(row["name"]))
    assert [row["name"] for row in found] == [f"job-{number}" for number in range(5)]
    assert [row["result"] for row in found] == ["Succeeded", "Failed", "Succeeded", "Succeeded", "Succeeded"]
    assert {row["namespace"] for row in found} == {own.namespace}
    assert all(row["cpu_core_seconds"] > 0 and row["running_seconds"] >= 1 for row in found), found
    assert "exited with 3" in found[1]["message"]
    client = [sys.executable, "-m", "dljob", "history", "--database", url, "-n", own.namespace]
    listed = subprocess.run(client, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[0] for line in listed[1:]] == ["job-4", "job-3", "job-2", "job-1", "job-0"], listed
    report = [*client[:4], "report", *client[4:], "--by", "namespace", "-o", "json"]
    (line,) = json.loads(subprocess.run(report, capture_output=True, text=True, check=True).stdout)
    assert (line["jobs"], line["succeeded"], line["failed"]) == (5, 4, 1)

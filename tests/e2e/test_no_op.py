"""A reconcile with nothing to do sends no request to the API server, by its own count for an account of this test."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from devtools.testbed import account
from devtools.testbed.client import Client
from devtools.testbed.operator import OperatorProcess
from support.live_jobs import Cluster, until, v1_job


@pytest.fixture
def counted(cluster: Path, tmp_path: Path) -> Iterator[tuple[Client, Path]]:
    """The administrator's client, and a kubeconfig whose requests are counted apart."""
    client = Client(cluster)
    account.prepare(client, tmp_path / "kubeconfig")
    yield client, tmp_path / "kubeconfig"
    account.remove(client)


def test_a_reconcile_with_nothing_to_do_neither_reads_nor_writes(
    own: Cluster, tmp_path: Path, counted: tuple[Client, Path]
) -> None:
    client, kubeconfig = counted
    log = tmp_path / "operator.log"
    ran = re.compile(rf"reconciled kind=MXJob .*namespace={own.namespace} name=quiet ok=true")

    def runs() -> int:
        return len(ran.findall(log.read_text()))

    with OperatorProcess(kubeconfig, log, ("--namespace", own.namespace, "--log-level", "debug")) as operator:
        operator.wait_ready()
        job = own.create(v1_job("quiet"))
        job.wait_running()
        _until_still(client, runs)
        before, runs_before = account.requests(client), runs()
        for number in range(3):  # a new label on a pod triggers a reconcile, which has nothing to do
            pod = job.pod("worker")["metadata"]["name"]
            own.core.patch_namespaced_pod(pod, own.namespace, {"metadata": {"labels": {"touched": str(number)}}})
            until(lambda seen=runs_before + number: runs() > seen)  # type: ignore[misc]
        assert account.requests(client) == before
    assert sum(before) > 0, "the requests of the operator were not counted at all"


def _until_still(client: Client, runs: Callable[[], int]) -> None:
    """Until neither a run nor a request has been seen for five seconds: all that the job's start entailed is done."""
    seen, since = None, time.monotonic()
    while time.monotonic() - since < 5.0:
        now = (runs(), account.requests(client))
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.2)

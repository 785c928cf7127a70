"""An admission webhook of one namespace that does not answer: its jobs say so, and those of others do not wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from devtools.lab.chaos.webhook import SilentWebhook, rules_for
from devtools.testbed.client import Client
from devtools.testbed.operator import OperatorProcess
from support.live_jobs import Cluster, v1_job

TIMEOUT = 10
"""Seconds for which the API server waits for a webhook, by default."""
JOBS = 60
"""More than all workers reconcile at once. In batches of 25, four at a time, they take minutes."""


@pytest.fixture
def silenced(cluster: Path, crds: None, namespace: str) -> Iterator[Cluster]:
    """Every creation of a pod in the namespace waits for a server that accepts connections and never answers."""
    with SilentWebhook(Client(cluster, patience=60), namespace, TIMEOUT) as webhook:
        webhook.add(namespace, rules_for(all_writes=False))
        yield Cluster(cluster, namespace, own_operator=True)


@pytest.mark.long
def test_jobs_of_another_namespace_do_not_wait_for_it(
    cluster: Path, silenced: Cluster, another_namespace: str, tmp_path: Path
) -> None:
    other = Cluster(cluster, another_namespace, own_operator=True)
    waiting = [silenced.create(v1_job(f"waits-{number}")) for number in range(JOBS)]
    namespaces = ("--namespace", f"{silenced.namespace},{another_namespace}")
    with OperatorProcess(cluster, tmp_path / "log", namespaces) as operator:
        operator.wait_ready()
        status = waiting[0].wait(lambda one: "webhook" in str(one.get("reason")), "the reason", 3 * TIMEOUT)
        assert silenced.namespace in status["reason"], "it names the webhook"
        free = other.create(v1_job("free"))
        other.wait_pods(free.uid, lambda pods: len(pods) == 3, "three pods", 3 * TIMEOUT)

"""An admission webhook of one namespace that does not answer: its jobs say so, and those of others do not wait for it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from devtools.demo.operator_process import OperatorProcess
from kubernetes import client
from support.live_jobs import Cluster, v1_job

TIMEOUT = 10
"""Seconds for which the API server waits for a webhook, by default."""
JOBS = 60
"""More than all workers reconcile at once. In batches of 25, four at a time, they take minutes."""


@pytest.fixture
def silenced(cluster: Path, crds: None, namespace: str) -> Iterator[Cluster]:
    """Every creation of a pod in the namespace waits for a server that accepts connections and never answers."""
    own = Cluster(cluster, namespace, own_operator=True)
    (node, *_) = own.core.list_node().items
    (address,) = (one.address for one in node.status.addresses if one.type == "InternalIP")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        host = probe.getsockname()[0]
    with socket.create_server((host, 0), backlog=1024) as listener:
        url = f"https://{host}:{listener.getsockname()[1]}/"
        with webhook(own, url):
            yield own


@contextmanager
def webhook(own: Cluster, url: str) -> Iterator[None]:
    name = f"{own.namespace}.example.com"
    selector = client.V1LabelSelector(match_labels={"kubernetes.io/metadata.name": own.namespace})
    rule = client.V1RuleWithOperations(operations=["CREATE"], api_groups=[""], api_versions=["v1"], resources=["pods"])
    hook = client.V1ValidatingWebhook(
        admission_review_versions=["v1"],
        client_config=client.AdmissionregistrationV1WebhookClientConfig(url=url),
        name=name,
        namespace_selector=selector,
        rules=[rule],
        side_effects="None",
        timeout_seconds=TIMEOUT,
    )
    metadata = client.V1ObjectMeta(name=name)
    admission = client.AdmissionregistrationV1Api(own.core.api_client)
    admission.create_validating_webhook_configuration(
        client.V1ValidatingWebhookConfiguration(metadata=metadata, webhooks=[hook])
    )
    try:
        yield
    finally:
        admission.delete_validating_webhook_configuration(name)


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

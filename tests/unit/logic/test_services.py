"""The headless Service for all replicas, and v1's Service with the success target's name."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.services import build_services
from support.builders import UID, manifest_of, mxjob


@pytest.mark.parametrize("flavor", ["v1alpha1", "fioravanzo", "mpba"])
def test_one_service_however_many_replicas(flavor: str) -> None:
    job = mxjob().flavor(flavor).workers(500).job()
    (service,) = build_services(job)
    assert service["spec"] == {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"dljob.operator/job-uid": UID},
    }


def test_it_is_the_subdomain_of_the_pods() -> None:
    job = mxjob().v1alpha1().job()
    assert build_services(job)[0]["metadata"]["name"] == manifest_of(job, "scheduler")["spec"]["subdomain"]


def test_v1_adds_the_short_name_of_the_chief() -> None:
    job = mxjob("digits").v1().workers(2).job()
    _, chief = build_services(job)
    assert chief["metadata"]["name"] == "digits-scheduler-0"
    labels = manifest_of(job, "scheduler")["metadata"]["labels"]
    assert chief["spec"]["selector"].items() <= labels.items()
    assert not chief["spec"]["selector"].items() <= manifest_of(job, "worker")["metadata"]["labels"].items()


def test_v1_chief_of_the_termination_policy() -> None:
    _, chief = build_services(mxjob("digits").v1().workers(2).chief("Worker", 1).job())
    assert chief["metadata"]["name"] == "digits-worker-1"


@pytest.mark.parametrize("flavor", ["v1", "v1alpha1"])
def test_services_are_owned(flavor: str) -> None:
    for service in build_services(mxjob().flavor(flavor).job()):
        (owner,) = service["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (UID, True)
        assert service["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "dljob-operator"

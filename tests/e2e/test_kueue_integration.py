"""Kueue's own integration of the v1 kinds, which is off by default, with an operator without `--kueue`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client
from support.kueue_jobs import PRIORITY, Place, all_terminate, pods_of
from support.kueue_jobs import place as place_

pytestmark = [pytest.mark.serial, pytest.mark.full]

KINDS = ("TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")


@pytest.fixture(scope="module")
def place(
    cluster: Path, crds: None, api: client.ApiClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("kueue")
    frameworks = [f"kubeflow.org/{kind.lower()}" for kind in KINDS]
    with place_(cluster, api, folder, [], integrations={"frameworks": frameworks}) as here:
        yield here


@pytest.mark.parametrize("kind", KINDS)
def test_a_higher_priority_evicts_and_the_job_comes_back(place: Place, kind: str) -> None:
    queue = f"own-{kind.lower()}"
    place.kueue.priority(queue, 1000)
    place.queue(queue, preemption={"withinClusterQueue": "LowerPriority"})
    low = place.create(kind, f"low-{kind.lower()}", queue)
    before = {pod["metadata"]["uid"] for pod in place.wait_running(low)}
    urgent = place.create(kind, f"high-{kind.lower()}", queue, **{PRIORITY: queue})
    running = place.wait_running(urgent)
    assert all_terminate(pods_of(place.here, low))
    place.exit(running)
    assert urgent.wait_end()["state"] == "Succeeded"
    after = {pod["metadata"]["uid"] for pod in place.wait_running(low)}
    assert not before & after
    place.exit(pods_of(place.here, low))
    assert low.wait_end()["state"] == "Succeeded"
    place.wait_used(queue, 0)

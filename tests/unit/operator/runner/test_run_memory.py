"""The memory that a worker needs for the objects of its jobs: each worker may have a job of 20,000 pods."""

from __future__ import annotations

import os
import threading
import tracemalloc
from collections.abc import Iterator

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS
from ansible_collections.dljob.operator.plugins.module_utils.shared.worker_protocol import BATCH_VAR

from dljob_operator.engine.cache.transforms import owned
from dljob_operator.json_texts import JsonTexts, text_of
from dljob_operator.runner.batch_worker import PipeWorkSource
from dljob_operator.runner.messages import Frame, RunRequest

UID = "0f0e8c1e-7a4b-4b0e-8f51-2f7a31c2e0aa"
OWNER = Owner("default", UID)
COUNT = 2_000


def cached_pod(index: int) -> str:
    """A pod of the size that those of a small template have in the cache."""
    prefix = "training.kubeflow.org"
    labels = {f"{prefix}/job-name": "train", f"{prefix}/replica-type": "worker", f"{prefix}/replica-index": str(index)}
    types = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    pod = {
        "metadata": {
            "name": f"train-worker-{index}",
            "namespace": "default",
            "uid": f"{index:08d}{UID[8:]}",
            "resourceVersion": str(100_000 + index),
            "creationTimestamp": "2026-11-27T10:00:00Z",
            "labels": labels,
            "ownerReferences": [
                {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "uid": UID, "controller": True}
            ],
        },
        "spec": {"nodeName": f"node-{index % 40}", "restartPolicy": "Never", "containers": [{"name": "pytorch"}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": type_, "status": "True"} for type_ in types],
            "containerStatuses": [{"name": "pytorch", "restartCount": 0, "state": {"running": {}}}],
        },
    }
    return text_of(owned(OWNED_KINDS["Pod"].cached or {})(pod))


@pytest.fixture(scope="module")
def body() -> bytes:
    texts = JsonTexts(map(cached_pod, range(COUNT)))
    return RunRequest("t", {BATCH_VAR: []}, snapshot={UID: {"Pod": texts, "Service": []}}).to_body()


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def test_pods_are_not_all_in_memory_as_dictionaries(body: bytes, traced: None) -> None:
    """As dictionaries alone they take five times the memory of their texts."""
    request = RunRequest.from_body(body, 0.0)
    assert request.snapshot is not None
    observed = build_observed_state(OWNER, "pytorch", request.snapshot[UID]["Pod"], request.snapshot[UID]["Service"])
    assert len(observed.pods) == COUNT
    assert {pod.phase for pod in observed.pods} == {"Running"}
    assert tracemalloc.get_traced_memory()[1] < 4 * len(body)


def test_nor_are_those_of_a_batch_job(body: bytes, traced: None) -> None:
    """Nor those of others: a tenant may write any owner into a pod."""
    request = RunRequest.from_body(body, 0.0)
    assert request.snapshot is not None
    launcher = {"metadata": {"name": "l", "uid": UID, "ownerReferences": [{"uid": "job", "controller": True}]}}
    for others in ({"Job": [launcher]}, {}):
        owner = Owner("default", "job")
        observed = build_observed_state(owner, "pytorch", request.snapshot[UID]["Pod"], [], others)
        assert len(observed.pods) <= 1
    assert tracemalloc.get_traced_memory()[1] < 4 * len(body)


def test_a_worker_keeps_the_objects_of_its_batch_once(body: bytes, traced: None) -> None:
    work_read, work_write = os.pipe()

    def write() -> None:
        with os.fdopen(work_write, "wb") as pipe:
            pipe.write(Frame({}, body).encode())

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    batches = PipeWorkSource(work_read, -1).work()
    batch = next(batches)
    writer.join()
    assert batch.owned is not None
    assert len(batch.owned[UID]["Pod"]) == COUNT
    assert tracemalloc.get_traced_memory()[0] < 1.6 * len(body), "the frame is gone while the batch is reconciled"
    batches.close()  # type: ignore[attr-defined]
    os.close(work_read)

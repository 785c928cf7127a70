"""A job that is deleted and created again at once, each time it runs: of every kind, small and large, 204 times.

The old pods and Services still exist then: the garbage collector deletes 20 objects a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.testbed.ground import Ground, prepared
from devtools.testbed.jobs import JobKind, read_kinds, stored
from devtools.testbed.operator import ProbedOperator
from support.live_jobs import Cluster, kubectl

pytestmark = [pytest.mark.exclusive, pytest.mark.full]

SIZES = (1, 60, 200)
"""Replicas of the job's last type."""
TIMES = 6


@pytest.fixture(scope="module")
def ground(cluster: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with prepared(tmp_path_factory.mktemp("ground"), nodes=4) as made:
        yield made


def sized(kind: JobKind, size: int) -> tuple[dict[str, Any], int]:
    """A job, and the number of its pods."""
    manifest = kind.small_job("again")
    replicas = manifest["spec"][kind.field] if kind.field else manifest["spec"]
    last = replicas if kind.single else replicas[-1] if kind.type_field else replicas[kind.types[-1][0]]
    last[kind.count_field] = size
    if kind.single and size > 1:  # its workers have to find each other
        manifest["spec"]["backendSpecs"] = {"backendType": "redis", "redisHost": "redis"}
    if kind.has_batch_job:  # kwok ends the launcher as soon as it runs, and with it the job
        manifest["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    return manifest, kind.pods - kind.types[-1][1] + size


@pytest.mark.parametrize("kind", stored(read_kinds()), ids=lambda kind: f"{kind.group}-{kind.kind}")
def test_a_job_runs_each_time_it_is_created_again(cluster: Path, ground: Ground, kind: JobKind) -> None:
    with (
        ground.namespace("again") as namespace,
        ProbedOperator(ground.kubeconfig, ground.folder, ("--namespace", namespace)),
    ):
        here = Cluster(cluster, namespace)
        for size in SIZES:
            manifest, pods = sized(kind, size)
            if size > 1 and kind.types == (("MASTER", 1),):
                continue  # one replica of this type is all that a job may have
            for attempt in range(TIMES + 1):
                job = here.create(manifest)
                status = job.wait(lambda s: s.get("phase") in ("Running", "Failed", "Done"), "Running or an end")
                has_run = kind.has_batch_job and status["state"] == "Succeeded"
                assert has_run or status["phase"] == "Running", f"attempt {attempt} with {size} replicas: {status}"
                assert len(job.pods()) == pods, f"attempt {attempt} with {size} replicas"
                job.delete()


def test_kubectl_replaces_a_running_job(cluster: Path, ground: Ground, tmp_path: Path) -> None:
    kind = next(one for one in read_kinds() if (one.group, one.kind) == ("kubeflow.org", "PyTorchJob"))
    with (
        ground.namespace("again") as namespace,
        ProbedOperator(ground.kubeconfig, ground.folder, ("--namespace", namespace)),
    ):
        here = Cluster(cluster, namespace)
        manifest, pods = sized(kind, 60)
        job = here.create(manifest)
        file = tmp_path / "job.yaml"
        file.write_text(yaml.safe_dump(manifest), encoding="utf-8")
        for attempt in range(TIMES + 1):
            status = job.wait(lambda s: s.get("phase") in ("Running", "Failed"), "Running or an end")
            owned = here.owned_pods(job.get()["metadata"]["uid"])
            assert (status["phase"], len(owned)) == ("Running", pods), f"attempt {attempt}: {status}"
            assert "replaced" in kubectl(here, "replace", "--force", "-f", str(file))

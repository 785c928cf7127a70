"""A job that is deleted and created again at once, each time it runs: of every kind, small and large, 204 times.

The old pods and Services still exist then: the garbage collector deletes 20 objects a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.lab.load.ground import Ground, prepared
from devtools.lab.load.jobs import shape_of, small_job
from devtools.lab.load.kinds import JobKind, read_kinds, stored
from devtools.lab.load.operator import Operator
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
    shape = shape_of(kind.api_version, kind.kind)
    manifest = small_job(kind.api_version, kind.kind, "again")
    replicas = manifest["spec"][shape.field] if shape.field else manifest["spec"]
    last = replicas if shape.single else replicas[-1] if shape.type_field else replicas[shape.types[-1][0]]
    last[shape.count_field] = size
    if shape.single and size > 1:  # its workers have to find each other
        manifest["spec"]["backendSpecs"] = {"backendType": "redis", "redisHost": "redis"}
    if shape.has_batch_job:  # kwok ends the launcher as soon as it runs, and with it the job
        manifest["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    return manifest, shape.pods - shape.types[-1][1] + size


@pytest.mark.parametrize("kind", stored(read_kinds()), ids=lambda kind: f"{kind.group}-{kind.kind}")
def test_a_job_runs_each_time_it_is_created_again(cluster: Path, ground: Ground, kind: JobKind) -> None:
    with (
        ground.namespace("again") as namespace,
        Operator(ground.kubeconfig, ground.folder, ("--namespace", namespace)),
    ):
        here = Cluster(cluster, namespace)
        shape = shape_of(kind.api_version, kind.kind)
        for size in SIZES:
            manifest, pods = sized(kind, size)
            if size > 1 and shape.types == (("MASTER", 1),):
                continue  # one replica of this type is all that a job may have
            for attempt in range(TIMES + 1):
                job = here.create(manifest)
                status = job.wait(lambda s: s.get("phase") in ("Running", "Failed", "Done"), "Running or an end")
                has_run = shape.has_batch_job and status["state"] == "Succeeded"
                assert has_run or status["phase"] == "Running", f"attempt {attempt} with {size} replicas: {status}"
                assert len(job.pods()) == pods, f"attempt {attempt} with {size} replicas"
                job.delete()


def test_kubectl_replaces_a_running_job(cluster: Path, ground: Ground, tmp_path: Path) -> None:
    kind = next(one for one in read_kinds() if (one.group, one.kind) == ("kubeflow.org", "PyTorchJob"))
    with (
        ground.namespace("again") as namespace,
        Operator(ground.kubeconfig, ground.folder, ("--namespace", namespace)),
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

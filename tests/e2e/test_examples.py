"""Every file of examples/ that no other test runs, applied as it stands, comes to what its first lines promise."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kubernetes import client, watch
from support.example_outcomes import ELSEWHERE, EXAMPLES, Outcome, outcome_of
from support.live_jobs import Cluster, Job

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.name for path in EXAMPLES.glob("*.yaml") if path.name not in ELSEWHERE)
FILES = [pytest.param(name, marks=[pytest.mark.serial] if outcome_of(name).gpus else []) for name in NAMES]

pytestmark = pytest.mark.training


@pytest.fixture
def outcome(request: pytest.FixtureRequest, cluster: Path) -> Iterator[Outcome]:
    """The file's row of the table, on a node that advertises the GPUs that it needs."""
    name = request.getfixturevalue("name")
    found = outcome_of(name)

    def advertise(count: int) -> None:
        subprocess.run(
            [sys.executable, "-m", "devtools.testbed.cluster", "gpu", str(count)], cwd=ROOT / "hack", check=True
        )

    if found.gpus:
        advertise(found.gpus)
    yield found
    if found.gpus:
        advertise(0)


def wait_gone(here: Cluster, job: Job, timeout: int = 120) -> None:
    """Until the job itself is deleted."""
    group, version, namespace, plural = job.where
    try:
        resource_version = job.get()["metadata"]["resourceVersion"]
    except client.ApiException as e:
        assert e.status == 404
        return
    for event in watch.Watch().stream(
        here.custom.list_namespaced_custom_object,
        group,
        version,
        namespace,
        plural,
        field_selector=f"metadata.name={job.name}",
        resource_version=resource_version,
        timeout_seconds=timeout,
    ):
        if event["type"] == "DELETED":
            return
    raise AssertionError(f"{job.name} is still there after {timeout} s")


@pytest.mark.parametrize("name", FILES)
def test_it_comes_to_what_it_promises(here: Cluster, name: str, outcome: Outcome) -> None:
    job = here.create(yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8")))
    assert job.name == name.removesuffix(".yaml"), "a file is named after its job"
    if outcome.gone:
        job.wait(lambda s: s.get("state") == outcome.state, "its end")
        wait_gone(here, job)
        here.wait_pods(job.uid, lambda pods: not pods, "the pods gone with the job")
        return
    if outcome.suspended:
        job.wait(lambda s: s.get("state") == "Suspended", "its rest")
        assert job.pods() == []
        job.patch({"spec": {"runPolicy": {"suspend": False}}})
    status = job.wait_end()
    assert status["state"] == outcome.state, status.get("reason")
    assert {k: status["failure"].get(k) for k in outcome.failure} == outcome.failure if outcome.failure else True
    if outcome.log:
        type_, says = outcome.log
        pod = job.pod(type_)
        log = here.log(pod["metadata"]["name"], pod["spec"]["containers"][0]["name"])
        assert re.search(says, log), log
    if outcome.left is not None:
        here.wait_pods(job.uid, lambda pods: len(pods) == outcome.left, f"{outcome.left} pods left")

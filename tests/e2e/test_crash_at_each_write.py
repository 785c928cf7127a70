"""The operator is killed at each write of a job's life, at a real API server: the end is that of the undisturbed run.

`tests/unit/perturbation` does this at every request of many more jobs, with an API server in memory. Here some jobs show
that the real one, the processes of the operator and its start from a new cache agree with that.
"""

from __future__ import annotations

import json
import random
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from devtools.lab.chaos import checker, shapes
from devtools.lab.chaos.cli import kwok_program
from devtools.lab.chaos.faults import Fault
from devtools.lab.chaos.history import is_final, job_uid_of, state_of
from devtools.lab.chaos.injector import Injector
from devtools.lab.chaos.nodes import Nodes
from devtools.lab.chaos.operators import Operator
from devtools.lab.chaos.proxy import Proxy, Trail, write_kubeconfig
from devtools.lab.chaos.recorder import Recorder
from devtools.lab.chaos.resources import OWNED, PODS, collection_of
from devtools.lab.chaos.shapes import Ending, Shape
from devtools.lab.chaos.workload import OWN
from devtools.lab.chaos.world import PATIENCE
from devtools.testbed.base.settings import settings_from
from devtools.testbed.client import MERGE, Client
from devtools.testbed.operator import free_port

pytestmark = pytest.mark.long

RUNS = Ending(exit=None, seconds=0.2)
"""A pod runs until the test ends it. By a clock it could end before an operator that was killed has made all pods."""


@dataclass(frozen=True)
class Job:
    """A job, and the order in which the test ends its pods."""

    shape: Shape
    pods: int
    ends: tuple[str, ...]
    """The replica types whose pods succeed, one after the other; the last one ends the job."""


JOBS = {
    title: Job(Shape(title, kind, replicas, spec, "OnFailure" if spec else "ExitCode"), pods, ends)
    for title, kind, replicas, spec, pods, ends in (
        (
            "a list of replicas", "tensorflow.org/v1alpha1 TfJob", {"MASTER": (1, RUNS), "WORKER": (1, RUNS)}, {}, 2,
            ("WORKER", "MASTER"),
        ),
        (
            "a map of replica types", "kubeflow.org/v1 PyTorchJob", {"Master": (1, RUNS), "Worker": (2, RUNS)}, {}, 3,
            ("Worker", "Master"),
        ),
        (
            "a batch Job and a Secret", "kubeflow.org/v2beta1 MPIJob", {"Launcher": (1, RUNS), "Worker": (1, RUNS)},
            {"runPolicy": {"cleanPodPolicy": "All"}}, 2, ("Launcher",),
        ),
    )
}  # fmt: skip
SAMPLE = 9
"""Of so many positions one is tried here; each takes some seconds. The test marked `full` tries all."""
WITHIN = 90.0
"""Seconds until a job has its end, with a start of the operator in between on a loaded machine."""
SETTLES = 3.0
"""Seconds without a change after which an undisturbed job counts as settled."""
VARYING = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z")
EVENT = re.compile(r"/events(/|$)")
"""An Event is written after the status that it is about, by which the test knows the end."""
REPORTS = ("Created", "Running", "Restarting")
"""Conditions of what lasted for some time: an operator that did not see it does not report it."""


class Fixed(random.Random):
    """No random number: the job is the same each time."""

    def random(self) -> float:
        return 0.9

    def uniform(self, a: float, b: float) -> float:
        return a

    def choice(self, seq: Any) -> Any:
        return seq[0]


@dataclass
class World:
    """An operator behind a proxy, and the API server."""

    client: Client
    namespace: str
    injector: Injector
    trail: Trail
    operator: Operator
    recorder: Recorder
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(10_000)))

    def create(self, shape: Shape) -> str:
        """Create the job; its path."""
        manifest = shape.build(Fixed(), f"job-{next(self.numbers):04d}", OWN)
        path = collection_of(manifest, self.namespace)
        self.client.request("POST", path, manifest)
        return f"{path}/{manifest['metadata']['name']}"

    def seen(self, path: str) -> dict[str, Any]:
        """The status of a job and its objects, without what differs between two runs."""
        job = self.client.request("GET", path)
        uid, status = job["metadata"]["uid"], dict(job.get("status") or {})
        conditions = [one for one in status.pop("conditions", ()) if one["type"] not in REPORTS]
        kept = {name: value for name, value in status.items() if name not in ("runtimeId", "specHash")}
        text = VARYING.sub("<time>", json.dumps(kept))
        for varying in (uid, job["metadata"]["name"], str(status.get("runtimeId") or uid)):
            text = text.replace(varying, "<own>")
        owned = {
            plural.plural: [
                one for one in self.client.items(plural.collection(self.namespace)) if job_uid_of(one) == uid
            ]
            for plural in OWNED
        }
        pods = [(rank(one), one["status"].get("phase")) for one in owned.pop(PODS.plural)]
        return {
            "state": state_of(job),
            **json.loads(text),
            "conditions": sorted((one["type"], one["status"], one.get("reason")) for one in conditions),
            "pods": sorted(pods),
            "others": {plural: len(found) for plural, found in owned.items() if found},
        }

    def pods_of(self, path: str) -> list[str]:
        """All pods that the job ever had, for the message of a failure."""
        uid = self.client.request("GET", path)["metadata"]["uid"]
        with self.recorder.history() as history:
            return [str(pod) for pod in history.pods_of(uid)]

    def settled(self, path: str, reached: Callable[[Mapping[str, Any]], bool]) -> dict[str, Any]:
        """What is seen of an undisturbed job once it has ``reached`` a point and nothing changes for a while."""
        deadline, last, since = time.monotonic() + WITHIN, self.seen(path), time.monotonic()
        while not reached(last) or time.monotonic() < since + SETTLES:
            assert time.monotonic() < deadline, last
            time.sleep(0.1)
            if (now := self.seen(path)) != last:
                last, since = now, time.monotonic()
        return last

    def succeed(self, path: str, replica_type: str) -> None:
        """Let all pods of a replica type end with exit code 0."""
        uid = self.client.request("GET", path)["metadata"]["uid"]
        pods = PODS.collection(self.namespace)
        for pod in self.client.items(pods):
            if job_uid_of(pod) == uid and type_of(pod) == replica_type.lower():
                annotated = {"metadata": {"annotations": {shapes.EXIT: "0"}}}
                self.client.request("PATCH", f"{pods}/{pod['metadata']['name']}", annotated, MERGE)

    def differences(self, path: str, wanted: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """What differs from what is ``wanted`` for longer than WITHIN; nothing as soon as it is the same."""
        deadline = time.monotonic() + WITHIN
        while True:
            now = self.seen(path)
            found = {name: (now.get(name), wanted.get(name)) for name in {*now, *wanted}}
            differing = {name: both for name, both in found.items() if both[0] != both[1]}
            if not differing or time.monotonic() > deadline:
                return differing
            time.sleep(0.1)


def type_of(pod: Mapping[str, Any]) -> str:
    return str((pod["metadata"].get("labels") or {}).get("dljob.operator/replica-type"))


def rank(pod: Mapping[str, Any]) -> str:
    labels = pod["metadata"].get("labels") or {}
    names = ("dljob.operator/replica-type", "dljob.operator/replica-index", "dljob.operator/attempt")
    return " ".join(labels.get(name, "") for name in names)


@pytest.fixture(scope="module")
def world(cluster: Path, crds: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("crashes")
    settings = settings_from()
    client, injector, trail = Client(cluster, patience=PATIENCE, timeout=20), Injector(), Trail()
    namespace = f"crashes-{uuid.uuid4().hex[:6]}"
    client.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    try:
        with (
            Nodes(client, kwok_program(settings), cluster, folder),
            Proxy("a", client.access.server, client.context, trail, injector) as proxy,
            Recorder(client, namespace, time.monotonic) as recorder,
        ):
            write_kubeconfig(folder / "kubeconfig", proxy.url)
            arguments = ["--namespace", namespace]
            with Operator("a", folder / "kubeconfig", folder, arguments, free_port()) as operator:
                proxy.kill = lambda fault: operator.kill(fault.process) and None
                operator.wait_ready()
                yield World(client, namespace, injector, trail, operator, recorder)
    finally:
        client.request("DELETE", f"/api/v1/namespaces/{namespace}")


def undisturbed(world: World, job: Job) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each replica type that ends ("" for none yet) and what is seen of the job then."""
    path = world.create(job.shape)
    yield "", world.settled(path, lambda seen: [phase for _, phase in seen["pods"]] == ["Running"] * job.pods)
    for ended in job.ends[:-1]:
        world.succeed(path, ended)
        yield ended, world.settled(path, lambda seen: "Succeeded" in {phase for _, phase in seen["pods"]})
    world.succeed(path, job.ends[-1])
    yield job.ends[-1], world.settled(path, lambda seen: is_final(seen["state"]))


def crash(world: World, job: Job, share: int) -> int:
    """Kill the operator at one of `share` positions of the job; how many there were."""
    began = time.monotonic()
    points = list(undisturbed(world, job))
    writes = world.trail.writes_since(began, world.namespace)
    assert points[-1][1]["state"] == shapes.SUCCEEDED, points
    positions = [(at, kind) for at in range(len(writes)) for kind in ("kill before write", "kill after write")]
    hit: Counter[str] = Counter()
    for number, (at, kind) in enumerate(positions):
        if number % share:
            continue
        starts = world.operator.starts
        world.injector.arm(Fault(number, kind, 0, 0.0, skip=at))
        path = world.create(job.shape)
        for ended, wanted in points:
            if ended:
                world.succeed(path, ended)
            differing = world.differences(path, wanted)
            where = f"{kind} {at}: {writes[at].method} {writes[at].path}, after the end of {ended or 'no pod'}"
            assert not differing, f"{where}: {world.pods_of(path)}"
        world.injector.disarm()  # a run that takes up the job later may need fewer writes
        hit[kind] += world.operator.starts - starts
    assert all(hit[kind] for kind in ("kill before write", "kill after write")), hit
    rested = time.monotonic()
    time.sleep(2)  # that nothing happens cannot be awaited
    late = [one for one in world.trail.writes_since(rested, world.namespace) if not EVENT.search(one.path)]
    assert late == [], "an ended job needs no more writes"
    with world.recorder.history() as history:
        assert history.violations == []
        assert list(checker.wrong_attempts(history)) == []
    assert world.operator.orphans == []
    return len(positions)


@pytest.mark.parametrize("job", JOBS)
def test_the_end_is_the_same(world: World, job: str) -> None:
    assert crash(world, JOBS[job], SAMPLE) >= 10


@pytest.mark.full
@pytest.mark.parametrize("job", JOBS)
def test_the_end_is_the_same_at_every_position(world: World, job: str) -> None:
    crash(world, JOBS[job], 1)

"""`dljob-operator serve` around a substitute of ansible-operator, against a real API server.

The substitute does by itself only what the real one does: it does not see pods. Where the environment names a real one,
that takes its place.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from devtools.testbed.operator import ANSIBLE_OPERATOR, BRIDGE_READY
from integration.engine.support import ECHO, ROOT, Jobs, until

from dljob_operator.engine.cache.predicates import REQUEUE_ANNOTATION
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import KubeApi

FAKE = str(ROOT / "tests" / "support" / "ansible_operator.py")
REAL = os.environ.get(ANSIBLE_OPERATOR, "")
REAL_OPTIONS = ("--health-probe-bind-address=0", "--metrics-bind-address=0", "--ansible-log-events=Nothing")
STARTED, STOPPED = (BRIDGE_READY, "Exiting.") if REAL else ("operator: started", "operator: stopped")
LONG_LIVED = {"dljob_batchable": True, "dljob_resident": True}


class Served:
    """The process, what its roles wrote down, and what it said."""

    def __init__(
        self, folder: Path, roles: Path, kubeconfig: Path, namespace: str, *, long_lived: bool = False, runs: int = 2
    ) -> None:
        self._record = folder / "record"
        self._log = folder / "log"
        watches = folder / "watches.yaml"
        entry = {
            "group": ECHO.group,
            "version": ECHO.version,
            "kind": ECHO.kind,
            "role": str(roles / "roles" / "echo"),
            "vars": {"record_file": str(self._record), **(LONG_LIVED if long_lived else {})},
            "manageStatus": False,
            "snakeCaseParameters": False,
            "markUnsafe": True,
            "watchAnnotationsChanges": True,
            "watchDependentResources": False,
        }
        watches.write_text(yaml.safe_dump([entry]))
        environ = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "ANSIBLE_COLLECTIONS_PATH": str(roles / "collections"),
            "KUBECONFIG": str(kubeconfig),
            "WATCH_NAMESPACE": namespace,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        program = [REAL] if REAL else [sys.executable, FAKE]
        operator = [*program, "run", "--watches-file", str(watches), *(REAL_OPTIONS if REAL else [])]
        concurrency = f"--max-concurrent-reconciles={runs}"
        serve = ["--watches-file", str(watches), "--log-level", "debug", concurrency, "--", *operator]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "dljob_operator", "serve", *serve], env=environ, stdout=log, stderr=log
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    def runs(self, name: str) -> list[dict[str, Any]]:
        if not self._record.exists():
            return []
        lines = map(json.loads, self._record.read_text().splitlines())
        return [line for line in lines if line["name"] == name]

    def wait_run(self, name: str, number: int) -> dict[str, Any]:
        until(lambda: len(self.runs(name)) >= number, f"run {number} of {name}\n{self.log}")
        return self.runs(name)[number - 1]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.fixture(scope="module")
def served(
    roles: Path, kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory, kube: KubeApi, echojobs: ApiResource
) -> Iterator[tuple[Served, Jobs]]:
    """One process, in a namespace of its own, for all tests that only use it. Each has jobs of other names there."""
    namespace = f"test-bridge-{uuid.uuid4().hex[:10]}"
    path = "/api/v1/namespaces"
    kube.request("POST", path, {"metadata": {"name": namespace}})
    process = Served(tmp_path_factory.mktemp("served"), roles, kubeconfig, namespace)
    yield process, Jobs(kube, namespace)
    process.stop()
    kube.request("DELETE", f"{path}/{namespace}")


@pytest.fixture
def serve(
    roles: Path, kubeconfig: Path, tmp_path: Path, namespace: str, echojobs: ApiResource
) -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def start(**how: Any) -> Served:
        made.append(Served(tmp_path, roles, kubeconfig, namespace, **how))
        return made[-1]

    yield start
    for served in made:
        if served.process.poll() is None:
            served.stop()  # killed, it would leave its child behind: in a pod the whole of it goes


@pytest.fixture
def gate(serve: Callable[..., Served], tmp_path: Path) -> Iterator[Path]:
    """A job that waits for this file ends with the test at the latest: `stop` waits for its run."""
    path = tmp_path / "gate"
    yield path
    path.touch()


def annotation(jobs: Jobs) -> str | None:
    found: str | None = jobs.get("a")["metadata"].get("annotations", {}).get(REQUEUE_ANNOTATION)
    return found


@pytest.mark.parametrize("long_lived", [False, True], ids=["forked", "long-lived"])
def test_a_pods_status_is_a_reason_to_run(serve: Callable[..., Served], jobs: Jobs, long_lived: bool) -> None:
    served = serve(long_lived=long_lived)
    owner = jobs.create("a", say="{{ 1 + 1 }}")
    run = served.wait_run("a", 1)
    single = None if long_lived else {"name": "a", "namespace": jobs.namespace}
    assert (run["say"], run["pods"], run["single"]) == ("{{ 1 + 1 }}", {}, single)
    assert annotation(jobs) is None
    jobs.create_pod("a-0", owner)
    until(lambda: "a-0" in served.runs("a")[-1]["pods"], "the pod is in a snapshot")
    jobs.pod_phase("a-0", "Running")
    until(lambda: served.runs("a")[-1]["pods"] == {"a-0": "Running"}, f"its phase is in a snapshot\n{served.log}")
    first = annotation(jobs)
    assert bool(first) is not long_lived, "a worker needs no run of ansible-operator"
    jobs.delete_pod("a-0")
    until(lambda: served.runs("a")[-1]["pods"] == {}, "its end is in a snapshot")
    assert (annotation(jobs) != first) is not long_lived
    assert served.stop() == 0
    assert STOPPED in served.log
    assert "cold" not in served.log
    assert ("worker started" in served.log) == long_lived


def test_a_slow_job_and_one_that_ends_its_worker_do_not_block_others(
    serve: Callable[..., Served], jobs: Jobs, gate: Path
) -> None:
    served = serve(long_lived=True)
    jobs.create("slow", wait_for=str(gate))
    served.wait_run("slow", 1)
    jobs.create("quick")
    jobs.create("fails", fail="no such data")
    crashes = jobs.create("crashes", crash=True)
    served.wait_run("quick", 1)
    served.wait_run("fails", 2)
    served.wait_run("crashes", 2)
    # in one batch with the job that ends the worker, the other is interrupted first and then fails alone
    wait_failure(jobs, "fails", "no such data")
    wait_failure(jobs, "crashes", "ended without a result")
    jobs.delete(crashes["metadata"]["name"])
    jobs.delete("fails")
    assert len(served.runs("slow")) == 1
    jobs.create("requeued", requeue=0.5)
    served.wait_run("requeued", 2)
    gate.touch()
    assert served.stop() == 0
    assert "cold" not in served.log


def wait_failure(jobs: Jobs, name: str, message: str) -> None:
    def messages() -> list[str]:
        return [event["message"] for event in jobs.events(name) if event["reason"] == "ReconcileFailed"]

    until(lambda: any(message in one for one in messages()), f"an event of {name} with {message!r}")


def test_nothing_of_its_own_making_makes_it_run_again(served: tuple[Served, Jobs]) -> None:
    process, jobs = served

    def other_way(name: str) -> None:
        """Another job's whole way, begun now, is over: whatever was to follow from earlier events has been asked for."""
        other = jobs.create(name)
        process.wait_run(name, 1)
        jobs.create_pod(f"{name}-0", other)
        until(lambda: f"{name}-0" in process.runs(name)[-1]["pods"], "the pod is in a snapshot")

    owner = jobs.create("quiet")
    process.wait_run("quiet", 1)
    jobs.create_pod("quiet-0", owner)
    # the scheduler's condition is a reason to run, and on a busy machine it comes late
    until(lambda: jobs.pod("quiet-0")["status"].get("conditions"), "the scheduler has tried to place the pod")
    other_way("before")
    # several runs are made at a time: the one of an earlier event may end after that of a later one
    until(lambda: "quiet-0" in process.runs("quiet")[-1]["pods"], "the pod is in a snapshot")
    other_way("meanwhile")
    count = len(process.runs("quiet"))
    jobs.write_status("quiet", phase="Running")
    jobs.annotate_pod("quiet-0", "somebody", "else")
    other_way("after")
    assert len(process.runs("quiet")) == count


def test_a_run_may_ask_for_another(served: tuple[Served, Jobs]) -> None:
    process, jobs = served
    jobs.create("again", requeue=0.5)
    process.wait_run("again", 3)
    jobs.delete("again")


def test_a_failure_is_retried_and_logged(served: tuple[Served, Jobs]) -> None:
    process, jobs = served
    jobs.create("fails", fail="no such data")
    process.wait_run("fails", 3)
    events = until(lambda: [e for e in jobs.events("fails") if e["reason"] == "ReconcileFailed"], "an event")
    assert "no such data" in events[0]["message"]
    count = len(process.runs("fails"))
    jobs.patch("fails", spec={"fail": None})
    until(lambda: len(process.runs("fails")) > count, "it is run after the change")


def test_the_end_of_ansible_operator_is_the_end(serve: Callable[[], Served], jobs: Jobs) -> None:
    served = serve()
    until(lambda: STARTED in served.log, "the child is up")
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(served.process.pid)], capture_output=True, text=True)
    children = [int(line) for line in listed.stdout.split()]
    for pid in children:
        if (REAL or FAKE) in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(pid, signal.SIGKILL)
    assert served.process.wait(30) == 128 + signal.SIGKILL

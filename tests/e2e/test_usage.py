"""What jobs have used, by their statuses: it is what their real pods have held."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from devtools.testbed.operator import OperatorProcess
from support.live_jobs import BEGUN, RELEASE, UNTIL_RELEASED, Cluster, Job, until, v1_job, watched

OPTIONS = ("--usage", "on")
FAILS_ONCE_RELEASED = f"until [ -e {RELEASE} ]; do sleep 0.1; done; exit 130"


class Pods:
    """The last state of each pod of a namespace, also of those that are gone."""

    def __init__(self, here: Cluster) -> None:
        self._here = here
        self.states: dict[str, dict[str, Any]] = {}
        self.gone: dict[str, float] = {}
        self._enough = threading.Event()

    def follow(self) -> None:
        for event in watched(self._here.core.list_namespaced_pod, self._here.namespace, timeout=600):
            if self._enough.is_set():
                return
            pod = event["raw_object"]
            for one in pod["items"] if event["type"] == BEGUN else [pod]:
                self.states[one["metadata"]["uid"]] = one
            if event["type"] == "DELETED":
                self.gone[pod["metadata"]["uid"]] = datetime.now(UTC).timestamp()

    def stop(self) -> None:
        self._enough.set()

    def have_ended(self) -> bool:
        return all(self._end(pod) is not None for pod in [*self.states.values()])

    def millicores(self) -> tuple[float, int]:
        """What they have held, times seconds, and how many of them did."""
        held = [self._seconds(pod) * 10 for pod in self.states.values() if _bound(pod)]
        return sum(held), len(held)

    def _seconds(self, pod: dict[str, Any]) -> float:
        end = self._end(pod)
        assert end is not None, pod["metadata"]["name"]
        return end - _bound(pod)

    def _end(self, pod: dict[str, Any]) -> float | None:
        states = [one.get("state", {}) for one in pod["status"].get("containerStatuses", ())]
        ends = [_time(one["terminated"]["finishedAt"]) for one in states if "terminated" in one]
        return max(ends, default=self.gone.get(pod["metadata"]["uid"]))


def _bound(pod: dict[str, Any]) -> float:
    scheduled = [one for one in pod["status"].get("conditions", ()) if one["type"] == "PodScheduled"]
    return _time(scheduled[0]["lastTransitionTime"]) if scheduled and scheduled[0]["status"] == "True" else 0.0


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@contextmanager
def followed(here: Cluster) -> Iterator[Pods]:
    pods = Pods(here)
    thread = threading.Thread(target=pods.follow, daemon=True)
    thread.start()
    yield pods
    pods.stop()


@pytest.fixture
def options(own: Cluster) -> tuple[str, ...]:
    return ("--namespace", own.namespace, *OPTIONS)


def usage_of(here: Cluster, *words: str) -> Any:
    """What the command says."""
    command = [sys.executable, "-m", "dljob", "usage", "--kubeconfig", str(here.kubeconfig), "-n", here.namespace]
    return json.loads(subprocess.run([*command, "-o", "json", *words], check=True, capture_output=True).stdout)


def wait_all_up(job: Job, *, after: str = "Startup") -> None:
    """Wait until all replicas run, after an interruption by this cause."""

    def is_up(status: dict[str, Any]) -> bool:
        usage = status.get("usage", {})
        causes = {one["cause"] for one in usage.get("interruptions", ())}
        return usage.get("phase") == "Running" and after in causes

    job.wait(is_up, f"all replicas run, after {after}")


def test_the_account_agrees_with_the_pods(own: Cluster, options: tuple[str, ...], tmp_path: Path) -> None:
    """Over a failure, a deleted pod and a killed operator."""
    with followed(own) as pods:
        with OperatorProcess(own.kubeconfig, tmp_path / "first.log", options) as first:
            first.wait_ready()
            job = own.create(
                v1_job(
                    "used",
                    "ExitCode",
                    {"cleanPodPolicy": "Running"},
                    scheduler=UNTIL_RELEASED,
                    worker=(2, FAILS_ONCE_RELEASED),
                )
            )
            wait_all_up(job)
            job.release("worker", 1)
            wait_all_up(job, after="Failure")
            first.kill()
        with OperatorProcess(own.kubeconfig, tmp_path / "second.log", options) as second:
            second.wait_ready()
            own.core.delete_namespaced_pod(job.pod("server")["metadata"]["name"], own.namespace)
            wait_all_up(job, after="Deletion")
            job.release("scheduler")
            status = job.wait_end()
        until(pods.have_ended)
        held, count = pods.millicores()
    usage = status["usage"]
    assert status["state"] == "Succeeded"
    assert usage["phase"] == "Ended"
    assert "held" not in usage
    # a pod that went without a last word of its container has ended within the second of its deletion
    assert usage["resourceSeconds"]["cpu"] * 1000 == pytest.approx(held, abs=10 * 2 * count)
    causes = {one["cause"]: one for one in usage["interruptions"]}
    assert {cause: one["count"] for cause, one in causes.items()} == {"Startup": 1, "Failure": 1, "Deletion": 1}
    created = datetime.fromisoformat(job.get()["metadata"]["creationTimestamp"])
    ended = datetime.fromisoformat(status["completionTime"])
    assert sum(usage["seconds"].values()) == (ended - created).total_seconds()
    (shown,) = usage_of(own)
    assert shown["cpuHours"] == pytest.approx(usage["resourceSeconds"]["cpu"] / 3600, abs=1e-6)
    assert 0 < shown["goodput"] < 1


def test_a_suspended_job_uses_nothing(own: Cluster, options: tuple[str, ...], tmp_path: Path) -> None:
    with OperatorProcess(own.kubeconfig, tmp_path / "operator.log", options) as operator:
        operator.wait_ready()
        job = own.create(v1_job("rests", scheduler=UNTIL_RELEASED))
        wait_all_up(job)
        job.patch({"spec": {"runPolicy": {"suspend": True}}})
        status = job.wait(
            lambda status: "held" not in status["usage"] and status["usage"]["phase"] == "Suspended", "the suspension"
        )
        assert [one["cause"] for one in status["usage"]["interruptions"]] == ["Startup"]
        (before,) = usage_of(own)
        job.patch({"spec": {"runPolicy": {"suspend": False}}})
        wait_all_up(job)
        (after,) = usage_of(own, "--by", "namespace")
        assert after["seconds"]["suspended"] >= before["seconds"]["suspended"] - 1, "in whole seconds"
        assert after["interruptions"][0]["count"] == 2
        assert after["cpuHours"] > before["cpuHours"]

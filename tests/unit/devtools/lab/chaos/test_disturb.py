"""What the faults on jobs and pods send, and what they tell the recorder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from devtools.lab.chaos import checker
from devtools.lab.chaos.disturb import Disturber
from devtools.lab.chaos.faults import Fault
from devtools.lab.chaos.recorder import Recorder
from devtools.testbed.client import Client

JOBS = "/apis/kubeflow.org/v1/namespaces/n/mxjobs"


def job(uid: str, name: str = "j") -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"uid": uid, "name": name},
        "spec": {"mxReplicaSpecs": {"Worker": {"replicas": 1}}},
    }


@dataclass
class FakeClient:
    """Answers with what is ``present`` by path."""

    present: dict[str, dict[str, Any]] = field(default_factory=dict)
    sent: list[tuple[str, str, Any]] = field(default_factory=list)

    def request(self, method: str, path: str, body: Any = None, content_type: str = "") -> dict[str, Any]:
        self.sent.append((method, path, body))
        return self.present.get(f"{method} {path}", {})


def disturber(client: FakeClient, *manifests: dict[str, Any]) -> Disturber:
    recorder = Recorder(cast(Client, client), "n", lambda: 0.0)
    with recorder.history() as history:
        for one in manifests:
            history.job_event("ADDED", one, 0.0)
    later: list[Callable[[], None]] = []
    return Disturber(cast(Client, client), recorder, "n", lambda seconds, action: later.append(action))


def vanished(one: Disturber) -> list[str]:
    """The UIDs of the jobs that are no longer listed, and that nothing has deleted."""
    with one.recorder.history() as history:
        found = [*checker.vanished_jobs([], history)]
    return [detail.partition(":")[0].partition(",")[0].split()[-1] for _, detail in found]


def test_a_deletion_is_recorded_and_hits_no_later_job_of_the_name() -> None:
    client = FakeClient()
    one = disturber(client, job("1"), job("2", "k"))
    assert one.apply(Fault(0, "job deleted", 0, 0.0)) == "MXJob j"
    assert client.sent == [("DELETE", f"{JOBS}/j", {"propagationPolicy": "Background", "preconditions": {"uid": "1"}})]
    assert vanished(one) == ["2"]


@pytest.mark.parametrize("answer", [f"POST {JOBS}", f"GET {JOBS}/j"], ids=["created", "created before the answer"])
def test_a_job_that_is_created_again_is_one_that_may_vanish(answer: str) -> None:
    one = disturber(FakeClient({answer: job("3")}), job("1"))
    one.apply(Fault(0, "job re-created", 0, 0.0))
    assert vanished(one) == ["3"]


def test_a_job_that_the_run_has_created_is_one_that_may_vanish() -> None:
    one = disturber(FakeClient({f"POST {JOBS}": job("2")}), job("1"))
    one.create(job("2"))
    assert vanished(one) == ["1", "2"]


ONLY = {"preconditions": {"uid": "p"}}
PATH = "/api/v1/namespaces/n/pods/w"
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "w"}, "deleteOptions": ONLY}


@pytest.mark.parametrize(
    ("kind", "request_"),
    [
        ("pod deleted", ("DELETE", PATH, ONLY)),
        ("pod killed", ("DELETE", PATH, {**ONLY, "gracePeriodSeconds": 0})),
        ("pod evicted", ("POST", f"{PATH}/eviction", EVICTION)),
    ],
)
def test_a_pod_that_is_taken_away_disturbs_its_job(kind: str, request_: tuple[str, str, Any]) -> None:
    """It hits no later pod of the name, which may be one of another job."""
    client = FakeClient()
    one = disturber(client, job("1"))
    labels = {"dljob.operator/job-uid": "1", "dljob.operator/replica-type": "worker"}
    pod = {"metadata": {"uid": "p", "name": "w", "labels": labels}, "status": {"phase": "Running"}}
    with one.recorder.history() as history:
        history.pod_event("ADDED", pod, 0.0)
    assert one.apply(Fault(0, kind, 0, 0.0)) == "pod w"
    assert client.sent == [request_]
    assert history.is_disturbed("1")

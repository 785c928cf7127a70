"""What becomes of objects whose deletion no watch has shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from devtools.lab.chaos.recorder import Recorder
from devtools.lab.chaos.resources import PODS
from devtools.testbed.client import Client


def pod(uid: str) -> dict[str, Any]:
    labels = {"dljob.operator/job-uid": "j", "dljob.operator/replica-type": "worker"}
    return {"metadata": {"uid": uid, "name": f"pod-{uid}", "labels": labels}, "status": {"phase": "Running"}}


@dataclass
class FakeClient:
    """Lists the pods that are present."""

    present: list[dict[str, Any]] = field(default_factory=list)

    def items(self, path: str) -> list[dict[str, Any]]:
        assert path == "/api/v1/namespaces/n/pods"
        return self.present


def test_a_watch_that_has_expired_has_lost_deletions() -> None:
    client = FakeClient()
    recorder = Recorder(cast(Client, client), "n", lambda: 0.0)
    watch = recorder.watch(PODS)
    take = watch._take  # noqa: SLF001 - without an API server
    take("ADDED", pod("1"), 0.0)
    client.present = [pod("2")]
    watch.expired = 1
    take("ADDED", pod("2"), 1.0)
    with recorder.history() as history:
        assert [one.uid for one in history.pods.values() if one.exists] == ["2"]
        assert history.violations == [], "there are not two pods of one rank"

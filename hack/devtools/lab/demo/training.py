"""Applies a job, and shows its pods' phases and its first worker's log while it runs."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from devtools.testbed.client import Client, Refused
from devtools.testbed.ground import PODS, until
from devtools.testbed.watching import Watching

ACCURACY = re.compile(r"test_accuracy=([0-9.]+)")
_LABEL = "dljob.operator/"


class TrainingError(Exception):
    """The training failed or did not finish in time."""


@dataclass(frozen=True)
class Result:
    """The job's final status. ``accuracy`` is read from the training's log, ``None`` if the log does not contain it."""

    status: Mapping[str, Any]
    accuracy: float | None
    seconds: float

    def text(self) -> str:
        """The status' main fields and the accuracy, as text."""
        shown = {k: v for k, v in self.status.items() if k not in ("specHash", "conditions", "observedGeneration")}
        conditions = [f"{x['type']}={x['status']}" for x in self.status.get("conditions") or ()]
        lines = yaml.safe_dump({"status": shown}, sort_keys=False).splitlines()
        lines += [
            f"conditions: {', '.join(conditions)}",
            f"test accuracy: {self.accuracy}   (job took {self.seconds:.1f} s)",
        ]
        return "\n".join(f"    {line}" for line in lines)


class Training:
    """One job in the cluster. Prints its events with the time since the start; their watches call it on threads."""

    def __init__(self, client: Client, manifest: Mapping[str, Any]) -> None:
        self._client = client
        self._manifest = manifest
        namespace = manifest["metadata"].get("namespace", "default")
        self.name: str = manifest["metadata"]["name"]
        self.collection = f"/apis/{manifest['apiVersion']}/namespaces/{namespace}/{manifest['kind'].lower()}s"
        self.pods = PODS.format(namespace)
        self.status: Mapping[str, Any] = {}
        self.over = threading.Event()
        """Set when the job has finished; the cluster may stop then, so a lost connection is no error any more."""
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._shown: dict[str, str] = {}

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._started

    def show(self, text: str) -> None:
        with self._lock:
            print(f"    {self.elapsed:6.1f} s  {text}", flush=True)

    def create(self) -> str:
        """Create the job, after deleting an earlier one of that name; returns its uid."""
        self.delete()
        uid = str(self._client.request("POST", self.collection, self._manifest)["metadata"]["uid"])
        self.show(f"{self._manifest['kind']} {self.name} created")
        return uid

    def delete(self) -> None:
        """Delete the job and wait until it and its pods are gone. Raises TimeoutError after two minutes."""
        path = f"{self.collection}/{self.name}"
        self._client.raw("DELETE", path, {"propagationPolicy": "Foreground"})
        until(lambda: not self._client.exists(path), 120, f"the job {self.name}")

    def job_changed(self, event: str, job: Mapping[str, Any], now: float) -> None:
        self.status = job.get("status") or {}
        phase, state = (self.status.get(name, "-") for name in ("phase", "state"))
        reason = f" ({self.status['reason'][:150]})" if self.status.get("reason") else ""
        if self.status:
            self._changed("job", f"{phase}, state {state}, replicas {self.status.get('replicas', '-')}{reason}")
        if phase in ("Done", "Failed"):
            self.over.set()

    def pod_changed(self, event: str, pod: Mapping[str, Any], now: float) -> None:
        """Show the pod's phase; follow the log of worker 0 from its start."""
        metadata = pod["metadata"]
        phase = "Deleted" if event == "DELETED" else pod["status"]["phase"]
        labels = (metadata["labels"].get(f"{_LABEL}replica-{name}") for name in ("type", "index"))
        if self._changed(f"pod {metadata['name']}", phase) and phase == "Running" and tuple(labels) == ("worker", "0"):
            threading.Thread(target=self.follow_log, args=(self._log_of(pod),), daemon=True).start()

    def _changed(self, what: str, now: str) -> bool:
        if self._shown.get(what) == now:
            return False
        self._shown[what] = now
        self.show(f"{what}: {now}")
        return True

    def _log_of(self, pod: Mapping[str, Any]) -> str:
        return f"{self.pods}/{pod['metadata']['name']}/log?container={pod['spec']['containers'][0]['name']}"

    def follow_log(self, path: str) -> None:
        try:
            for line in self._client.lines(self._client.connect(None), f"{path}&follow=true"):
                self.show(f"worker 0 | {line.decode(errors='replace').rstrip()}")
        except (Refused, OSError, http.client.HTTPException) as error:
            if not self.over.is_set():
                self.show(f"(the log of worker 0 cannot be followed: {error})")

    def accuracy(self, uid: str) -> float | None:
        """The test accuracy from a worker's log."""
        selector = f"labelSelector={_LABEL}job-uid={uid},{_LABEL}replica-type=worker"
        logs = (self._client.text(self._log_of(pod)) for pod in self._client.items(f"{self.pods}?{selector}"))
        return next((float(found[-1]) for log in logs if (found := ACCURACY.findall(log))), None)


def run(client: Client, manifest: Mapping[str, Any], limit: float, keep: bool, look: Callable[[str], None]) -> Result:
    """Apply ``manifest`` and wait at most ``limit`` seconds for the job to finish; ``keep`` does not delete it.

    ``look`` gets the job's name when it has finished.
    """
    training = Training(client, manifest)
    uid = training.create()
    with (
        Watching(client, f"{training.pods}?labelSelector={_LABEL}job-uid={uid}", training.pod_changed),
        Watching(client, f"{training.collection}?fieldSelector=metadata.name={training.name}", training.job_changed),
    ):
        if not training.over.wait(limit):
            raise TrainingError(f"the job did not finish within {limit:.0f} s; its status: {training.status}")
        result = Result(training.status, training.accuracy(uid), training.elapsed)
    look(training.name)
    if not keep:
        training.delete()
    return result

"""An API server over HTTP, for the client: the one in memory behind the one that a test scripts."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from dljob.client import Client
from support.builders import stamp
from support.fake_api_server import FakeApiServer, failure
from support.scripted_server import Exchange, scripted

Resource = dict[str, Any]
GROUP = "kubeflow.org"
PODS, EVENTS, TFJOBS, PTJS = (("team", plural) for plural in ("pods", "events", "tfjobs", "pytorchjobs"))


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The database of a history, which the client finds by its variable, and reads by the operator's own queries."""
    from dljob import history

    from .history_jobs import history_of_five

    made = history_of_five(tmp_path)
    monkeypatch.setenv(history.VARIABLE, made)
    return made


@dataclass
class Log:
    """The log of a container: what has been written, and whether it goes on."""

    lines: list[bytes] = field(default_factory=list)
    is_open: bool = False
    status: int = 200
    cut: int = 0
    """Ends the next answer without its end after so many lines, once."""
    waits_for: threading.Event | None = None
    """Its answers begin then."""
    is_followed: bool = False
    """Whether a reader gets what is written from now on."""

    def write(self, second: int, *texts: str) -> None:
        """Lines of one second, a millisecond from each other."""
        for number, text in enumerate(texts, len(self.lines)):
            self.lines.append(f"2026-11-29T10:00:{second:02}.{number:03}000000Z {text}\n".encode())


@dataclass
class Cluster:
    """An API server with the kinds of ``served``, and a kubeconfig for it."""

    kubeconfig: Path
    fake: FakeApiServer = field(default_factory=FakeApiServer)
    served: set[str] = field(default_factory=lambda: {"v1/pytorchjobs", "v1/tfjobs"})
    """``<version>/<plural>`` of the group kubeflow.org."""
    denied: set[str] = field(default_factory=set)
    """``<method> <plural>``, such as ``GET pods``: 403."""
    status: int = 0
    """Answers everything with it."""
    requests: list[Exchange] = field(default_factory=list)
    logs: dict[str, Log] = field(default_factory=dict)
    """By ``<pod>/<container>``."""

    def client(self, **named: Any) -> Client:
        return Client(str(self.kubeconfig), **named)

    def job(self, name: str, plural: str = "pytorchjobs", **more: Any) -> Resource:
        """Store a job with two workers."""
        kind, spec_field = {
            "pytorchjobs": ("PyTorchJob", "pytorchReplicaSpecs"),
            "tfjobs": ("TFJob", "tfReplicaSpecs"),
            "mpijobs": ("MPIJob", "mpiReplicaSpecs"),
        }[plural]
        metadata = {"name": name, "namespace": "team", "uid": f"uid-of-{name}", "creationTimestamp": stamp()}
        made = {
            "apiVersion": f"{GROUP}/v1",
            "kind": kind,
            "metadata": {**metadata, **more.pop("metadata", {})},
            "spec": {spec_field: {"Worker": {"replicas": 2, "template": {"spec": {"containers": [{"name": "m"}]}}}}},
            **more,
        }
        return self.fake.add((made["metadata"]["namespace"], plural), made)

    def pod(self, job: Resource, name: str, phase: str = "Running", **status: Any) -> Resource:
        labels = {"dljob.operator/job-uid": job["metadata"]["uid"], "dljob.operator/replica-type": "worker"}
        metadata = {"name": name, "namespace": "team", "uid": f"uid-of-{name}", "labels": labels}
        spec = {"nodeName": "node-1", "containers": [{"name": "pytorch"}]}
        return self.fake.add(PODS, {"metadata": metadata, "spec": spec, "status": {"phase": phase, **status}})

    def worker(self, job: Resource, index: int, state: str = "running", restarts: int = 0) -> Log:
        """A pod whose container is in that state, and its log."""
        name = f"{job['metadata']['name']}-worker-{index}"
        containers = [{"name": "pytorch", "restartCount": restarts, "state": {state: {}}}]
        pod = self.pod(job, name, "Pending" if state == "waiting" else "Running", containerStatuses=containers)
        labels = {**pod["metadata"]["labels"], "dljob.operator/replica-index": str(index)}
        self.fake.store("MODIFIED", PODS, {**pod, "metadata": {**pod["metadata"], "labels": labels}})
        return self.logs.setdefault(f"{name}/pytorch", Log(is_open=state == "running"))

    def container_is(self, name: str, state: str, restarts: int = 0) -> None:
        """Change the status of a pod's container, which watches see."""
        pod = self.fake.objects[PODS][name]
        containers = [{"name": "pytorch", "restartCount": restarts, "state": {state: {}}}]
        self.fake.store("MODIFIED", PODS, {**pod, "status": {**pod["status"], "containerStatuses": containers}})

    def end(self, job: Resource, type_: str = "Succeeded", reason: str = "") -> None:
        """Set the status of a job, which its watches see."""
        key = (job["metadata"]["namespace"], f"{job['kind'].lower()}s")
        stored = self.fake.objects[key][job["metadata"]["name"]]
        condition = {"type": type_, "status": "True", "reason": reason or type_, "message": f"it is {type_}"}
        self.fake.store("MODIFIED", key, {**stored, "status": {"conditions": [condition], "startTime": stamp()}})

    # --- the server

    def respond(self, exchange: Exchange) -> None:
        self.requests.append(exchange)
        plural = self._plural(exchange.path)
        if self.status:
            exchange.answer(failure(self.status, "Because", "because").content, self.status)
        elif plural is None:
            exchange.answer(b"404 page not found\n", 404)
        elif f"{exchange.method} {plural}" in self.denied:
            exchange.answer(failure(403, "Forbidden", f'pods is forbidden: User "ada" cannot {plural}').content, 403)
        elif exchange.path.endswith("/log"):
            self._log(exchange)
        elif exchange.query.get("watch"):
            self._watch(exchange, plural)
        else:
            self._answer(exchange)

    def _plural(self, path: str) -> str | None:
        parts = path.strip("/").split("/")
        if parts[0] == "api":
            return parts[4] if len(parts) > 4 else parts[2]
        rest = parts[5:] if "namespaces" in parts else parts[3:]
        return rest[0] if parts[1] == GROUP and f"{parts[2]}/{rest[0]}" in self.served else None

    def _answer(self, exchange: Exchange) -> None:
        method, body, kind = exchange.method, exchange.body, exchange.handler.headers.get("Content-Type", "")
        query = {**exchange.query}
        if "=" not in query.get("labelSelector", "="):
            query.pop("labelSelector")
        if "dryRun" in query:
            namespace, name = body["metadata"]["namespace"], body["metadata"].get("name")
            if method == "POST" and name in self.fake.objects.get((namespace, self._plural(exchange.path) or ""), {}):
                exchange.answer(failure(409, "AlreadyExists", f"{name} already exists").content, 409)
                return
            exchange.answer({**body, "metadata": {"uid": "of-a-dry-run", **body["metadata"]}})
            return
        if kind.startswith("application/apply-patch"):
            there = self.fake.send("GET", exchange.path).status == 200
            method, kind = ("PATCH", "application/merge-patch+json") if there else ("POST", "application/json")
        path = exchange.path.rpartition("/")[0] if (method, exchange.method) == ("POST", "PATCH") else exchange.path
        response = self.fake.send(method, path, body, query, kind or "application/json")
        content = response.content
        name = query.get("fieldSelector", "").partition("metadata.name=")[2]
        if name and isinstance(content, dict):
            content["items"] = [one for one in content["items"] if one["metadata"]["name"] == name]
        exchange.answer(content.encode() if isinstance(content, str) else content, response.status)

    def _log(self, exchange: Exchange) -> None:
        *_, pod, _ = exchange.path.split("/")
        log = self.logs.get(f"{pod}/{exchange.query['container']}", Log(status=404))
        if log.status != 200:
            exchange.answer(failure(log.status, "Because", "because").content, log.status)
            return
        if log.waits_for:
            log.waits_for.wait(20)
        follow, since = exchange.query.get("follow"), exchange.query.get("sinceTime", "")[:19].encode()
        if not follow and not log.cut:
            lines = [line for line in log.lines if line[:19] >= since]
            last = b"".join(lines[max(0, len(lines) - int(exchange.query.get("tailLines", len(lines)))) :])
            exchange.answer(last[: int(exchange.query.get("limitBytes", len(last)))])
            return
        exchange.begin_stream()
        position = len(log.lines) - int(exchange.query.get("tailLines", len(log.lines)))
        log.is_followed = bool(follow)
        while True:
            is_last = not log.is_open or not follow
            for line in log.lines[position:]:
                position += 1
                if line[:19] >= since:
                    exchange.send(line)
                if log.cut and position >= log.cut:
                    log.cut = 0
                    return
            if is_last or exchange.closing.is_set():
                exchange.handler.wfile.write(b"0\r\n\r\n")
                return
            time.sleep(0.005)

    def _watch(self, exchange: Exchange, plural: str) -> None:
        exchange.begin_stream()
        name = exchange.query.get("fieldSelector", "").partition("metadata.name=")[2]
        namespace = exchange.path.partition("/namespaces/")[2].partition("/")[0]
        if "resourceVersion" not in exchange.query:  # all that there is comes first
            there = [one for key, kept in self.fake.objects.items() if key[1] == plural for one in kept.values()]
            exchange.query["resourceVersion"] = str(
                len(self.fake.watch_events) and _version(self.fake.watch_events[-1])
            )
            for one in there:
                if name in ("", one["metadata"]["name"]):
                    exchange.line({"type": "ADDED", "object": one})
        position = next(
            (
                n
                for n, event in enumerate(self.fake.watch_events)
                if _version(event) > int(exchange.query["resourceVersion"])
            ),
            len(self.fake.watch_events),
        )
        while not exchange.closing.is_set():
            for event in self.fake.watch_events[position:]:
                position += 1
                here = event.key[1] == plural and namespace in ("", event.key[0])
                if here and name in ("", event.object["metadata"]["name"]):
                    exchange.line({"type": event.type, "object": event.object})
            time.sleep(0.01)


def _version(event: Any) -> int:
    return int(event.object["metadata"]["resourceVersion"])


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = Cluster(tmp_path / "kubeconfig")
    with scripted(lambda exchange: made.respond(exchange)) as server:  # a test may replace it
        made.kubeconfig.write_text(yaml.safe_dump(kubeconfig(server.url)))
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
        yield made


def kubeconfig(server: str, user: Resource | None = None, **cluster: Any) -> Resource:
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user or {"token": "secret"}}],
    }
